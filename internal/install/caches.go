package install

import (
	"encoding/json"

	"github.com/backstop-cni/backstop/internal/conflist"
	"github.com/backstop-cni/backstop/plugin"
)

// DefaultCaches are the cache directories that runtimes use without being told: libcni's own, and Multus'.
var DefaultCaches = []string{"/var/lib/cni", multusCacheDir}

// cachesOf gives those that a list's entry names.
func cachesOf(f conflist.File) (dirs []string) {
	for _, p := range f.Plugins {
		if !isBackstop(p) {
			continue
		}
		if cfg, _, err := plugin.ParseConfig(p); err == nil {
			dirs = append(dirs, cfg.RuntimeCacheDir)
		}
	}
	return dirs
}

func pluginsOf(list []byte) []json.RawMessage {
	var l struct {
		Plugins []json.RawMessage `json:"plugins"`
	}
	_ = json.Unmarshal(list, &l)
	return l.Plugins
}
