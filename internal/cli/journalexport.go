package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/backstop-cni/backstop/attachment"
	"github.com/backstop-cni/backstop/internal/redact"
	"github.com/backstop-cni/backstop/journal"
)

// exported is the form of an export.
type exported struct {
	Attachments []*attachment.Record `json:"attachments"`
	History     []*attachment.Record `json:"history"`
	// Redacted names, by attachment, what is not in here.
	Redacted map[string][]string `json:"redacted,omitempty"`
}

// hide takes out what may be a secret.
func (e *exported) hide() {
	for _, all := range [][]*attachment.Record{e.Attachments, e.History} {
		for i, r := range all {
			clean, found := redact.Record(r)
			if all[i] = clean; len(found) > 0 {
				if e.Redacted == nil {
					e.Redacted = map[string][]string{}
				}
				slices.Sort(found)
				e.Redacted[r.Key.String()] = found
			}
		}
	}
}

func (a *app) exportJournal(ctx context.Context, j *journal.Journal, _ []string) error {
	out := exported{Attachments: []*attachment.Record{}, History: []*attachment.Record{}}
	var bad error
	err := a.view(ctx, j, func(tx *journal.Tx) error {
		bad = errors.Join(
			tx.Each(func(r *attachment.Record) error { out.Attachments = append(out.Attachments, r); return nil }),
			tx.History(func(r *attachment.Record) error { out.History = append(out.History, r); return nil }))
		return nil
	})
	if errors.Is(err, journal.ErrDamaged) {
		bad, err = err, nil
		out = exported{Attachments: []*attachment.Record{}, History: []*attachment.Record{}}
		all, serr := journal.Salvage(j.Path())
		if serr != nil {
			return serr
		}
		for _, r := range all {
			if r.State == attachment.Closed {
				out.History = append(out.History, r)
			} else {
				out.Attachments = append(out.Attachments, r)
			}
		}
	}
	if err != nil {
		return err
	}
	if bad != nil {
		fmt.Fprintf(a.stderr, "backstopctl: not everything could be read: %v\n", bad)
	}
	if !a.showSecrets {
		out.hide()
	}
	if n := len(out.Redacted); n > 0 {
		fmt.Fprintf(a.stderr, "backstopctl: what may be a secret is %s in %d records: this export cannot be imported, use --show-secrets for one that can\n", redact.Mark, n)
	}
	enc := json.NewEncoder(a.stdout)
	enc.SetIndent("", "  ")
	return enc.Encode(out)
}
