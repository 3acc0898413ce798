package install

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/backstop-cni/backstop/internal/conflist"
	"github.com/containernetworking/cni/libcni"
)

// stock are lists as primaries ship them: the examples without backstop's entry, in layouts that installers write.
func stock(t *testing.T) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	paths, err := filepath.Glob("../../examples/*/*.conflist")
	if err != nil || len(paths) < 8 {
		t.Fatalf("%d examples, %v", len(paths), err)
	}
	for _, path := range paths {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		b, _, err = conflist.Without(b, pluginType)
		if err != nil {
			t.Fatal(err)
		}
		var list any
		if err := json.Unmarshal(b, &list); err != nil {
			t.Fatal(err)
		}
		name := filepath.Base(path)
		compact, _ := json.Marshal(list)
		three, _ := json.MarshalIndent(list, "", "   ")
		tabs, _ := json.MarshalIndent(list, "\t", "\t")
		out[name+" on one line"] = compact
		out[name+" with three spaces"] = append(three, '\n')
		out[name+" with tabs"] = tabs
		out[name+" with line ends of Windows"] = []byte(strings.ReplaceAll(string(three), "\n", "\r\n"))
		out[name+" with odd spaces"] = []byte(strings.ReplaceAll(" "+strings.ReplaceAll(string(compact), "},{", "} ,\n{"), "}]", "} \n ]") + "\n\n")
	}
	return out
}

func TestTheEntryIsLastAndNothingElseChanges(t *testing.T) {
	for name, before := range stock(t) {
		t.Run(name, func(t *testing.T) {
			var plugins struct{ Plugins []json.RawMessage }
			if err := json.Unmarshal(before, &plugins); err != nil {
				t.Fatal(err)
			}
			e, _, _ := entryFor(plugins.Plugins)
			after, err := with(before, e)
			if err != nil {
				t.Fatal(err)
			}
			list, err := libcni.ConfListFromBytes(after)
			if err != nil {
				t.Fatalf("libcni does not load %s: %v", after, err)
			}
			if got := list.Plugins[len(list.Plugins)-1].Network.Type; got != pluginType || len(list.Plugins) != len(plugins.Plugins)+1 {
				t.Errorf("the last of %d plugins is %q", len(list.Plugins), got)
			}
			if again, err := with(after, e); err != nil || string(again) != string(after) {
				t.Errorf("a second time: %v\n%s", err, again)
			}
			back, changed, err := without(after)
			if err != nil || !changed || string(back) != string(before) {
				t.Errorf("taken out again: %v, %v\n%q\nwant\n%q", changed, err, back, before)
			}
		})
	}
}

func TestLayoutIsThatOfTheEntryBefore(t *testing.T) {
	list := "{\n    \"name\": \"n\",\n    \"plugins\": [\n        {\n            \"type\": \"bridge\"\n        }\n    ],\n    \"x\": 1e3\n}\n"
	got, err := with([]byte(list), entry{Type: pluginType, IPAM: &ipam{Type: "host-local"}})
	want := "{\n    \"name\": \"n\",\n    \"plugins\": [\n        {\n            \"type\": \"bridge\"\n        },\n        {\n            \"type\": \"backstop\",\n            \"ipam\": {\n                \"type\": \"host-local\"\n            }\n        }\n    ],\n    \"x\": 1e3\n}\n"
	if err != nil || string(got) != want {
		t.Errorf("%v\n%s\nwant\n%s", err, got, want)
	}
}

func TestListsThatAreLeftAlone(t *testing.T) {
	for name, c := range map[string]struct{ list, want string }{
		"not JSON":       {`{"plugins":[`, "not JSON"},
		"comments":       {"{\"plugins\":[{\"type\":\"ptp\"} /* one */]}", "not JSON"},
		"no list":        {`{"type":"ptp"}`, "no array"},
		"no object":      {`[1]`, "no array"},
		"empty":          {`{"plugins":[]}`, "no plugin"},
		"in the middle":  {`{"plugins":[{"type":"ptp"},{"type":"backstop"},{"type":"portmap"}]}`, "plugin 2 of 3"},
		"plugins object": {`{"plugins":{}}`, "no array"},
	} {
		t.Run(name, func(t *testing.T) {
			if out, err := with([]byte(c.list), entry{Type: pluginType}); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %s, %v, want %q", out, err, c.want)
			}
		})
	}
}

// What a primary's entry gets is what its example shows, which operators copy.
func TestEntriesAreThoseOfTheExamples(t *testing.T) {
	paths, _ := filepath.Glob("../../examples/*/*.conflist")
	for _, path := range paths {
		t.Run(path, func(t *testing.T) {
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			var list struct{ Plugins []json.RawMessage }
			if err := json.Unmarshal(b, &list); err != nil {
				t.Fatal(err)
			}
			n := len(list.Plugins) - 1
			got, _, advice := entryFor(list.Plugins[:n])
			var want entry
			if err := json.Unmarshal(list.Plugins[n], &want); err != nil {
				t.Fatal(err)
			}
			if len(advice) == 0 && !reflect.DeepEqual(got.Primary, want.Primary) {
				t.Errorf("primary is %+v, the example has %+v", got.Primary, want.Primary)
			}
		})
	}
}

func TestCalicoIsProbedWhereItsKubeconfigSays(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kubeconfig")
	for server, want := range map[string]string{
		"https://10.96.0.1:443": "tcp://10.96.0.1:443", "https://[fd00::1]": "tcp://[fd00::1]:443", "https://api.example:6443": "tcp://api.example:6443", "nonsense": "",
	} {
		if err := os.WriteFile(path, []byte("apiVersion: v1\nclusters:\n- name: local\n  cluster:\n    server: "+server+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		p, _ := json.Marshal(map[string]any{"type": "calico", "kubernetes": map[string]string{"kubeconfig": path}})
		e, _, advice := entryFor([]json.RawMessage{p})
		switch {
		case want == "":
			if e.Primary != nil || len(advice) != 1 || !strings.Contains(advice[0], "primary.probe") {
				t.Errorf("%s: got %+v, %q", server, e.Primary, advice)
			}
		case e.Primary == nil || e.Primary.Probe[0] != want || len(advice) > 0:
			t.Errorf("%s: got %+v, %q, want %s", server, e.Primary, advice, want)
		}
	}
}

func TestReservationsOfKnownPrimaries(t *testing.T) {
	for primary, want := range map[string]*ipam{
		`{"type":"bridge","ipam":{"type":"host-local"}}`:                    {Type: "host-local"},
		`{"type":"ptp","ipam":{"type":"host-local","dataDir":"/run/ipam"}}`: {Type: "host-local", DataDir: "/run/ipam"},
		`{"type":"flannel","delegate":{}}`:                                  {Type: "host-local"},
		`{"type":"antrea","ipam":{"type":"host-local"}}`:                    {Type: "host-local", DataDir: "/var/run/antrea/cni/networks"},
		`{"type":"calico","ipam":{"type":"calico-ipam"}}`:                   nil,
		`{"type":"aws-cni"}`:                                                nil,
		`{"type":"bridge","ipam":{"type":"dhcp"}}`:                          nil,
		`{"type":"antrea","ipam":{"type":"antrea"}}`:                        nil,
	} {
		if e, _, _ := entryFor([]json.RawMessage{json.RawMessage(primary)}); !reflect.DeepEqual(e.IPAM, want) {
			t.Errorf("%s: got %+v, want %+v", primary, e.IPAM, want)
		}
	}
}
