package cli

import (
	"errors"

	"golang.org/x/sys/unix"

	"github.com/backstop-cni/backstop/journal"
)

// whatToDo is what an operator does about a journal that cannot be used, and what becomes of pods meanwhile; "" where the
// error says it all.
func whatToDo(err error) string {
	todo := journal.Advice(err)
	if todo == "" && errors.Is(err, unix.EPERM) {
		return "run it as root with CAP_NET_ADMIN, which reads netfilter and removes, and CAP_SYS_ADMIN, which enters a pod's network namespace"
	}
	if todo == "" || errors.Is(err, journal.ErrDamaged) {
		return todo
	}
	return todo + "; pods start meanwhile and their records wait in the spool (`backstopctl list` says where), unless onJournalError is \"fail\""
}
