package replay

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/backstop-cni/backstop/attachment"
	"github.com/backstop-cni/backstop/journal"
)

// note writes a replay's outcome into its record: closed when the primary
// acknowledged.
func (p *Replayer) note(ctx context.Context, res *Result, failed error) error {
	return p.Journal.UpdateWithin(ctx, p.LockWait, func(tx *journal.Tx) error {
		r, err := tx.Get(res.Key)
		if err != nil || r == nil || r.State != attachment.Owed {
			return err // the runtime came back meanwhile: its own DEL decides
		}
		now := p.Env.Now()
		if r.Replay == nil {
			r.Replay = &attachment.Replay{}
		}
		r.Replay.BlockedBy = ""
		switch {
		case res.Verdict == Blocked:
			r.Replay.BlockedBy = res.Why
			r.Note(now, "replay blocked: %s", res.Why)
		case failed != nil:
			r.LastError = failed.Error()
			r.Note(now, "replay failed: %s", r.LastError)
		default:
			r.LastError = ""
			r.Note(now, "replayed: the primary acknowledged")
			if err := journal.Move(r, attachment.Closed); err != nil {
				return err
			}
		}
		return tx.Put(r)
	})
}

// compact makes equal JSON equal bytes, as far as white space goes.
func compact(b []byte) []byte {
	var out bytes.Buffer
	if json.Compact(&out, b) != nil {
		return b
	}
	return out.Bytes()
}
