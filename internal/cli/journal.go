package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/backstop-cni/backstop/attachment"
	"github.com/backstop-cni/backstop/journal"
	"github.com/spf13/cobra"
)

func (a *app) journal() *cobra.Command {
	c := &cobra.Command{
		Use:   "journal",
		Short: "check, shrink and move the journal's file",
		Long: `Work on the file that the records are in. A damaged journal is put aside by the plugin's next ADD or DEL, as
journal.db.corrupt-TIME, and a new one is begun from the runtime's cache. To get the rest back:

  backstopctl --journal /var/lib/cni/backstop/journal.db.corrupt-TIME journal export >records.json
  backstopctl journal import records.json

` + exitHelpLines,
		Args: exact(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	verb := func(use, short string, args cobra.PositionalArgs, run func(ctx context.Context, j *journal.Journal, args []string) error) {
		c.AddCommand(&cobra.Command{Use: use, Short: short, Args: exact(args), RunE: func(cmd *cobra.Command, args []string) error {
			j, err := a.openJournal()
			if err != nil {
				return err
			}
			return run(cmd.Context(), j, args)
		}})
	}
	verb("check", "look for damage", cobra.NoArgs, a.checkJournal)
	verb("export", "print all records as JSON, of a damaged file what can be read", cobra.NoArgs, a.exportJournal)
	verb("import FILE", "store the open records of an export that are not in the journal", cobra.ExactArgs(1), a.importJournal)
	verb("compact", "write the file anew without its free pages", cobra.NoArgs, a.compactJournal)
	verb("rebuild-index", "make the indexes anew from the records", cobra.NoArgs, a.rebuildIndex)
	return c
}

func (a *app) checkJournal(ctx context.Context, j *journal.Journal, _ []string) error {
	found := []string{}
	waiting := 0
	if err := j.Waiting(func(*attachment.Record, string) { waiting++ }); err != nil {
		found = append(found, err.Error())
	}
	if j.Exists() {
		err := a.view(ctx, j, func(tx *journal.Tx) error {
			for _, err := range tx.Check() {
				found = append(found, err.Error())
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	readOnly := j.Ready(ctx, a.lockWait)
	if readOnly != nil {
		found = append(found, fmt.Sprintf("nothing can be recorded: %v (%s)", readOnly, whatToDo(readOnly)))
	}
	err := a.print(found, func(w io.Writer) {
		for _, f := range found {
			fmt.Fprintln(w, f)
		}
		if waiting > 0 {
			fmt.Fprintf(w, "%d records wait in the spool (backstopctl list says where): the next ADD, DEL, sweep or gc that can write stores them\n", waiting)
		}
		switch {
		case !j.Exists():
			fmt.Fprintf(w, "%s is not there: nothing was recorded yet\n", j.Path())
			return
		case len(found) == 0 || readOnly != nil && len(found) == 1:
			fmt.Fprintf(w, "%s is sound\n", j.Path())
			return
		}
		fmt.Fprintln(w, "indexes are made anew by `backstopctl journal rebuild-index`; for pages or records keep a copy, then export and import")
	})
	if err == nil && len(found) > 0 {
		err = errLeft
	}
	return err
}

// exported is the form of an export.
type exported struct {
	Attachments []*attachment.Record `json:"attachments"`
	History     []*attachment.Record `json:"history"`
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
	enc := json.NewEncoder(a.stdout)
	enc.SetIndent("", "  ")
	return enc.Encode(out)
}

func (a *app) importJournal(ctx context.Context, j *journal.Journal, args []string) error {
	b, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	var in struct {
		Attachments []json.RawMessage `json:"attachments"`
	}
	if err := json.Unmarshal(b, &in); err != nil {
		return fmt.Errorf("%s is no export of a journal: %w", args[0], err)
	}
	stored, there := 0, 0
	err = j.UpdateWithin(ctx, a.lockWait, func(tx *journal.Tx) error {
		for i, raw := range in.Attachments {
			r, err := attachment.Decode(raw)
			if err != nil {
				return fmt.Errorf("%s: attachments[%d]: %w", args[0], i, err)
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

func (a *app) compactJournal(ctx context.Context, j *journal.Journal, _ []string) error {
	s, err := j.LockWithin(ctx, a.lockWait)
	if err != nil {
		return err
	}
	defer s.Unlock()
	before, after, err := s.Compact()
	if err != nil {
		return err
	}
	return a.print(map[string]int64{"before": before, "after": after}, func(w io.Writer) {
		fmt.Fprintf(w, "%s: %d KiB, was %d KiB\n", j.Path(), after>>10, before>>10)
	})
}

func (a *app) rebuildIndex(ctx context.Context, j *journal.Journal, _ []string) error {
	n := 0
	var bad error
	err := j.UpdateWithin(ctx, a.lockWait, func(tx *journal.Tx) error {
		n, bad = tx.RebuildIndex()
		if n == 0 && bad != nil {
			return bad
		}
		return nil // what cannot be decoded has no index, and keeps no other from it
	})
	if err != nil {
		return err
	}
	a.unread(bad)
	return a.print(map[string]int{"records": n}, func(w io.Writer) { fmt.Fprintf(w, "indexes of %d records made anew\n", n) })
}
