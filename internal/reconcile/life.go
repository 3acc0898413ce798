package reconcile

import (
	"errors"
	"io/fs"

	"github.com/backstop-cni/backstop/attachment"
	"github.com/backstop-cni/backstop/internal/kernel"
)

// Life looks whether an attachment is live, from where this process stands.
func (e *Env) Life(c attachment.Claim) attachment.Life {
	return c.Judge(e.Node, e.look(c))
}

func (e *Env) look(c attachment.Claim) attachment.Sight {
	var s attachment.Sight
	for _, want := range c.Links {
		l, err := e.Kernel.LinkByIndex(want.Index)
		if err != nil {
			s.LinksUnknown = true
		} else if l != nil && l.Same(want) {
			s.Links = append(s.Links, *l)
		}
	}
	if c.Netns == "" {
		s.NetnsUnknown = true
		return s
	}
	id, err := kernel.NamespaceAt(c.Netns)
	switch {
	case err == nil:
		s.Netns = id
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, kernel.ErrNotNetns):
		// Only where the path means the same does its absence mean anything.
		s.NetnsUnknown = c.Node.Mount != e.Node.Mount
	default:
		s.NetnsUnknown = true
	}
	return s
}
