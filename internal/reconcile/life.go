package reconcile

import (
	"errors"
	"io/fs"
	"slices"

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
		l, err := e.stillThere(want)
		if err != nil {
			s.LinksUnknown = true
		} else if l != nil {
			s.Links = append(s.Links, *l)
		}
	}
	if c.Netns == "" {
		s.NetnsUnknown = true
		return s
	}
	id, err := kernel.NamespaceAt(c.Netns)
	switch {
	case err == nil && id != c.NetnsID && !c.Node.SamePaths(e.Node):
		s.NetnsUnknown = true // the path of another mount namespace means something else here
	case err == nil:
		s.Netns = id
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, kernel.ErrNotNetns):
		// Only where the path means the same does its absence mean anything.
		s.NetnsUnknown = !c.Node.SamePaths(e.Node)
	default:
		s.NetnsUnknown = true
	}
	return s
}

// stillThere finds a link by its identity. One that has another name is known by its MAC, which must be nobody
// else's: Calico's host links all have the same, and the next pod's would keep a dead one alive.
func (e *Env) stillThere(want attachment.Link) (*attachment.Link, error) {
	l, err := e.Kernel.LinkByIndex(want.Index)
	if err != nil || l == nil || !l.Same(want) {
		return nil, err
	}
	if l.Name == want.Name {
		return l, nil
	}
	all, err := e.Kernel.Links()
	if err != nil || slices.ContainsFunc(all, func(o attachment.Link) bool { return o.Index != l.Index && o.SameByMAC(want) }) {
		return nil, err
	}
	return l, nil
}
