package reconcile

import (
	"errors"
	"fmt"

	"github.com/backstop-cni/backstop/attachment"
	"github.com/backstop-cni/backstop/journal"
)

// ErrElsewhere says that this process is not where the records were made, so that nothing they name can be seen.
var ErrElsewhere = errors.New("this is not the host network namespace that the journal's records were made in")

// AtHome is an error when the records of this boot were all made in another
// network namespace. It is for programs that a person or a pod starts: what such a one cannot see is not gone. Where the
// runtime calls the plugin is the host. After a restart of a nested node, in the same boot, the first ADD there settles it.
func (e *Env) AtHome(tx *journal.Tx) error {
	var other *attachment.Record
	here := false
	// What cannot be decoded says nothing about the place.
	_ = tx.Each(func(r *attachment.Record) error {
		switch {
		case r.Node.Now.BootID != e.Node.Now.BootID:
		case r.Node.Netns == e.Node.Netns:
			here = true
		default:
			other = r
		}
		return nil
	})
	if other == nil || here {
		return nil
	}
	return fmt.Errorf("%w (%s, for one); run it on the host, in no pod's namespace", ErrElsewhere, other.Key)
}
