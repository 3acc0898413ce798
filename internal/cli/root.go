package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/backstop-cni/backstop/internal/redact"
	"github.com/backstop-cni/backstop/internal/version"
	"github.com/spf13/cobra"
)

// Exit codes, as the help tells them.
const (
	exitDone      = 0
	exitFailed    = 1
	exitUsage     = 2
	exitLeft      = 3 // something is left to do: leftovers, differences, records still owed
	exitUnasked   = 4 // not confirmed, nothing was changed
	exitHelpLines = `Exit codes:
  0  done, or nothing to do
  1  failed: the message says what and what to do
  2  the command line is wrong
  3  something is left: verify found differences, or not everything could be removed or replayed
  4  not confirmed (no --yes and no terminal to ask on): nothing was changed`
)

// errLeft and errUnasked end a command with their exit code; what there is to say was printed.
var (
	errLeft    = errors.New("something is left, see above")
	errUnasked = errors.New("nothing was changed: give --yes to carry the plan out")
	errUsage   = errors.New("usage")
)

// app is one invocation.
type app struct {
	stdin       io.Reader
	stdout      io.Writer
	stderr      io.Writer
	journalPath string
	confDir     string
	output      string
	lockWait    time.Duration
	yes         bool
	dryRun      bool
	showSecrets bool
	redacted    bool // import an export without its secrets
	removing    bool // the command is one that removes
	toldLegacy  bool
}

// Run serves one command line and gives the exit code.
func Run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	a := &app{stdin: stdin, stdout: stdout, stderr: stderr}
	root := a.root()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitDone
	}
	fmt.Fprintf(stderr, "backstopctl: %s\n", redact.Text(err.Error()))
	switch {
	case errors.Is(err, errUsage):
		return exitUsage
	case errors.Is(err, errLeft):
		return exitLeft
	case errors.Is(err, errUnasked):
		return exitUnasked
	}
	if hint := whatToDo(err); hint != "" {
		fmt.Fprintln(stderr, hint)
	}
	return exitFailed
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "backstopctl",
		Short: "see and finish what CNI attachments left on this node",
		Long: `backstopctl shows the attachments that backstop recorded on this node, and
removes what is left of them when nobody else does.

` + exitHelpLines,
		Args:              exact(cobra.NoArgs),
		RunE:              func(c *cobra.Command, _ []string) error { return c.Help() },
		Version:           version.Version,
		SilenceUsage:      true,
		SilenceErrors:     true,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
		PersistentPreRunE: func(*cobra.Command, []string) error {
			switch a.output {
			case "table", "json", "yaml":
				return nil
			}
			return fmt.Errorf("%w: --output %q: want table, json or yaml", errUsage, a.output)
		},
	}
	f := root.PersistentFlags()
	f.StringVar(&a.journalPath, "journal", "", "journal file (default: the one that the conflists in --conf-dir name)")
	f.StringVar(&a.confDir, "conf-dir", "/etc/cni/net.d", "directory of the runtime's conflists")
	f.StringVarP(&a.output, "output", "o", "table", "table, json or yaml")
	f.BoolVar(&a.showSecrets, "show-secrets", false, "print what may be a secret (arguments, tokens, keys) instead of "+redact.Mark)
	f.DurationVar(&a.lockWait, "lock-wait", 30*time.Second, "how long to wait for the journal's lock")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return fmt.Errorf("%w: %w", errUsage, err) })
	root.AddCommand(a.list(), a.show(), a.verify(), a.teardown(), a.sweep(), a.replay(), a.gc(), a.journal(), a.install(), a.uninstall(), a.graph(), a.adopt(), a.doctor())
	return root
}

// removes gives a command the flags of everything that removes: plan first,
// then --yes or a terminal's answer.
func (a *app) removes(c *cobra.Command) *cobra.Command {
	c.Flags().BoolVarP(&a.yes, "yes", "y", false, "carry the plan out without asking")
	c.Flags().BoolVar(&a.dryRun, "dry-run", false, "print the plan and stop")
	c.PreRun = func(*cobra.Command, []string) { a.removing = true }
	return c
}

// exact is cobra's argument check with our exit code.
func exact(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if err := check(c, args); err != nil {
			return fmt.Errorf("%w: %s: %w", errUsage, c.Use, err)
		}
		return nil
	}
}
