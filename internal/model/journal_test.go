package model

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/backstop-cni/backstop/attachment"
	"github.com/backstop-cni/backstop/journal"
)

// view reads the node's journal.
func view(fn func(*journal.Tx) error) error {
	return journal.At(journal.DefaultPath).ViewWithin(context.Background(), patience, fn)
}

// record reads an attachment's open record; nil when there is none.
func record(k attachment.Key) (r *attachment.Record, err error) {
	err = view(func(tx *journal.Tx) (err error) { r, err = tx.Get(k); return err })
	return r, err
}

// stories are what the journal tells of the attachments that a text names, or names a thing of.
func (w *world) stories(text string) string {
	var b strings.Builder
	tell := func(r *attachment.Record) error {
		a := w.atts[r.Key]
		about := a != nil && (strings.Contains(text, a.ContainerID) || a.link != "" && strings.Contains(text, a.link))
		if a != nil && !about {
			for made := range a.made {
				about = about || strings.Contains(text, made)
			}
		}
		for _, ip := range r.Addresses() {
			about = about || strings.Contains(text, " "+ip.String()+" ")
		}
		if !about {
			return nil
		}
		fmt.Fprintf(&b, "%s is %s\n", r.Key, r.State)
		for _, x := range r.Resources {
			fmt.Fprintf(&b, "    %s (%s)\n", x, x.Share)
		}
		for _, e := range r.Events {
			fmt.Fprintf(&b, "  %s %s\n", e.At.Format("05.000"), e.What)
		}
		return nil
	}
	err := view(func(tx *journal.Tx) error {
		return errors.Join(tx.Each(tell), tx.History(tell))
	})
	if err != nil {
		fmt.Fprintf(&b, "the journal: %v\n", err)
	}
	return b.String()
}

// recordedInThisBoot reports whether any record, open or closed, was made since the last reboot.
func (w *world) recordedInThisBoot() (yes bool, err error) {
	look := func(r *attachment.Record) error { yes = yes || sameBoot(r, w.boot); return nil }
	err = view(func(tx *journal.Tx) error { return errors.Join(tx.Each(look), tx.History(look)) })
	return yes, err
}
