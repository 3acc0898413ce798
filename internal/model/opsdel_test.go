package model

import (
	"github.com/backstop-cni/backstop/attachment"
)

// pick chooses one of the slot's last sandboxes, the current one more often than not.
func (s *slot) pick(o *op) *sandbox {
	n := len(s.sandboxes)
	if n == 0 {
		return nil
	}
	if o.chance(60) {
		return s.sandboxes[n-1]
	}
	return s.sandboxes[n-1-o.rand.IntN(min(n, 6))]
}

// stop is a pod's end as it should be: DEL of each attachment, then the namespace.
func (w *world) stop(o *op, s *slot) error {
	sb := s.current()
	if sb == nil {
		return nil
	}
	for _, a := range sb.atts {
		if len(a.ips) == 0 {
			continue
		}
		w.note("  DEL of %s", a)
		if err := w.chainDel(a, delOptions{netns: "own", crio: o.chance(20)}); err != nil {
			return err
		}
	}
	return sb.kill()
}

// del is a DEL of one attachment, however late and odd. The namespace stays.
func (w *world) del(o *op, s *slot) error {
	a := s.pickAtt(o)
	if a == nil {
		return nil
	}
	d := delOptions{netns: w.oddNetns(o), crio: o.chance(20)}
	w.note("  DEL of %s netns %q", a, d.netns)
	return w.chainDel(a, d)
}

func (s *slot) pickAtt(o *op) *att {
	sb := s.pick(o)
	if sb == nil {
		return nil
	}
	if a := sb.atts[o.rand.IntN(len(sb.atts))]; len(a.ips) > 0 {
		return a
	}
	return nil
}

func (w *world) delTwice(o *op, s *slot) error {
	a := s.pickAtt(o)
	if a == nil {
		return nil
	}
	for range 2 {
		w.note("  DEL of %s", a)
		if err := w.chainDel(a, delOptions{netns: "own"}); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) delAtOnce(o *op, s *slot) error {
	a := s.pickAtt(o)
	if a == nil {
		return nil
	}
	w.note("  DEL of %s, twice at once", a)
	return w.chainDel(a, delOptions{netns: "own", times: 2})
}

// delRenamed is what containerd sends after its network got another name.
func (w *world) delRenamed(o *op, s *slot) error {
	a := s.pickAtt(o)
	if a == nil {
		return nil
	}
	w.note("  DEL of %s under another network's name", a)
	return w.chainDel(a, delOptions{netns: "own", name: "renamed"})
}

// killOp removes a namespace without any DEL, or long after it.
func (w *world) killOp(o *op, s *slot) error {
	sb := s.pick(o)
	if sb == nil || !sb.alive {
		return nil
	}
	w.note("  netns of %s goes", sb.id)
	return sb.kill()
}

// gc is GC with a list: libcni first sends the DEL of what is cached and not listed. Or it is the bare verb with
// another runtime's list, an empty one, or none.
func (w *world) gc(o *op, s *slot) error {
	n := s.nets[o.rand.IntN(len(s.nets))]
	extra := map[string]any{}
	valid := []any{}
	switch o.rand.IntN(5) {
	case 0, 1:
		for _, a := range w.attachments() {
			if a.net != n {
				continue
			}
			if a.stands() {
				valid = append(valid, map[string]any{"containerID": a.ContainerID, "ifname": a.IfName})
			} else if a.cached {
				w.note("  GC's DEL of %s", a)
				if err := w.chainDel(a, delOptions{netns: "own"}); err != nil {
					return err
				}
			}
		}
		extra["cni.dev/valid-attachments"], extra["cni.dev/attachments"] = valid, valid
	case 2:
		extra["cni.dev/valid-attachments"] = valid // another runtime's
	case 3:
		extra["cni.dev/attachments"] = nil
	}
	w.note("  GC of %s with %v", n.name, extra)
	_, code, err := w.plugin(call{verb: "GC", a: &att{net: n, Key: attachment.Key{Network: n.name}}, extra: extra})
	return w.wantCode("GC", code, err, 0)
}
