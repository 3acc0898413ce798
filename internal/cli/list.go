package cli

import (
	"errors"
	"fmt"
	"io"

	"github.com/backstop-cni/backstop/attachment"
	"github.com/backstop-cni/backstop/journal"
	"github.com/spf13/cobra"
)

func (a *app) list() *cobra.Command {
	var history bool
	c := &cobra.Command{
		Use:   "list",
		Short: "list the recorded attachments",
		Long: `List the open records, one attachment each. States:
  attached      ADD was seen, no DEL yet
  deferred      DEL was seen and left to the primary; a sweep looks again after the grace
  tearing       backstop began to remove; a sweep finishes it
  owed          the node is clean, the primary has not acknowledged; replay asks it again
  closed        done (only with --history)`,
		Args: exact(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			j, err := a.openJournal()
			if err != nil {
				return err
			}
			records, err := a.records(cmd.Context(), j, everything)
			if history {
				records, err = a.history(cmd, j)
			}
			rows := []row{}
			for _, r := range records {
				rows = append(rows, short(a.shown(r)))
			}
			if !history {
				rows = append(rows, a.waitingRows(j)...)
			}
			if err != nil && len(rows) == 0 {
				return err
			}
			// What waits is shown although the journal cannot be read.
			return errors.Join(a.print(rows, func(w io.Writer) { listTable(w, rows) }), err)
		},
	}
	c.Flags().BoolVar(&history, "history", false, "list closed records instead, the latest first")
	return c
}

func (a *app) history(cmd *cobra.Command, j *journal.Journal) (out []*attachment.Record, err error) {
	err = a.view(cmd.Context(), j, func(tx *journal.Tx) error {
		return tx.History(func(r *attachment.Record) error { out = append(out, r); return nil })
	})
	return out, err
}

// waitingRows are the records that wait in a spool for somebody who can write the journal. What cannot be read of
// them `journal check` names.
func (a *app) waitingRows(j *journal.Journal) (rows []row) {
	_ = j.Waiting(func(r *attachment.Record, file string) {
		w := short(a.shown(r))
		w.Waits = file
		rows = append(rows, w)
	})
	return rows
}

func listTable(w io.Writer, rows []row) {
	var out [][]string
	for _, r := range rows {
		note := r.LastError
		if r.BlockedBy != "" {
			note = "blocked: " + r.BlockedBy
		}
		if r.Waits != "" {
			note = "waits to be stored: " + r.Waits
		}
		out = append(out, []string{r.Network, r.ContainerID, r.IfName, string(r.State), join(r.IPs), age(r.Added), fmt.Sprint(r.Dels), note})
	}
	table(w, []string{"NETWORK", "CONTAINER", "IFNAME", "STATE", "IPS", "AGE", "DELS", "NOTE"}, out)
}
