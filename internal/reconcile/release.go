package reconcile

import (
	"errors"
	"slices"

	"github.com/backstop-cni/backstop/attachment"
	"github.com/backstop-cni/backstop/internal/ipam"
	"github.com/backstop-cni/backstop/teardown"
)

// Reservations are the addresses that host-local still holds for a record, if
// the ipam key says that it does.
func Reservations(rec *attachment.Record) ([]attachment.Reservation, error) {
	c, err := ipam.Parse(rec.Settings.IPAM)
	if err != nil || c.Type != ipam.HostLocal || rec.Released {
		return nil, err
	}
	all, err := c.List(rec.Network)
	return held(rec, all), err
}

// held gives the reservations of a record: of its container and interface, and of
// its addresses, since the container's id may have come again with another one. Files of host-local's first format name no
// interface: they count where no other does, as for host-local itself.
func held(rec *attachment.Record, all []attachment.Reservation) (exact []attachment.Reservation) {
	var first []attachment.Reservation
	for _, r := range all {
		switch ips := rec.Addresses(); {
		case !r.Of(rec.Key), len(ips) > 0 && !slices.Contains(ips, r.Address):
		case r.IfName == "":
			first = append(first, r)
		default:
			exact = append(exact, r)
		}
	}
	if len(exact) == 0 {
		return first
	}
	return exact
}

// PlanRelease adds the reservations to a plan, behind everything else.
func PlanRelease(rec *attachment.Record, p *teardown.Plan) {
	rs, err := Reservations(rec)
	if err != nil {
		p.Notes = append(p.Notes, "reservations cannot be read: "+err.Error())
	}
	for _, r := range rs {
		p.Steps = append(p.Steps, teardown.Step{Resource: reservation(r), Verdict: teardown.Delete})
	}
}

func reservation(r attachment.Reservation) attachment.Resource {
	return attachment.Resource{Kind: attachment.KindReservation, Share: attachment.Own, Reservation: &r}
}

// Release gives back what host-local holds for a record that is torn down already.
func (e *Env) Release(rec *attachment.Record) error { return e.release(rec, &teardown.Outcome{}) }

// release gives back what host-local holds. Other IPAM plugins have to be run,
// which is a replay's business: nothing is run while the journal is locked.
func (e *Env) release(rec *attachment.Record, out *teardown.Outcome) error {
	c, err := ipam.Parse(rec.Settings.IPAM)
	if err != nil || c.Type != ipam.HostLocal || rec.Released {
		return err
	}
	wait := ipam.LockWait
	if e.waited { // one wait is enough for all: the journal is locked, and pods are waiting for it
		wait = 0
	}
	released, err := c.Release(rec.Network, wait, func(all []attachment.Reservation) []attachment.Reservation { return held(rec, all) })
	e.waited = e.waited || errors.Is(err, ipam.ErrLocked)
	for _, r := range released {
		x := reservation(r)
		out.Removed = append(out.Removed, x)
		out.Plan.Steps = append(out.Plan.Steps, teardown.Step{Resource: x, Verdict: teardown.Delete})
		e.log(rec.Key, "release").WithField("resource", x.String()).Info("released")
	}
	rec.Released = err == nil
	return err
}
