package plugin

import (
	"encoding/base64"
	"encoding/json"
	"testing"

	"github.com/backstop-cni/backstop/internal/reconcile"
	"github.com/backstop-cni/backstop/teardown"
)

// Whatever a conflist says: it is refused, or what is in force can be used, since DEL and GC go on with it.
func FuzzParseConfig(f *testing.F) {
	for _, s := range []string{
		bare, dressed, `{}`, `[]`, `null`,
		`{"name":"n","type":"backstop","primary":{"probe":["unix:///a","tcp://h:1","file:///x","grpc+unix:///y"],"timeout":"250ms","wait":"1m"},"teardown":"always","grace":"1s","escalateAfter":0,"ipam":{"type":"host-local","dataDir":"/d"},"logLevel":"debug","logFile":"/l","onJournalError":"fail","journal":"/j","runtimeCacheDir":"/c"}`,
		`{"grace":"-1s","escalateAfter":-3,"journal":"relative","primary":{"probe":"x","timeout":0},"cni.dev/valid-attachments":null}`,
		`{"cni.dev/valid-attachments":[{"containerID":"c","ifname":"eth0"}],"cni.dev/attachments":[]}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		c, _, err := ParseConfig(b)
		if err != nil {
			return
		}
		switch c.Teardown {
		case teardown.Unreachable, teardown.Always, teardown.Never:
		default:
			t.Errorf("teardown %q", c.Teardown)
		}
		if c.Grace < 0 || c.EscalateAfter < 0 || c.Wait < 0 || c.Wait > MaxWait || c.ProbeTimeout <= 0 {
			t.Errorf("grace %v, escalateAfter %d, wait %v, timeout %v", c.Grace, c.EscalateAfter, c.Wait, c.ProbeTimeout)
		}
		for _, path := range []string{c.Journal, c.RuntimeCacheDir} {
			if path == "" || path[0] != '/' {
				t.Errorf("path %q", path)
			}
		}
		if c.PrevResult != nil && !json.Valid(c.PrevResult) {
			t.Errorf("prevResult %s", c.PrevResult)
		}
	})
}

// Whatever lies in the runtime's cache: it is passed over, or it names an attachment that can be recorded.
func FuzzCacheEntry(f *testing.F) {
	list := base64.StdEncoding.EncodeToString([]byte(`{"cniVersion":"1.1.0","name":"n","plugins":[{"type":"ptp"},{"type":"backstop"}]}`))
	f.Add([]byte(`{"kind":"cniCacheV1","containerId":"c","config":"` + list + `","ifName":"eth0","networkName":"n","netns":"/run/netns/c","cniArgs":[["K8S_POD_NAME","web"]],"result":{"ips":[]}}`))
	f.Add([]byte(`{"kind":"cniCacheV1","containerId":"../c","config":"e30=","networkName":"n"}`))
	f.Add([]byte(`{"config":7}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		e, ok := reconcile.ParseCacheEntry(b)
		if !ok {
			return
		}
		if add, _, _, err := OfEntry(e, e.Config); err == nil {
			if err := add.Key.Valid(); err != nil {
				t.Error(err)
			}
		}
	})
}
