package journal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/backstop-cni/backstop/attachment"
)

// Salvage reads the records out of a file whose pages do not fit together any more: wherever one's JSON is whole. Old
// versions lie beside newer ones, in pages that were free: of each attachment the one with the latest event counts.
func Salvage(path string) ([]*attachment.Record, error) {
	f, err := openNoFollow(path, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	latest := map[attachment.Key]*attachment.Record{}
	var order []attachment.Key
	begin := []byte(`{"version":`)
	for i := bytes.Index(b, begin); i >= 0; {
		var raw json.RawMessage
		step := len(begin)
		if json.NewDecoder(bytes.NewReader(b[i:])).Decode(&raw) == nil {
			if r, err := attachment.Decode(raw); err == nil {
				old, seen := latest[r.Key]
				if !seen {
					order = append(order, r.Key)
				}
				if !seen || !lastEvent(r).Before(lastEvent(old)) {
					latest[r.Key] = r
				}
				step = len(raw)
			}
		}
		next := bytes.Index(b[i+step:], begin)
		if next < 0 {
			break
		}
		i += step + next
	}
	var out []*attachment.Record
	for _, k := range order {
		out = append(out, latest[k])
	}
	return out, nil
}

func lastEvent(r *attachment.Record) time.Time {
	if len(r.Events) == 0 {
		return time.Time{}
	}
	return r.Events[len(r.Events)-1].At
}
