package adopt

import (
	"encoding/json"
	"fmt"

	"github.com/backstop-cni/backstop/internal/conflist"
	"github.com/backstop-cni/backstop/internal/reconcile"
	"github.com/backstop-cni/backstop/plugin"
)

// lists gives the networks' lists with an entry of backstop, the first of each name. A pod from before has been added by a
// list without one: what its record needs is in today's.
func (a *Adopter) lists() (map[string]conflist.File, error) {
	files, _, err := conflist.Read(a.ConfDir) // a file that cannot be read is no list that any runtime uses
	if err != nil {
		return nil, err
	}
	out := map[string]conflist.File{}
	for _, f := range files {
		if _, there := out[f.Name]; !there && has(f.Plugins) {
			out[f.Name] = f
		}
	}
	return out, nil
}

func has(plugins []json.RawMessage) bool {
	for _, p := range plugins {
		if conflist.Type(p) == "backstop" {
			return true
		}
	}
	return false
}

// add reads an entry with the settings that the network's list of today has. why says what is against it.
func (a *Adopter) add(e reconcile.CacheEntry, list conflist.File) (add reconcile.Add, why string) {
	add, cfg, problems, err := plugin.OfEntry(e, list.Raw)
	switch {
	case err != nil:
		return add, err.Error()
	case len(problems) > 0:
		return add, fmt.Sprintf("backstop's entry in %s cannot be used: %v", list.Path, problems[0])
	case cfg.Journal != a.Journal.Path():
		return add, fmt.Sprintf("backstop's entry in %s names another journal, %s", list.Path, cfg.Journal)
	}
	return add, ""
}
