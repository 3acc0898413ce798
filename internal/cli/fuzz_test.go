package cli

import (
	"encoding/json"
	"testing"

	"github.com/backstop-cni/backstop/attachment"
)

// Whatever is imported: it is refused, or each record can be stored under a name that leads nowhere else, and can be shown.
func FuzzImport(f *testing.F) {
	f.Add([]byte(`{"attachments":[{"version":1,"network":"n","containerID":"c","ifName":"eth0","state":"owed","cniArgs":"A=b","replay":{"cacheEntry":{"config":"e30=","cniArgs":[["A","b"]]}}}],"history":[]}`))
	f.Add([]byte(`{"attachments":[{"version":1,"network":"../n","containerID":"c","ifName":"eth0","state":"owed"}]}`))
	f.Add([]byte(`{"attachments":[{"version":1,"network":"n","containerID":"c","ifName":"eth0","state":"attached","prevResult":{"token":"x"}}],"redacted":{"n/c/eth0":["prevResult.token"]}}`))
	f.Add([]byte(`[]`))
	f.Fuzz(func(t *testing.T, b []byte) {
		in, err := readExport(b)
		if err != nil {
			return
		}
		for _, r := range in.Attachments {
			if k, err := attachment.ParseKey(r.Key.String()); err != nil || k != r.Key {
				t.Errorf("key %q: %v", r.Key, err)
			}
		}
		in.hide()
		for _, r := range in.Attachments {
			if _, err := r.Encode(); err != nil {
				continue // a time that JSON cannot hold
			}
			if _, err := json.Marshal(full(r)); err != nil {
				t.Errorf("cannot be shown: %v", err)
			}
			withoutSecrets(r)
		}
	})
}
