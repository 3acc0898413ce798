package cli

import (
	"fmt"
	"io"
	"time"

	"github.com/backstop-cni/backstop/attachment"
	"github.com/spf13/cobra"
)

func (a *app) show() *cobra.Command {
	return &cobra.Command{
		Use:   "show NETWORK/CONTAINERID/IFNAME",
		Short: "show one attachment: what it put into the node, and what happened to it",
		Args:  exact(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			j, err := a.openJournal()
			if err != nil {
				return err
			}
			k, err := attachment.ParseKey(args[0])
			if err != nil {
				return fmt.Errorf("%w: %w", errUsage, err)
			}
			all, err := a.records(cmd.Context(), j, func(r *attachment.Record) bool { return r.Key == k })
			if err == nil && len(all) == 0 {
				var closed []*attachment.Record
				closed, err = a.history(cmd, j)
				for _, r := range closed {
					if r.Key == k {
						all = append(all, r)
						break
					}
				}
			}
			if err != nil {
				return err
			}
			if len(all) == 0 {
				return fmt.Errorf("%s is not recorded (see backstopctl list)", k)
			}
			r := full(a.shown(all[0]))
			return a.print(r, func(w io.Writer) { showText(w, r) })
		},
	}
}

func showText(w io.Writer, r row) {
	t := branch{text: r.Key.String()}
	t.leaf("state      %s", r.State)
	t.leaf("addresses  %s", join(r.IPs))
	t.leaf("netns      %s", r.Netns)
	t.leaf("added      %s", r.Added.Format(time.RFC3339))
	if r.LastDel != nil {
		t.leaf("DELs       %d, the last %s", r.Dels, r.LastDel.Format(time.RFC3339))
	}
	if r.LastError != "" {
		t.leaf("last error %s", r.LastError)
	}
	if r.BlockedBy != "" {
		t.leaf("blocked    %s", r.BlockedBy)
	}
	t.below("in the pod", r.Pod)
	t.below("on the node", r.Resources)
	var events []string
	for _, e := range r.Events {
		events = append(events, e.At.Format(time.RFC3339)+"  "+e.What)
	}
	t.below("what happened", events)
	t.write(w, "", "")
}
