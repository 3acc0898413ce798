package cli

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/backstop-cni/backstop/internal/doctor"
	"github.com/backstop-cni/backstop/internal/kernel"
	"github.com/backstop-cni/backstop/internal/redact"
	"github.com/spf13/cobra"
)

func (a *app) doctor() *cobra.Command {
	var binDir string
	c := &cobra.Command{
		Use:   "doctor",
		Short: "look at everything that backstop depends on, and say what to do",
		Long: `Look at the conflists, the probes, the plugin's binary, the journal and its disk, the runtime's cache and the
kernel. Each finding has an id that stays the same (docs/doctor.md lists them all), what was seen and what to do. It never changes
anything. Severities:
  problem       backstop does not do its work, or not for long
  warning       something is left to a person
  note          worth knowing

Exit code 3 says that there is a problem or a warning; notes alone are healthy.

` + exitHelpLines,
		Args: exact(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if a.journalPath != "" && !filepath.IsAbs(a.journalPath) {
				return fmt.Errorf("%w: --journal %q: want an absolute path", errUsage, a.journalPath)
			}
			env, done, err := a.openNode()
			if err != nil {
				return err
			}
			defer done()
			g := doctor.Gatherer{Env: env, Host: env.Kernel.(*kernel.Handle), ConfDir: a.confDir, BinDir: binDir, Journal: a.journalPath, LockWait: a.lockWait}
			facts, err := g.Gather(cmd.Context())
			if err != nil {
				return err
			}
			all := doctor.Examine(facts)
			err = a.printFindings(all)
			if !doctor.Healthy(all) {
				err = errors.Join(err, errLeft)
			}
			return err
		},
	}
	c.Flags().StringVar(&binDir, "bin-dir", defaultBinDir, "directory of the CNI plugins")
	return c
}

// shownThings bounds what a table has of one finding; -o json has all.
const shownThings = 10

func (a *app) printFindings(all []doctor.Finding) error {
	if !a.showSecrets {
		for i := range all {
			all[i].Seen = redact.Text(all[i].Seen)
			for k := range all[i].Things {
				all[i].Things[k] = redact.Text(all[i].Things[k])
			}
		}
	}
	return a.print(all, func(w io.Writer) {
		for _, f := range all {
			fmt.Fprintf(w, "%s %s (%s): %s\n", f.ID, f.Severity, f.Name, f.Seen)
			for _, t := range f.Things[:min(len(f.Things), shownThings)] {
				fmt.Fprintf(w, "    %s\n", t)
			}
			if n := len(f.Things) - shownThings; n > 0 {
				fmt.Fprintf(w, "    and %d more: -o json has them all\n", n)
			}
			if f.Do != "" {
				fmt.Fprintf(w, "  to do: %s\n", f.Do)
			}
		}
		if doctor.Healthy(all) {
			fmt.Fprintln(w, "healthy")
		}
	})
}
