package reconcile

import (
	"errors"
	"strings"
	"testing"

	"github.com/backstop-cni/backstop/attachment"
	"github.com/backstop-cni/backstop/internal/kernel"
)

// What a process in the wrong network namespace cannot see is not gone. A nested node that was restarted, in the same
// boot, is another matter once the plugin was called there.
func TestAtHome(t *testing.T) {
	here := func(*attachment.Node) {}
	netns := func(n *attachment.Node) { n.Netns.Ino++ }
	boot := func(n *attachment.Node) { n.Now.BootID = "another"; n.Netns.Ino++ }
	for name, c := range map[string]struct {
		records []func(*attachment.Node)
		home    bool
	}{
		"nothing is recorded":                     {nil, true},
		"recorded here":                           {[]func(*attachment.Node){here, here}, true},
		"recorded elsewhere":                      {[]func(*attachment.Node){netns, netns}, false},
		"recorded elsewhere, and here since then": {[]func(*attachment.Node){netns, here, netns}, true},
		"recorded in another boot":                {[]func(*attachment.Node){boot}, true},
		"recorded in another boot, and elsewhere": {[]func(*attachment.Node){boot, netns}, false},
		"recorded in another boot, and then here": {[]func(*attachment.Node){boot, here}, true},
	} {
		b := newBench(t, kernel.NewFake())
		for i, change := range c.records {
			r := b.record(string(rune('a' + i)))
			change(&r.Node)
			b.put(r)
		}
		err := b.j.ViewWithin(t.Context(), patience, b.AtHome)
		if (err == nil) != c.home || err != nil && (!errors.Is(err, ErrElsewhere) || !strings.Contains(err.Error(), "net/")) {
			t.Errorf("%s: %v, at home is %v", name, err, c.home)
		}
	}
}
