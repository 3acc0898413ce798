package install

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/backstop-cni/backstop/internal/conflist"
)

// multusTypes hand pods on to other lists.
var multusTypes = []string{"multus", "multus-shim"}

// multusCacheDir is where Multus has libcni keep its results.
const multusCacheDir = "/var/lib/cni/multus"

// target is the file that gets the entry.
type target struct {
	conflist.File
	underMultus bool
}

// choose gives the configuration that the runtime would pick: the first one in lexical order or, with a network, the one of that
// name. Where Multus is the first, it is the one that Multus hands on to.
func choose(dir, network string) (t target, err error) {
	files, bad, err := conflist.Read(dir)
	if err != nil {
		return t, err
	}
	i := slices.IndexFunc(files, func(f conflist.File) bool {
		return len(f.Plugins) > 0 && slices.Contains(multusTypes, conflist.Type(f.Plugins[0]))
	})
	var multus *conflist.File
	if i == 0 {
		multus = &files[0]
		files = files[1:]
	}
	at := 0
	if network != "" {
		at = slices.IndexFunc(files, func(f conflist.File) bool { return f.Name == network })
	} else if multus != nil {
		if at, err = delegate(*multus, files); err != nil {
			return t, err
		}
	}
	there := at >= 0 && at < len(files)
	for _, b := range bad { // the runtime may mean one that cannot be read now
		if !there || network == "" && b.Path < files[at].Path {
			err = errors.Join(err, b)
		}
	}
	if !there {
		return t, errors.Join(nothing(dir, network), err)
	}
	return target{files[at], multus != nil}, err
}

func nothing(dir, network string) error {
	if network != "" {
		return fmt.Errorf("no configuration in %s is of a network %q", dir, network)
	}
	return fmt.Errorf("%s has no configuration yet: install the primary CNI first, or leave `backstopctl install --watch` running", dir)
}

// delegate finds the list that Multus' own configuration names.
func delegate(multus conflist.File, files []conflist.File) (int, error) {
	var c struct {
		ClusterNetwork string            `json:"clusterNetwork"`
		Delegates      []json.RawMessage `json:"delegates"`
	}
	if err := json.Unmarshal(multus.Plugins[0], &c); err != nil {
		return -1, fmt.Errorf("%s: %w", multus.Path, err)
	}
	if len(c.Delegates) > 0 {
		return -1, fmt.Errorf("%s has its delegates within: add the entry to plugins of the first delegate by hand, see docs/install.md", multus.Path)
	}
	if c.ClusterNetwork == "" {
		return 0, nil
	}
	i := slices.IndexFunc(files, func(f conflist.File) bool {
		return f.Name == c.ClusterNetwork || f.Path == c.ClusterNetwork || filepath.Base(f.Path) == c.ClusterNetwork
	})
	if i < 0 {
		return -1, fmt.Errorf("%s hands on to %q, which is not in this directory: name its list's network with --network, and its directory with --conf-dir", multus.Path, c.ClusterNetwork)
	}
	return i, nil
}
