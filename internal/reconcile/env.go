// Package reconcile puts journal, plan and kernel together: it decides liveness
// on this node, tears records down within one journal session, sweeps and heals. The plugin, the commands and the agent
// share it.
package reconcile

import (
	"time"

	"github.com/backstop-cni/backstop/attachment"
	"github.com/backstop-cni/backstop/internal/kernel"
	"github.com/backstop-cni/backstop/teardown"
	"github.com/sirupsen/logrus"
)

// Env is the node as one process sees it.
type Env struct {
	Node   attachment.Node
	Kernel teardown.Kernel
	Log    *logrus.Logger
	// Call is the attachment that a plugin's call is for: its record is taken from the spool in any case.
	Call attachment.Key

	waited bool // for a host-local lock that was not had
}

// retry is when a teardown that could not finish is tried again.
const retry = 30 * time.Second

// after is a due time from now on.
func (e *Env) after(d time.Duration) attachment.Moment { return e.Now().Add(d) }

// Now reads the clocks again: a wait for the lock may have taken its time.
func (e *Env) Now() attachment.Moment {
	m, err := kernel.Now()
	if err != nil {
		return e.Node.Now // the clock of the start is better than none
	}
	return m
}

func (e *Env) log(k attachment.Key, action string) *logrus.Entry {
	return e.Log.WithFields(logrus.Fields{"network": k.Network, "containerID": k.ContainerID, "ifName": k.IfName, "action": action})
}
