package cli

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/backstop-cni/backstop/internal/install"
	"github.com/spf13/cobra"
)

const defaultBinDir = "/opt/cni/bin"

func (a *app) install() *cobra.Command {
	o := install.Options{}
	var watch bool
	c := &cobra.Command{
		Use:   "install",
		Short: "put the plugin and its conflist entry into place",
		Long: `Put the plugin into --bin-dir and its entry last into the conflist that the runtime would pick, the first
one of --conf-dir in lexical order, or into the one of --network. What the entry says is filled in from the primary. Nothing else of
the file changes, and it is replaced in one step; it is kept as it was beside it, with the ending .before-backstop. A single
plugin's .conf becomes a list. Where Multus is the first, the list that it hands on to is meant. Doing it again changes nothing.

With --watch the command stays, and puts the entry back whenever the primary's installer writes the file anew.

` + exitHelpLines,
		Args: exact(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.ConfDir = a.confDir
			if err := theBinary(&o.Binary); err != nil {
				return err
			}
			if watch {
				return install.Watch(cmd.Context(), o, func(d *install.Done, err error) {
					if err != nil {
						fmt.Fprintf(a.stderr, "backstopctl: %v\n", err)
					} else {
						_ = a.printDone(d)
					}
				})
			}
			done, err := install.Install(o)
			if err != nil {
				return err
			}
			return a.printDone(done)
		},
	}
	c.Flags().StringVar(&o.BinDir, "bin-dir", defaultBinDir, "directory of the CNI plugins")
	c.Flags().StringVar(&o.Network, "network", "", "the network whose list gets the entry (default: the one that the runtime would pick)")
	c.Flags().StringVar(&o.Binary, "binary", "", "the plugin to install (default: backstop, beside this program)")
	c.Flags().BoolVar(&watch, "watch", false, "stay, and put the entry back when the file is written anew")
	return c
}

// theBinary finds the plugin beside this program.
func theBinary(path *string) error {
	if *path != "" {
		return nil
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("look where backstopctl is: %w", err)
	}
	*path = filepath.Join(filepath.Dir(self), "backstop")
	if _, err := os.Stat(*path); err != nil {
		return fmt.Errorf("%w: the plugin is not beside this program: say where it is with --binary: %w", errUsage, err)
	}
	return nil
}

func (a *app) printDone(d *install.Done) error {
	return a.print(d, func(w io.Writer) {
		if d.Binary != "" {
			fmt.Fprintf(w, "installed %s\n", d.Binary)
		}
		if d.Changed {
			fmt.Fprintf(w, "%s: backstop is the last plugin of network %q now, behind %s\n  as it was: %s\n", d.List, d.Network, d.Primary, d.Backup)
		} else {
			fmt.Fprintf(w, "%s: backstop is the last plugin of network %q already\n", d.List, d.Network)
		}
		for _, s := range d.Advice {
			fmt.Fprintf(w, "  to do: %s\n", s)
		}
	})
}
