package plugin

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/backstop-cni/backstop/attachment"
	"github.com/backstop-cni/backstop/internal/primary"
	"github.com/backstop-cni/backstop/journal"
	"github.com/backstop-cni/backstop/teardown"
	"github.com/sirupsen/logrus"
)

// Config is backstop's entry in a conflist (design: "Configuration in the
// conflist"). Type is the only required key.
type Config struct {
	CNIVersion string
	Name       string
	PrevResult json.RawMessage // as it came; nil when absent or null

	Probe           []string      // primary.probe
	ProbeTimeout    time.Duration // primary.timeout, for each probe
	Wait            time.Duration // primary.wait, at most MaxWait
	Teardown        teardown.Mode
	Journal         string
	FailOnJournal   bool // onJournalError is "fail"
	Grace           time.Duration
	EscalateAfter   int
	RuntimeCacheDir string
	IPAM            json.RawMessage
	LogFile         string
	LogLevel        logrus.Level

	// ValidAttachments is the runtime's list at GC; nil when the key is absent, which means unknown.
	ValidAttachments *[]GCAttachment
	Unknown          []string // keys that this version does not know
}

// GCAttachment is an entry of cni.dev/valid-attachments (CNI spec 1.1, "GC").
type GCAttachment struct {
	ContainerID string `json:"containerID"`
	IfName      string `json:"ifname"`
}

// MaxWait bounds primary.wait: kubelet gives a call two minutes, and the rest of the list needs some of it.
const MaxWait = time.Minute

// Problem is one key with a value that cannot be used; its default is in force.
type Problem struct {
	Key string // as in the conflist, with dots
	Err error
}

func (p Problem) Error() string { return fmt.Sprintf("%s: %v", p.Key, p.Err) }

// ParseConfig reads what a runtime sends on stdin. Unreadable JSON is an error; a
// key with a wrong type or an unknown word is a problem, and the verb decides whether it goes on with the default.
func ParseConfig(stdin []byte) (*Config, []Problem, error) {
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(stdin, &raw); err != nil {
		return nil, nil, fmt.Errorf("network configuration on stdin is not a JSON object: %w", err)
	}
	c := &Config{
		ProbeTimeout: 250 * time.Millisecond, Teardown: teardown.Unreachable, Journal: journal.DefaultPath,
		Grace: 2 * time.Minute, EscalateAfter: 3, RuntimeCacheDir: "/var/lib/cni", LogLevel: logrus.InfoLevel,
	}
	r := reader{keys: raw}
	r.read("cniVersion", text(&c.CNIVersion))
	r.read("name", text(&c.Name))
	r.read("prevResult", func(v json.RawMessage) error { c.PrevResult = v; return nil })
	r.read("primary", func(v json.RawMessage) error {
		var sub map[string]json.RawMessage
		if json.Unmarshal(v, &sub) != nil {
			return fmt.Errorf("want an object")
		}
		s := reader{keys: sub, prefix: "primary."}
		s.read("probe", probes(&c.Probe))
		s.read("timeout", duration(&c.ProbeTimeout, time.Millisecond, 10*time.Second))
		s.read("wait", duration(&c.Wait, 0, MaxWait))
		r.problems = append(r.problems, s.problems...)
		c.Unknown = append(c.Unknown, s.unknown()...)
		return nil
	})
	r.read("teardown", word(&c.Teardown, teardown.Unreachable, teardown.Always, teardown.Never))
	r.read("journal", path(&c.Journal))
	onError := "warn"
	r.read("onJournalError", word(&onError, "warn", "fail"))
	c.FailOnJournal = onError == "fail"
	r.read("grace", duration(&c.Grace, 0, 24*time.Hour))
	r.read("escalateAfter", count(&c.EscalateAfter))
	r.read("runtimeCacheDir", path(&c.RuntimeCacheDir))
	r.read("ipam", ipam(&c.IPAM))
	r.read("logFile", func(v json.RawMessage) error {
		if string(v) == `""` {
			return nil
		}
		return path(&c.LogFile)(v)
	})
	r.read("logLevel", level(&c.LogLevel))
	for _, k := range []string{"cni.dev/attachments", "cni.dev/valid-attachments"} {
		if v, there := raw[k]; there {
			r.read(k, func(json.RawMessage) error { return attachments(&c.ValidAttachments)(v) })
			if string(v) == "null" { // the runtime has none
				c.ValidAttachments = &[]GCAttachment{}
			}
		}
	}
	c.Unknown = append(c.Unknown, r.unknown("type", "capabilities", "runtimeConfig", "args", "dns", "disableCheck", "disableGC")...)
	slices.Sort(c.Unknown)
	return c, r.problems, nil
}

