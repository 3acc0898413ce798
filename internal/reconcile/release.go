package reconcile

import (
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
	var mine []attachment.Reservation
	for _, r := range all {
		if r.Of(rec.Key) {
			mine = append(mine, r)
		}
	}
	return mine, err
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
	released, err := c.Release(rec.Network, func(r attachment.Reservation) bool { return r.Of(rec.Key) })
	for _, r := range released {
		x := reservation(r)
		out.Removed = append(out.Removed, x)
		out.Plan.Steps = append(out.Plan.Steps, teardown.Step{Resource: x, Verdict: teardown.Delete})
		e.log(rec.Key, "release").WithField("resource", x.String()).Info("released")
	}
	rec.Released = err == nil
	return err
}
