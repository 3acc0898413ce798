package cli

import (
	"context"
	"fmt"
	"io"

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

  umask 077
  backstopctl --journal /var/lib/cni/backstop/journal.db.corrupt-TIME journal export --show-secrets >records.json
  backstopctl journal import records.json

A replay needs the runtime's arguments and the list as they were, secrets included: so the journal has them. An export shows
what may be a secret as ***, and import refuses such an export; one to keep or to import needs --show-secrets. Import only what
an export of yours wrote: a replay runs the plugins that it names.

` + exitHelpLines,
		Args: exact(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	verb := func(use, short, long string, args cobra.PositionalArgs, run func(ctx context.Context, j *journal.Journal, args []string) error) *cobra.Command {
		v := &cobra.Command{Use: use, Short: short, Long: long + "\n\n" + exitHelpLines, Args: exact(args), RunE: func(cmd *cobra.Command, args []string) error {
			j, err := a.openJournal()
			if err != nil {
				return err
			}
			return run(cmd.Context(), j, args)
		}}
		c.AddCommand(v)
		return v
	}
	verb("check", "look for damage", `Look at every page, record and index, at the spool, and whether a record could be stored now. Nothing is changed.
Exit code 3 when something is wrong that leaves the records readable, 1 when the file cannot be read.`, cobra.NoArgs, a.checkJournal)
	verb("export", "print all records as JSON, of a damaged file what can be read", `Print all records as JSON, open and closed. Of a damaged file those whose bytes are whole. What may be a secret is
shown as ***: an export to keep or to import needs --show-secrets.`, cobra.NoArgs, a.exportJournal)
	verb("import FILE", "store the open records of an export that are not in the journal", `Store the open records of an export. What is in the journal already stays as it is; closed records are not stored.
An export without its secrets is refused: a replay would run with *** in their place. --redacted stores it all the same, and
of its records no replay is run with what was recorded: it uses the conflist of today.`, cobra.ExactArgs(1), a.importJournal).
		Flags().BoolVar(&a.redacted, "redacted", false, "import an export without its secrets, too")
	verb("compact", "write the file anew without its free pages", `Write the file anew without its free pages and put it in the old one's place. It needs as much room as the records take; a crash leaves
the old file.`, cobra.NoArgs, a.compactJournal)
	verb("rebuild-index", "make the indexes anew from the records", `Make the indexes by address, link and due time anew from the records. Records are not changed.`, cobra.NoArgs, a.rebuildIndex)
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
		fmt.Fprintln(w, "indexes are made anew by `backstopctl journal rebuild-index`; for pages or records keep a copy, then export with --show-secrets and import")
	})
	if err == nil && len(found) > 0 {
		err = errLeft
	}
	return err
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
