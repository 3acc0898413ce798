package model

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/backstop-cni/backstop/attachment"
)

// wantCode compares an exit code.
func (w *world) wantCode(what string, code int, err error, want ...int) error {
	if err != nil || slices.Contains(want, code) {
		return err
	}
	return fmt.Errorf("%s: exit code %d, want one of %v", what, code, want)
}

// check is a CHECK of something that lives: silent when it has everything that it had.
func (w *world) check(o *op, _ *slot) error {
	all := slices.DeleteFunc(w.living(), func(a *att) bool { return !a.known || !a.holds || len(a.need) < a.had })
	if len(all) == 0 {
		return nil
	}
	a := all[o.rand.IntN(len(all))]
	out, code, err := w.plugin(call{verb: "CHECK", a: a, netns: a.sb.path, result: a.result})
	return w.wantCode("CHECK of "+a.String()+": "+out, code, err, 0)
}

func (w *world) status(_ *op, s *slot) error {
	n := s.nets[0]
	out, code, err := w.plugin(call{verb: "STATUS", a: &att{net: n, Key: attachment.Key{Network: n.name}}})
	if err == nil && (code == 0) != n.up || code != 0 && !strings.Contains(out, `"code": 50`) && !strings.Contains(out, `"code":50`) {
		return fmt.Errorf("STATUS of %s, whose daemon is up: %t, gives %d: %s", n.name, n.up, code, out)
	}
	return err
}

// daemon starts, stops, breaks or mends a daemon, or has it forget.
func (w *world) daemon(o *op, s *slot) error {
	n := s.nets[o.rand.IntN(len(s.nets))]
	switch x := o.rand.IntN(10); {
	case n.refuses || x == 0:
		n.refuses = !n.refuses
	case !n.probe: // it has no daemon
	case !n.up:
		if x < 4 {
			n.forgetSome(o)
		}
		return n.start()
	case x < 8:
		n.stop()
	default:
		n.forgetSome(o)
	}
	w.note("  %s: up %t, refuses %t", n.name, n.up, n.refuses)
	return nil
}

// forgetSome is a restart with lost state: all of it or half.
func (n *network) forgetSome(o *op) {
	all := o.chance(50)
	for _, owner := range slices.Sorted(maps.Keys(n.reserved)) {
		if all || o.chance(50) {
			delete(n.reserved, owner)
		}
	}
}

func (w *world) sweep(_ *op, _ *slot) error {
	out, code, err := w.ctl("sweep", "--yes")
	return w.wantCode("sweep: "+out, code, err, 0)
}

func (w *world) sweepElsewhere(_ *op, _ *slot) error {
	out, code, err := w.elsewhere("sweep", "--yes")
	return w.wantCode("sweep in another mount namespace: "+out, code, err, 0)
}

func (w *world) replay(o *op, _ *slot) error {
	args := []string{"replay", "--yes"}
	if o.chance(70) {
		args = append(args, "--automatic")
	}
	out, code, err := w.ctl(args...)
	return w.wantCode("replay: "+out, code, err, 0, 3)
}

func (w *world) garbage(o *op, _ *slot) error {
	args := []string{"gc", "--yes"}
	if o.chance(50) {
		args = append(args, "--runtime-cache")
	}
	out, code, err := w.ctl(args...)
	return w.wantCode("gc: "+out, code, err, 0)
}

// foreign is a bystander that an operation made, and how it goes again.
type foreign struct {
	texts  []string
	remove string // ip's words
}

// foreignOp makes something that looks like a pod's and is not, or its owner takes it away again.
func (w *world) foreignOp(o *op, _ *slot) error {
	if len(w.foreign) > 0 && o.chance(35) {
		i := o.rand.IntN(len(w.foreign))
		f := w.foreign[i]
		w.foreign = slices.Delete(w.foreign, i, i+1)
		return w.removeForeign(f)
	}
	w.serial++
	known := slices.DeleteFunc(w.living(), func(a *att) bool { return !a.known })
	switch o.rand.IntN(3) {
	case 0: // a rule for a live pod's address, made after its ADD
		if len(known) == 0 {
			return nil
		}
		a := known[o.rand.IntN(len(known))]
		ip := a.ips[o.rand.IntN(len(a.ips))]
		words := fmt.Sprintf("%s %s", []string{
			"pref 512 to %s lookup 102 ipproto tcp", "pref 513 to %s lookup main", "pref 1536 from %s lookup 77", "pref 512 to %s iif uplink lookup main"}[o.rand.IntN(4)], "protocol 99")
		words = fmt.Sprintf(words, ip)
		return w.makeForeign("rule add "+words, "rule del "+words)
	case 1: // a link with a dead pod's index
		now, err := list()
		if err != nil {
			return err
		}
		used := map[int]bool{}
		for _, it := range now.items {
			used[it.index] = true
		}
		for _, a := range w.attachments() {
			if a.index == 0 || used[a.index] {
				continue
			}
			name := fmt.Sprintf("f%d", w.serial)
			mac := ""
			if a.net.mac != nil {
				mac = " address " + a.net.mac.String()
			}
			w.note("  has the index of %s's link", a)
			return w.makeForeign(fmt.Sprintf("link add %s index %d%s type veth peer name g%d", name, a.index, mac, w.serial), "link del "+name)
		}
	case 2: // a route elsewhere, and a neighbour, for a pod's address
		if len(known) == 0 {
			return nil
		}
		ip := known[o.rand.IntN(len(known))].ips[0]
		words := fmt.Sprintf([]string{"unreachable %s metric 4000", "%s dev uplink table 77"}[o.rand.IntN(2)], ip)
		return w.makeForeign("route add "+words, "route del "+words)
	}
	return nil
}

// makeForeign runs ip and takes what has come for a bystander. Nothing else is at work.
func (w *world) makeForeign(add, del string) error {
	before, err := list()
	if err != nil {
		return err
	}
	if err := ip(add); err != nil {
		w.note("  %s: %v", add, err)
		return nil // there already
	}
	w.note("  %s", add)
	after, err := list()
	if err != nil {
		return err
	}
	f := foreign{remove: del}
	for text, n := range after.count {
		if n > before.count[text] {
			w.bystanders[text] = n
			f.texts = append(f.texts, text)
		}
	}
	w.foreign = append(w.foreign, f)
	return nil
}

// removeForeign takes a bystander away, if it is still one: an ADD may have absorbed it.
func (w *world) removeForeign(f foreign) error {
	if w.bystanders[f.texts[0]] == 0 {
		return nil
	}
	w.note("  its owner does: %s", f.remove)
	for _, text := range f.texts {
		delete(w.bystanders, text)
	}
	return ip(f.remove)
}
