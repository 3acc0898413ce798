package reconcile

import (
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/backstop-cni/backstop/attachment"
	"github.com/backstop-cni/backstop/internal/kernel"
	"github.com/backstop-cni/backstop/internal/testnode"
	"github.com/backstop-cni/backstop/journal"
	"github.com/backstop-cni/backstop/teardown"
	"github.com/sirupsen/logrus"
)

// patience is how long a test waits for a lock or for the kernel.
const patience = 10 * time.Second

// bench is an Env with a journal of its own.
type bench struct {
	*Env
	t     *testing.T
	j     *journal.Journal
	cache string // the runtime's cacheDir
}

func newBench(t *testing.T, k kernel.Host) *bench {
	t.Helper()
	here, err := kernel.ReadNode()
	if err != nil {
		t.Fatal(err)
	}
	log := logrus.New()
	log.SetOutput(io.Discard)
	return &bench{
		Env: &Env{Node: here, Kernel: k, Log: log}, t: t,
		j: journal.At(filepath.Join(t.TempDir(), "backstop", "journal.db")), cache: t.TempDir(),
	}
}

// onNode runs a test with the kernel of a throw-away node.
func onNode(t *testing.T, body func(t *testing.T, b *bench)) {
	t.Helper()
	testnode.Run(t, func(t *testing.T) {
		h, err := kernel.OpenHost()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(h.Close)
		body(t, newBench(t, h))
	})
}

// ip runs lines of ip's words.
func (b *bench) ip(lines ...string) {
	b.t.Helper()
	for _, line := range lines {
		if out, err := exec.Command("ip", strings.Fields(line)...).CombinedOutput(); err != nil {
			b.t.Fatalf("ip %s: %v: %s", line, err, out)
		}
	}
}

func (b *bench) view() testnode.Snapshot {
	b.t.Helper()
	s, err := testnode.View{}.Take()
	if err != nil {
		b.t.Fatal(err)
	}
	return s
}

// changed compares what the node has now with an earlier view of it; want holds its lines without what differs from
// run to run (indexes and MACs).
func (b *bench) changed(since testnode.Snapshot, want ...string) {
	b.t.Helper()
	diff := passing.ReplaceAllString(testnode.Diff(since, b.view()), "")
	if diff = strings.TrimSpace(diff); diff != strings.Join(want, "\n") {
		b.t.Errorf("the node changed by\n%s\nwant\n%s", diff, strings.Join(want, "\n"))
	}
}

var passing = regexp.MustCompile(` index \d+| mac \S+| parent \S+| mtu \d+`)

// addPod does what the AWS VPC CNI does for a pod, which has its veth, a host route and two rules.
func (b *bench) addPod(id, veth, ip string, table int) *attachment.Record {
	b.t.Helper()
	b.ip("netns add "+id, fmt.Sprintf("link add %s type veth peer name eth0 netns %s", veth, id), "link set "+veth+" up",
		"-n "+id+" link set eth0 up", "-n "+id+" addr add "+ip+"/32 dev eth0", "route replace "+ip+" dev "+veth+" scope link")
	b.rule("pref 512 to " + ip + " lookup main")
	b.rule(fmt.Sprintf("pref 1536 from %s lookup %d", ip, table))
	return b.capture(id, fmt.Sprintf(`{"interfaces":[{"name":%q},{"name":"eth0","mac":"%d","sandbox":"/run/netns/%s"}],"ips":[{"address":"%s/32"}]}`, veth, table, id, ip))
}

// rule adds a rule that may be there already, as ipamd does.
func (b *bench) rule(words string) {
	b.t.Helper()
	out, err := exec.Command("ip", strings.Fields("rule add "+words)...).CombinedOutput()
	if err != nil && !strings.Contains(string(out), "File exists") {
		b.t.Fatalf("ip rule add %s: %v: %s", words, err, out)
	}
}

// capture makes a pod's record as an ADD does.
func (b *bench) capture(id, result string) *attachment.Record {
	b.t.Helper()
	r := b.record(id)
	r.Netns, r.PrevResult = "/run/netns/"+id, json.RawMessage(result)
	pod, nsid, err := kernel.OpenPod(r.Netns, b.Node)
	if err != nil {
		b.t.Fatal(err)
	}
	defer pod.Close()
	r.NetnsID = nsid
	host := b.Kernel.(*kernel.Handle)
	got, err := kernel.Capture(host, kernel.Target{
		Result: attachment.ParseResult(r.PrevResult), IfName: r.IfName, Pod: pod, PodNSID: func() int { return host.NSID(r.Netns, nsid) },
	})
	if err != nil {
		b.t.Fatal(err)
	}
	r.IPs, r.Resources, r.Pod = got.IPs, got.Resources, got.Pod
	return r
}

