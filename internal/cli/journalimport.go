package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/backstop-cni/backstop/attachment"
	"github.com/backstop-cni/backstop/journal"
)

func (a *app) importJournal(ctx context.Context, j *journal.Journal, args []string) error {
	b, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	in, err := readExport(b)
	if err != nil {
		return fmt.Errorf("%s is no export of a journal: %w", args[0], err)
	}
	if len(in.Redacted) > 0 && !a.redacted {
		return fmt.Errorf("%s was exported without its secrets (%s), and nothing of it was stored: export again with --show-secrets, or see --redacted in the help", args[0], some(in.Redacted))
	}
	stored, there := 0, 0
	err = j.UpdateWithin(ctx, a.lockWait, func(tx *journal.Tx) error {
		for i, r := range in.Attachments {
			if len(in.Redacted[r.Key.String()]) > 0 {
				withoutSecrets(r)
			}
			if old, err := tx.Get(r.Key); err != nil || old != nil {
				there++
				continue
			}
			if err := tx.Put(r); err != nil {
				return fmt.Errorf("%s: attachments[%d]: %w", args[0], i, err)
			}
			stored++
		}
		return nil
	})
	if err != nil {
		return err
	}
	return a.print(map[string]int{"stored": stored, "there": there}, func(w io.Writer) {
		fmt.Fprintf(w, "%d records stored, %d are in the journal already\n", stored, there)
	})
}

// readExport reads what is to be imported: each record in it is whole.
func readExport(b []byte) (*exported, error) {
	var in struct {
		Attachments []json.RawMessage   `json:"attachments"`
		Redacted    map[string][]string `json:"redacted"`
	}
	if err := json.Unmarshal(b, &in); err != nil {
		return nil, err
	}
	out := &exported{Redacted: in.Redacted}
	for i, raw := range in.Attachments {
		r, err := attachment.Decode(raw)
		if err != nil {
			return nil, fmt.Errorf("attachments[%d]: %w", i, err)
		}
		out.Attachments = append(out.Attachments, r)
	}
	return out, nil
}

// some names a few of what was taken out.
func some(redacted map[string][]string) string {
	var all []string
	for _, k := range slices.Sorted(maps.Keys(redacted)) {
		for _, path := range redacted[k] {
			all = append(all, k+": "+path)
		}
	}
	if n := len(all) - 3; n > 0 {
		all = append(all[:3], fmt.Sprintf("%d more", n))
	}
	return strings.Join(all, ", ")
}

// withoutSecrets makes a record one that nothing is run from: not with marks in the place of what it was.
func withoutSecrets(r *attachment.Record) {
	r.CNIArgs, r.Replay, r.Settings.IPAM = "", nil, nil
	r.Events = append(r.Events, attachment.Event{At: time.Now(), What: "imported without its secrets: arguments, runtime's entry and ipam key are gone"})
}
