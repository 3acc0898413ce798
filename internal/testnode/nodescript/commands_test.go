package nodescript

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/backstop-cni/backstop/internal/testnode"
)

func TestCommands(t *testing.T) {
	testnode.Run(t, func(t *testing.T) {
		testscript.Run(t, testscript.Params{
			Dir:  "testdata",
			Cmds: Commands(&Socket{Path: "/run/daemon.sock"}),
		})
	})
}

// A command that cannot fail proves nothing: each of these stories must stop where it says.
func TestCommandsFail(t *testing.T) {
	testnode.Run(t, func(t *testing.T) {
		for _, c := range []struct{ name, story string }{
			{"has", "has '^link none '"},
			{"lacks", "lacks '^link lo '"},
			{"same", "snap a\nexec ip rule add pref 7 lookup main\nsnap b\nsame a b"},
			{"kept with a loss", "snap a\nexec ip rule del pref 32767\nsnap b\nkept a b '^rule4'"},
			{"kept without a match", "snap a\nkept a a '^link none '"},
			{"lost, but still there", "snap a\nlost a a '^link lo '"},
			{"lost, but more than that", "snap a\nexec ip rule del pref 32767\nexec ip rule del pref 32766\nsnap b\nlost a b '32767'"},
			{"pod without a name", "pod"},
			{"daemon in other words", "daemon sideways"},
			{"negated", "! has '^link lo '"},
			{"empty snapshot", "exec true\ncp stdout a\nlacks a x"},
		} {
			t.Run(c.name, func(t *testing.T) {
				if !fails(t, c.story) {
					t.Errorf("this story did not fail:\n%s", c.story)
				}
			})
		}
	})
}