// record is one of this boot and node, attached, with no grace: a sweep need not wait.
func (b *bench) record(id string) *attachment.Record {
	return &attachment.Record{
		Key: attachment.Key{Network: "net", ContainerID: id, IfName: "eth0"}, State: attachment.Attached, Node: b.Node,
		Settings: attachment.Settings{Teardown: "unreachable", RuntimeCacheDir: b.cache},
	}
}

// deferred makes a record one whose DEL was left to the primary.
func (b *bench) deferred(r *attachment.Record) *attachment.Record {
	r.State, r.Del = attachment.Deferred, &attachment.Del{Count: 1, Last: b.Now()}
	return r
}

// kill takes away a pod's namespace, and waits until the kernel has taken its veth too.
func (b *bench) kill(id, veth string) {
	b.t.Helper()
	b.ip("netns del " + id)
	err := testnode.Until(patience, func() error {
		if exec.Command("ip", "link", "show", veth).Run() == nil {
			return fmt.Errorf("%s is there", veth)
		}
		return nil
	})
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) put(rs ...*attachment.Record) {
	b.t.Helper()
	err := b.j.UpdateWithin(b.t.Context(), patience, func(tx *journal.Tx) error {
		for _, r := range rs {
			if err := tx.Put(r); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		b.t.Fatal(err)
	}
}

// admit stores a new pod's record as an ADD does: what it merely found is not its own.
func (b *bench) admit(r *attachment.Record) {
	b.t.Helper()
	err := b.j.UpdateWithin(b.t.Context(), patience, func(tx *journal.Tx) error {
		others, err := b.SharingAddress(tx, r)
		if err != nil {
			return err
		}
		teardown.Newcomer(r, nil, others)
		return tx.Put(r)
	})
	if err != nil {
		b.t.Fatal(err)
	}
}

// get reads a record, from the history if it is closed.
func (b *bench) get(id string) *attachment.Record {
	b.t.Helper()
	var found *attachment.Record
	err := b.j.ViewWithin(b.t.Context(), patience, func(tx *journal.Tx) (err error) {
		if found, err = tx.Get(b.record(id).Key); err != nil || found != nil {
			return err
		}
		return tx.History(func(r *attachment.Record) error {
			if r.ContainerID == id && found == nil {
				found = r
			}
			return nil
		})
	})
	if err != nil || found == nil {
		b.t.Fatalf("record of %s: %v, %v", id, found, err)
	}
	return found
}

// state compares a record's state, and gives the record.
func (b *bench) state(id string, want attachment.State) *attachment.Record {
	b.t.Helper()
	r := b.get(id)
	if r.State != want {
		b.t.Errorf("%s is %s, want %s; its story: %v", id, r.State, want, r.Events)
	}
	return r
}

func (b *bench) session() *journal.Session {
	b.t.Helper()
	s, err := b.j.LockWithin(b.t.Context(), patience)
	if err != nil {
		b.t.Fatal(err)
	}
	return s
}

// tearDown runs TearDown in a session of its own.
func (b *bench) tearDown(to attachment.State, ids ...string) []Torn {
	b.t.Helper()
	s := b.session()
	defer s.Unlock()
	var keys []attachment.Key
	for _, id := range ids {
		keys = append(keys, b.record(id).Key)
	}
	torn, err := b.TearDown(s, Job{Why: "a test says so", Settle: Always(to)}, keys...)
	if err != nil {
		b.t.Fatal(err)
	}
	return torn
}

// sweep runs SweepAll and gives what it did with each record.
func (b *bench) sweep() map[string]Swept {
	b.t.Helper()
	got := map[string]Swept{}
	if err := b.SweepAll(b.t.Context(), b.j, patience, func(s Swept) { got[s.Key.ContainerID] = s }); err != nil {
		b.t.Fatal(err)
	}
	return got
}

func noted(r *attachment.Record, text string) bool {
	for _, e := range r.Events {
		if strings.Contains(e.What, text) {
			return true
		}
	}
	return false
}
