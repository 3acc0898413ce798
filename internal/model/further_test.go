package model

import (
	"errors"
	"fmt"
	"net"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// A DEL while the primary is away leaves a pod's further interfaces to the plugins that are called next.

func (a *att) isFurther(index int) bool { return slices.Contains(a.further, index) }

// plumbFurther gives the pod another veth, in place of an earlier ADD's.
func (w *world) plumbFurther(a *att, ns int) error {
	for _, i := range a.further {
		old := &netlink.GenericLink{LinkAttrs: netlink.LinkAttrs{Index: i}}
		if err := w.nl.LinkDel(old); err != nil && !errors.Is(err, unix.ENODEV) {
			return fmt.Errorf("remove link %d of an earlier ADD: %w", i, err)
		}
	}
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.Flags = fmt.Sprintf("x%d", w.serial), net.FlagUp
	veth := &netlink.Veth{LinkAttrs: attrs, PeerName: fmt.Sprintf("v4if%d", w.serial), PeerNamespace: netlink.NsFd(ns)}
	if err := w.nl.LinkAdd(veth); err != nil {
		return fmt.Errorf("add %s: %w", attrs.Name, err)
	}
	l, err := w.nl.LinkByName(attrs.Name)
	if err != nil {
		return err
	}
	a.further = append(a.further, l.Attrs().Index)
	a.furtherNames = [2]string{attrs.Name, veth.PeerName}
	return nil
}

// furtherInterfaces are its part of the prevResult.
func (a *att) furtherInterfaces() (out []any) {
	if a.furtherNames[0] == "" {
		return nil
	}
	return []any{map[string]any{"name": a.furtherNames[0]}, map[string]any{"name": a.furtherNames[1], "sandbox": a.sb.path}}
}
