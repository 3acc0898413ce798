package redact

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/backstop-cni/backstop/attachment"
)

// A record with a secret at each place where one can be. None of them comes out, in plain or in base64.
func TestNoSecretIsShown(t *testing.T) {
	list := `{"name":"n","plugins":[{"type":"a","apiToken":"s1","nested":[{"Password":"s2"}]},{"type":"b","etcd":"https://user:s3@host:2379"}]}`
	r := &attachment.Record{
		Key:        attachment.Key{Network: "n", ContainerID: "c", IfName: "eth0"},
		CNIArgs:    "IgnoreUnknown=1;K8S_POD_NAME=web-0;HARMLESS=s4;K8S_POD_NAMESPACE=default;s5",
		PrevResult: json.RawMessage(`{"cniVersion":"1.0.0","ips":[{"address":"10.0.0.1/32"}],"x":{"client_SECRET":{"deep":"s6"},"authData":["s7"],"n":12345678901234567890}}`),
		Settings:   attachment.Settings{IPAM: json.RawMessage(`{"type":"whereabouts","etcd":{"privateKey":"s8"}}`), Probe: []string{"tcp://u:s9@h:1"}},
		LastError:  `IPAM said {"token":"s10"} and password=s11, Authorization: Bearer s12`,
		Events:     []attachment.Event{{What: "replay failed: secret: s13"}},
		Replay: &attachment.Replay{CacheFile: "/var/lib/cni/results/n-c-eth0", CacheEntry: json.RawMessage(fmt.Sprintf(
			`{"kind":"cniCacheV1","containerId":"c","config":%q,"cniArgs":[["K8S_POD_UID","u-1"],["OTHER","s14"]],"capabilityArgs":{"io.x.credentials":"s15"},"result":{"key":"s16"}}`,
			base64.StdEncoding.EncodeToString([]byte(list))))},
	}
	before, _ := json.Marshal(r)
	clean, found := Record(r)
	b, err := json.Marshal(clean)
	if err != nil {
		t.Fatal(err)
	}
	shown := string(b)
	var entry struct{ Config []byte }
	if err := json.Unmarshal(clean.Replay.CacheEntry, &entry); err != nil {
		t.Fatal(err)
	}
	shown += string(entry.Config)
	for i := 1; i <= 16; i++ {
		if s := fmt.Sprintf("s%d", i); slices.Contains(strings.FieldsFunc(shown, func(r rune) bool { return strings.ContainsRune(`"=:;,@/\ {}[]`, r) }), s) {
			t.Errorf("%s is shown in %s", s, shown)
		}
	}
	for _, want := range []string{"K8S_POD_NAME=web-0", "HARMLESS=***", "u-1", "10.0.0.1/32", "12345678901234567890", "whereabouts", `"type":"a"`} {
		if !strings.Contains(shown, want) {
			t.Errorf("%s is not shown in %s", want, shown)
		}
	}
	for _, want := range []string{"cniArgs.HARMLESS", "replay.cacheEntry.config.plugins[0].apiToken", "replay.cacheEntry.cniArgs.OTHER", "settings.ipam.etcd.privateKey"} {
		if !slices.Contains(found, want) {
			t.Errorf("%s is not named in %v", want, found)
		}
	}
	if after, _ := json.Marshal(r); string(after) != string(before) {
		t.Errorf("the record itself was changed: %s", after)
	}
}

// What has no secret comes out byte by byte.
func TestWithoutSecretsNothingChanges(t *testing.T) {
	r := &attachment.Record{
		CNIArgs: "IgnoreUnknown=1;K8S_POD_NAME=a", PrevResult: json.RawMessage(`{ "b":1, "a":[1.0] }`),
		LastError: "route 10.0.0.1: network is unreachable",
		Replay:    &attachment.Replay{CacheEntry: json.RawMessage(`{"kind":"cniCacheV1","config":"e30="}`)},
	}
	clean, found := Record(r)
	a, _ := json.Marshal(r)
	b, _ := json.Marshal(clean)
	if len(found) > 0 || string(a) != string(b) || string(clean.PrevResult) != string(r.PrevResult) {
		t.Errorf("found %v, %s became %s", found, a, b)
	}
}

// What cannot be looked through is not shown.
func TestWhatIsNoJSONIsNotShown(t *testing.T) {
	r := &attachment.Record{PrevResult: json.RawMessage(`{"token":"s`), Replay: &attachment.Replay{CacheEntry: json.RawMessage(`[1]`)}}
	clean, found := Record(r)
	if string(clean.PrevResult) != `"***"` || string(clean.Replay.CacheEntry) != `"***"` || len(found) != 2 {
		t.Errorf("got %s, %s, %v", clean.PrevResult, clean.Replay.CacheEntry, found)
	}
}

// Whatever the arguments are: no value of a key that is not well known is left.
func FuzzArgs(f *testing.F) {
	for _, s := range []string{"", "IgnoreUnknown=1", "A=b;K8S_POD_NAME=x", ";;=;a=b=c", "a", "TOKEN=", "K8S_POD_NAME"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var d finder
		once := d.args("cniArgs", s)
		if strings.Count(once, ";") != strings.Count(s, ";") {
			t.Errorf("%q became %q", s, once)
		}
		for _, p := range strings.Split(once, ";") {
			k, v, ok := strings.Cut(p, "=")
			if !ok {
				k, v = "", p
			}
			if v != "" && v != Mark && !slices.Contains(wellKnown, k) {
				t.Errorf("%q became %q", s, once)
			}
		}
	})
}
