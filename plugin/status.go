package plugin

import (
	"context"

	"github.com/backstop-cni/backstop/internal/primary"
	"github.com/backstop-cni/backstop/journal"
	"github.com/containernetworking/cni/pkg/skel"
)

// cmdStatus tells a runtime "not ready" (code 50) while the primary is down, or while an
// ADD would fail. It writes nothing, and waits for no lock that is held: containerd holds one of its own meanwhile.
func cmdStatus(args *skel.CmdArgs) error {
	cfg, cerr := strict(args)
	if cerr != nil {
		return cerr
	}
	ctx, cancel := context.WithTimeout(context.Background(), statusTime)
	defer cancel()
	if cfg.FailOnJournal {
		if err := journal.At(cfg.Journal).Ready(ctx, statusLock); err != nil {
			return fail(codeNotReady, "backstop cannot write its journal, and onJournalError is \"fail\"", advised(err))
		}
	}
	if len(cfg.Probe) == 0 {
		return nil
	}
	if !primary.Reachable(ctx, cfg.Probe, cfg.ProbeTimeout) {
		return fail(codeNotReady, "the primary plugin's daemon does not answer", nil)
	}
	return nil
}