// Settings is what a later sweep has to know.
func (c *Config) Settings() attachment.Settings {
	return attachment.Settings{
		Teardown: string(c.Teardown), Probe: c.Probe, ProbeTimeout: c.ProbeTimeout, Grace: c.Grace,
		EscalateAfter: c.EscalateAfter, RuntimeCacheDir: c.RuntimeCacheDir, IPAM: c.IPAM,
	}
}

// reader takes keys out of an object one by one.
type reader struct {
	keys     map[string]json.RawMessage
	prefix   string
	seen     []string
	problems []Problem
}

func (r *reader) read(key string, into func(json.RawMessage) error) {
	r.seen = append(r.seen, key)
	v, there := r.keys[key]
	if !there || string(v) == "null" {
		return
	}
	if err := into(v); err != nil {
		r.problems = append(r.problems, Problem{r.prefix + key, err})
	}
}

func (r *reader) unknown(also ...string) []string {
	var out []string
	for k := range r.keys {
		if !slices.Contains(r.seen, k) && !slices.Contains(also, k) {
			out = append(out, r.prefix+k)
		}
	}
	return out
}

func text(into *string) func(json.RawMessage) error {
	return func(v json.RawMessage) error {
		var s string
		if json.Unmarshal(v, &s) != nil {
			return fmt.Errorf("%s: want a string", v)
		}
		*into = s
		return nil
	}
}

func word[T ~string](into *T, words ...T) func(json.RawMessage) error {
	return func(v json.RawMessage) error {
		var s string
		if json.Unmarshal(v, &s) != nil || !slices.Contains(words, T(s)) {
			return fmt.Errorf("%s: want one of %q", v, words)
		}
		*into = T(s)
		return nil
	}
}

func path(into *string) func(json.RawMessage) error {
	return func(v json.RawMessage) error {
		var s string
		if json.Unmarshal(v, &s) != nil || !filepath.IsAbs(s) || strings.ContainsRune(s, 0) {
			return fmt.Errorf("%s: want an absolute path", v)
		}
		*into = filepath.Clean(s)
		return nil
	}
}

func duration(into *time.Duration, least, most time.Duration) func(json.RawMessage) error {
	return func(v json.RawMessage) error {
		var s string
		if json.Unmarshal(v, &s) != nil {
			return fmt.Errorf(`%s: want a duration such as "250ms" or "2m"`, v)
		}
		d, err := time.ParseDuration(s)
		if err != nil || d < least || d > most {
			return fmt.Errorf(`%s: want a duration from %s to %s`, v, least, most)
		}
		*into = d
		return nil
	}
}

func count(into *int) func(json.RawMessage) error {
	return func(v json.RawMessage) error {
		var n int
		if json.Unmarshal(v, &n) != nil || n < 0 {
			return fmt.Errorf("%s: want a whole number, 0 to switch it off", v)
		}
		*into = n
		return nil
	}
}

func level(into *logrus.Level) func(json.RawMessage) error {
	return func(v json.RawMessage) error {
		var s string
		_ = json.Unmarshal(v, &s)
		l, err := logrus.ParseLevel(s)
		if err != nil {
			return fmt.Errorf(`%s: want one of "error", "warn", "info", "debug"`, v)
		}
		*into = l
		return nil
	}
}

func probes(into *[]string) func(json.RawMessage) error {
	return func(v json.RawMessage) error {
		var ps []string
		if json.Unmarshal(v, &ps) != nil {
			return fmt.Errorf("%s: want a list of strings", v)
		}
		for _, p := range ps {
			if err := primary.Validate(p); err != nil {
				return err
			}
		}
		*into = ps
		return nil
	}
}

func ipam(into *json.RawMessage) func(json.RawMessage) error {
	return func(v json.RawMessage) error {
		var i struct{ Type, DataDir *string }
		if err := json.Unmarshal(v, &i); err != nil {
			return fmt.Errorf("want an object with a string %q: %w", "type", err)
		}
		if i.Type == nil || *i.Type == "" || strings.ContainsRune(*i.Type, '/') {
			return fmt.Errorf("want the name of an IPAM plugin in %q", "type")
		}
		if i.DataDir != nil && !filepath.IsAbs(*i.DataDir) {
			return fmt.Errorf("dataDir %q: want an absolute path", *i.DataDir)
		}
		*into = v
		return nil
	}
}

func attachments(into **[]GCAttachment) func(json.RawMessage) error {
	return func(v json.RawMessage) error {
		var as []GCAttachment
		if err := json.Unmarshal(v, &as); err != nil {
			return fmt.Errorf("want a list of objects with containerID and ifname: %w", err)
		}
		*into = &as
		return nil
	}
}
