// Package redact takes secrets out of what backstopctl prints. What a record keeps for a replay, the runtime's arguments
// and the list with all its plugins' configurations, may have tokens in it that somebody else put there.
package redact

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/backstop-cni/backstop/attachment"
)

// Mark stands for a value that is not shown.
const Mark = "***"

// wellKnown are the CNI_ARGS that runtimes give and that name the pod; any other one may be anything.
var wellKnown = []string{"IgnoreUnknown", "K8S_POD_NAME", "K8S_POD_NAMESPACE", "K8S_POD_INFRA_CONTAINER_ID", "K8S_POD_UID"}

// words make a JSON key one of a secret, wherever they are in it and in either case.
const words = `token|passw|passphrase|secret|key|auth|credential|bearer|cookie|private|cert`

var (
	secret   = regexp.MustCompile(`(?i)` + words)
	userinfo = regexp.MustCompile(`(://)[^/@\s"]+@`)
	inText   = regexp.MustCompile(`(?i)([\w.-]*(?:` + words + `)[\w.-]*\\?["']?\s*[:=]\s*\\?["']?)(?:Bearer\s+)?[^\s"',;&\\]+`)
)

// Text takes out of a sentence, an error of a plugin for instance, what looks like KEY=VALUE or KEY: VALUE of a
// secret, and the user of a URL.
func Text(s string) string {
	return inText.ReplaceAllString(userinfo.ReplaceAllString(s, "${1}"+Mark+"@"), "${1}"+Mark)
}

// Record gives a copy that may be shown, and where in it something was taken out.
func Record(r *attachment.Record) (*attachment.Record, []string) {
	o, f := *r, finder{}
	o.CNIArgs = f.args("cniArgs", r.CNIArgs)
	o.PrevResult = f.raw("prevResult", r.PrevResult)
	o.Settings.IPAM = f.raw("settings.ipam", r.Settings.IPAM)
	o.Settings.Probe = f.texts("settings.probe", r.Settings.Probe)
	o.LastError = f.text("lastError", r.LastError)
	o.Events = slices.Clone(r.Events)
	for i := range o.Events {
		o.Events[i].What = f.text(fmt.Sprintf("events[%d]", i), o.Events[i].What)
	}
	if r.Replay != nil {
		replay := *r.Replay
		replay.CacheEntry = f.cacheEntry("replay.cacheEntry", r.Replay.CacheEntry)
		o.Replay = &replay
	}
	return &o, f.found
}

// finder notes where something was taken out.
type finder struct{ found []string }

func (f *finder) note(path string) { f.found = append(f.found, path) }

func (f *finder) text(path, s string) string {
	clean := Text(s)
	if clean != s {
		f.note(path)
	}
	return clean
}

func (f *finder) texts(path string, all []string) []string {
	out := slices.Clone(all)
	for i := range out {
		if clean := userinfo.ReplaceAllString(out[i], "${1}"+Mark+"@"); clean != out[i] {
			out[i] = clean
			f.note(fmt.Sprintf("%s[%d]", path, i))
		}
	}
	return out
}

// args is for CNI_ARGS, KEY=VALUE;KEY=VALUE: no key but the well-known ones says what its value is.
func (f *finder) args(path, s string) string {
	if s == "" {
		return s
	}
	parts := strings.Split(s, ";")
	for i, p := range parts {
		k, v, _ := strings.Cut(p, "=")
		if v == "" && !strings.Contains(p, "=") {
			k, v = "", p // no pair at all
		}
		if v == "" || slices.Contains(wellKnown, k) {
			continue
		}
		f.note(path + "." + k)
		if parts[i] = k + "=" + Mark; k == "" {
			parts[i] = Mark
		}
	}
	return strings.Join(parts, ";")
}

// raw is for JSON as it came. What is none cannot be looked through, and is not shown.
func (f *finder) raw(path string, b json.RawMessage) json.RawMessage {
	if len(b) == 0 {
		return b
	}
	v, err := decode(b)
	if err != nil {
		f.note(path)
		return json.RawMessage(`"` + Mark + `"`)
	}
	before := len(f.found)
	v = f.value(path, v)
	if len(f.found) == before {
		return b // as it came
	}
	out, err := json.Marshal(v)
	if err != nil {
		return json.RawMessage(`"` + Mark + `"`)
	}
	return out
}

func decode(b []byte) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber() // a number comes out as it went in
	err = d.Decode(&v)
	return v, err
}

func (f *finder) value(path string, v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			at := path + "." + k
			if secret.MatchString(k) && x != nil && x != "" {
				f.note(at)
				v[k] = Mark
				continue
			}
			v[k] = f.value(at, x)
		}
	case []any:
		for i := range v {
			v[i] = f.value(fmt.Sprintf("%s[%d]", path, i), v[i])
		}
	case string:
		if clean := userinfo.ReplaceAllString(v, "${1}"+Mark+"@"); clean != v {
			f.note(path)
			return clean
		}
	}
	return v
}

// cacheEntry is for libcni's entry: the list in it is base64, the arguments are pairs.
func (f *finder) cacheEntry(path string, b json.RawMessage) json.RawMessage {
	if len(b) == 0 {
		return b
	}
	var entry map[string]json.RawMessage
	if json.Unmarshal(b, &entry) != nil {
		f.note(path)
		return json.RawMessage(`"` + Mark + `"`)
	}
	before := len(f.found)
	for k, v := range entry {
		at := path + "." + k
		switch k {
		case "config":
			entry[k] = f.config(at, v)
		case "cniArgs":
			entry[k] = f.pairs(at, v)
		default:
			entry[k] = f.raw(at, v)
		}
	}
	if len(f.found) == before {
		return b
	}
	out, err := json.Marshal(entry)
	if err != nil {
		return json.RawMessage(`"` + Mark + `"`)
	}
	return out
}

func (f *finder) config(path string, v json.RawMessage) json.RawMessage {
	var list []byte // base64, as encoding/json has it
	if json.Unmarshal(v, &list) != nil {
		f.note(path)
		return json.RawMessage(`"` + Mark + `"`)
	}
	before := len(f.found)
	clean := f.raw(path, list)
	if len(f.found) == before {
		return v
	}
	out, _ := json.Marshal([]byte(clean))
	return out
}

func (f *finder) pairs(path string, v json.RawMessage) json.RawMessage {
	var pairs [][]string
	if json.Unmarshal(v, &pairs) != nil {
		f.note(path)
		return json.RawMessage(`"` + Mark + `"`)
	}
	before := len(f.found)
	for _, p := range pairs {
		if len(p) > 0 && slices.Contains(wellKnown, p[0]) {
			continue
		}
		for i := 1; i < len(p); i++ {
			f.note(path + "." + p[0])
			p[i] = Mark
		}
	}
	if len(f.found) == before {
		return v
	}
	out, _ := json.Marshal(pairs)
	return out
}
