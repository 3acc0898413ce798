package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/backstop-cni/backstop/attachment"
	"github.com/backstop-cni/backstop/teardown"
)

// row is a record as list and show print it: without what a replay keeps, which
// may hold what users pass as arguments.
type row struct {
	attachment.Key
	State     attachment.State        `json:"state"`
	IPs       []netip.Addr            `json:"ips"`
	Netns     string                  `json:"netns,omitempty"`
	Added     time.Time               `json:"added"`
	Dels      int                     `json:"dels"`
	LastDel   *time.Time              `json:"lastDel,omitempty"`
	Attempts  int                     `json:"attempts"`
	LastError string                  `json:"lastError,omitempty"`
	BlockedBy string                  `json:"blockedBy,omitempty"`
	Waits     string                  `json:"waits,omitempty"` // the file in which it waits to be stored
	Resources []string                `json:"resources,omitempty"`
	Pod       []string                `json:"pod,omitempty"`
	Events    []attachment.Event      `json:"events,omitempty"`
	Record    []attachment.Resource   `json:"recorded,omitempty"`
	Node      *attachment.Node        `json:"node,omitempty"`
	NetnsID   *attachment.NamespaceID `json:"netnsID,omitempty"`
	Result    json.RawMessage         `json:"prevResult,omitempty"`
	Settings  *attachment.Settings    `json:"settings,omitempty"`
}

func short(r *attachment.Record) row {
	o := row{Key: r.Key, State: r.State, IPs: r.IPs, Netns: r.Netns, Added: r.Node.Now.Wall, Attempts: r.Attempts, LastError: r.LastError}
	if o.IPs == nil {
		o.IPs = []netip.Addr{}
	}
	if r.Del != nil {
		o.Dels, o.LastDel = r.Del.Count, &r.Del.Last.Wall
	}
	if r.Replay != nil {
		o.BlockedBy = r.Replay.BlockedBy
	}
	return o
}

func full(r *attachment.Record) row {
	o := short(r)
	o.Resources, o.Pod, o.Events = texts(r.Resources), texts(r.Pod), r.Events
	o.Record, o.Node, o.NetnsID, o.Result, o.Settings = r.Resources, &r.Node, &r.NetnsID, r.PrevResult, &r.Settings
	return o
}

func texts(rs []attachment.Resource) (out []string) {
	for _, r := range rs {
		s := r.String()
		if r.Share == attachment.Shared {
			s += " (shared)"
		}
		if r.Superseded {
			s += " (of an earlier ADD)"
		}
		out = append(out, s)
	}
	return out
}

// table writes aligned columns.
func table(w io.Writer, head []string, rows [][]string) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, r := range slices.Insert(rows, 0, head) {
		fmt.Fprintln(t, strings.Join(r, "\t"))
	}
	t.Flush()
}

func join(ips []netip.Addr) string {
	var s []string
	for _, ip := range ips {
		s = append(s, ip.String())
	}
	return strings.Join(s, ",")
}

func age(t time.Time) string { return time.Since(t).Round(time.Second).String() }

// planRow is a plan in -o json and yaml.
type planRow struct {
	attachment.Key
	Notes []string  `json:"notes,omitempty"`
	Steps []stepRow `json:"steps"`
	Error string    `json:"error,omitempty"`
	State string    `json:"state,omitempty"` // after it was carried out
}

type stepRow struct {
	Verdict  teardown.Verdict `json:"verdict"`
	Resource string           `json:"resource"`
	Why      string           `json:"why,omitempty"`
}

func planned(p teardown.Plan) planRow {
	o := planRow{Key: p.Key, Notes: p.Notes, Steps: []stepRow{}}
	o.add(p.Steps...)
	return o
}

func (o *planRow) add(steps ...teardown.Step) {
	for _, s := range steps {
		o.Steps = append(o.Steps, stepRow{s.Verdict, s.Resource.String(), s.Why})
	}
}
