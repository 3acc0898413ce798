package model

import (
	"fmt"
	"maps"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// reboot gives the node another boot id and takes away what a reboot takes. Some pods of the new boot have by chance
// exactly what pods of the old one had: netns, index and name of the link, address.
func (w *world) reboot(o *op, _ *slot) error {
	w.boot++
	if err := w.writeBootID(); err != nil {
		return err
	}
	var same []*sandbox
	for _, s := range w.slots {
		for _, sb := range s.sandboxes {
			if !sb.alive {
				continue
			}
			if sb == s.current() && o.chance(40) && sb.reusable() {
				same = append(same, sb)
			} else if err := sb.kill(); err != nil {
				return err
			}
		}
	}
	kept := map[string]bool{}
	for _, sb := range same {
		for _, a := range sb.atts {
			maps.Copy(kept, a.need)
		}
	}
	for text := range w.bystanders {
		kept[text] = true
	}
	if err := w.wipe(func(it *item) bool { return kept[it.text] || it.kind == "link" && !w.pods(it) }); err != nil {
		return fmt.Errorf("wipe the node: %w", err)
	}
	for _, a := range w.attachments() {
		a.window = false
		if !slices.Contains(same, a.sb) {
			clear(a.made)
		}
	}
	for _, n := range w.nets {
		if !n.hostLocal && o.chance(70) {
			clear(n.reserved)
		}
		n.stop()
		if o.chance(60) {
			if err := n.start(); err != nil {
				return err
			}
		}
	}
	for _, sb := range same {
		if err := w.reincarnate(sb, o); err != nil {
			return err
		}
	}
	return nil
}

// pods says that a link is or was an attachment's.
func (w *world) pods(it *item) bool {
	return slices.ContainsFunc(w.attachments(), func(a *att) bool { return a.index == it.index && a.link == it.name })
}

// reusable says that a new pod can have all that this one has: addresses included, so its reservations are memory.
func (sb *sandbox) reusable() bool {
	return !slices.ContainsFunc(sb.atts, func(a *att) bool {
		return !a.live() || !a.known || a.net.hostLocal || a.index == 0 || len(a.need) == 0
	})
}

// reincarnate makes a new pod of the new boot out of what an old one had.
func (w *world) reincarnate(old *sandbox, o *op) error {
	w.serial++
	sb := &sandbox{id: fmt.Sprintf("%02xr%s%d", (w.serial*37)%256, old.slot.name, w.serial), slot: old.slot, alive: true}
	sb.path = "/run/netns/" + sb.id
	if err := os.WriteFile(sb.path, nil, 0o600); err != nil {
		return err
	}
	if err := unix.Mount(old.path, sb.path, "none", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("bind %s: %w", sb.path, err)
	}
	if err := old.kill(); err != nil {
		return err
	}
	old.slot.sandboxes = append(old.slot.sandboxes, sb)
	for _, was := range old.atts {
		a := *was
		a.ContainerID, a.sb, a.window, a.known, a.cached, a.deleted, a.forgotten = sb.id, sb, true, false, false, false, false
		a.need, a.made = maps.Clone(was.need), maps.Clone(was.made)
		clear(was.need)
		clear(was.made)
		delete(a.net.reserved, was.owner())
		a.net.reserved[a.owner()] = a.ips
		a.result = a.makeResult()
		sb.atts = append(sb.atts, &a)
		w.atts[a.Key] = &a
		w.note("  %s is what %s was", &a, was)
	}
	if o.chance(50) {
		for _, a := range sb.atts {
			if err := w.finishAdd(a); err != nil {
				return err
			}
		}
	}
	return nil
}
