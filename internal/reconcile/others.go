package reconcile

import (
	"errors"
	"fmt"
	"slices"

	"github.com/backstop-cni/backstop/attachment"
	"github.com/backstop-cni/backstop/journal"
	"github.com/backstop-cni/backstop/teardown"
)

// SharingAddress gives the other open records with one of the record's
// addresses, or with an own link of one of its links' names that is another device. One that cannot be decoded is left
// out: it must not keep a new pod from being recorded.
func (e *Env) SharingAddress(tx *journal.Tx, r *attachment.Record) ([]teardown.Other, error) {
	o := others{e: e, tx: tx, self: r.Key}
	o.byAddress(r)
	for _, err := range o.unread {
		e.log(r.Key, "claims").WithError(err).Warn("a record that shares an address or a link's name cannot be read")
	}
	return o.found, o.err
}

// Sharing gives every other open record that may use what this one has: the
// above, and those with the very same own link. One that cannot be decoded is an error unless it is dead: what it may
// claim is not known.
func (e *Env) Sharing(tx *journal.Tx, r *attachment.Record) ([]teardown.Other, error) {
	o := others{e: e, tx: tx, self: r.Key}
	o.byAddress(r)
	for _, l := range r.OwnLinks() {
		o.takeAll(tx.ByLink(l.Name, l.Index))
	}
	return o.found, errors.Join(append(o.unread, o.err)...)
}

type others struct {
	e      *Env
	tx     *journal.Tx
	self   attachment.Key
	found  []teardown.Other
	dead   []attachment.Key // by their claims
	unread []error
	err    error
}

func (o *others) byAddress(r *attachment.Record) {
	for _, ip := range r.Addresses() {
		cs, err := o.tx.ByIP(ip)
		o.failed(err)
		for _, c := range cs {
			if o.e.Life(c) == attachment.Dead {
				o.dead = append(o.dead, c.Key)
			}
			o.take(c.Key)
		}
	}
	for _, l := range r.OwnLinks() {
		o.takeAll(o.tx.ByLinkName(l.Name, l.Index))
	}
	for _, name := range r.BareNames() {
		o.takeAll(o.tx.ByLinkName(name, noIndex))
	}
}

// noIndex is none that a device has.
const noIndex = -1

func (o *others) failed(err error) {
	if err != nil && o.err == nil {
		o.err = err
	}
}

func (o *others) takeAll(keys []attachment.Key, err error) {
	o.failed(err)
	for _, k := range keys {
		o.take(k)
	}
}

func (o *others) take(k attachment.Key) {
	if k == o.self || o.has(k) {
		return
	}
	r, err := o.tx.Get(k)
	switch {
	case err != nil && !slices.Contains(o.dead, k):
		o.unread = append(o.unread, fmt.Errorf("record %s: %w", k, err))
	case err == nil && r != nil:
		o.found = append(o.found, teardown.Other{Record: r, Life: o.e.Life(r.Claim())})
	}
}

func (o *others) has(k attachment.Key) bool {
	return slices.ContainsFunc(o.found, func(x teardown.Other) bool { return x.Record.Key == k })
}
