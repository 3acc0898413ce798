package reconcile

import (
	"github.com/backstop-cni/backstop/attachment"
	"github.com/backstop-cni/backstop/journal"
	"github.com/backstop-cni/backstop/teardown"
)

// SharingAddress gives the other open records with one of the record's
// addresses, or with an own link of one of its links' names that is another device.
func (e *Env) SharingAddress(tx *journal.Tx, r *attachment.Record) ([]teardown.Other, error) {
	o := others{e: e, tx: tx, self: r.Key}
	for _, ip := range r.Addresses() {
		cs, err := tx.ByIP(ip)
		o.failed(err)
		for _, c := range cs {
			o.take(c.Key)
		}
	}
	for _, l := range r.OwnLinks() {
		o.takeAll(tx.ByLinkName(l.Name, l.Index))
	}
	return o.found, o.err
}

// Sharing gives every other open record that may use what this one has: the
// above, and those with the very same own link.
func (e *Env) Sharing(tx *journal.Tx, r *attachment.Record) ([]teardown.Other, error) {
	found, err := e.SharingAddress(tx, r)
	o := others{e: e, tx: tx, self: r.Key, found: found, err: err}
	for _, l := range r.OwnLinks() {
		o.takeAll(tx.ByLink(l.Name, l.Index))
	}
	return o.found, o.err
}

type others struct {
	e     *Env
	tx    *journal.Tx
	self  attachment.Key
	found []teardown.Other
	err   error
}

func (o *others) failed(err error) bool {
	if err != nil && o.err == nil {
		o.err = err
	}
	return err != nil
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
	if !o.failed(err) && r != nil {
		o.found = append(o.found, teardown.Other{Record: r, Life: o.e.Life(r.Claim())})
	}
}

func (o *others) has(k attachment.Key) bool {
	for _, x := range o.found {
		if x.Record.Key == k {
			return true
		}
	}
	return false
}
