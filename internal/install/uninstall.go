package install

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/backstop-cni/backstop/internal/conflist"
	"github.com/backstop-cni/backstop/internal/reconcile"
)

// Undone is what an uninstall did, or would do.
type Undone struct {
	Lists    []string `json:"lists"`            // files that lost the entry
	Restored []string `json:"restored"`         // single configurations that are back
	Binary   string   `json:"binary,omitempty"` // the plugin's file, when it goes
	// Holds says why the binary stays: as long as anything names the plugin, a DEL needs it to succeed.
	Holds []string `json:"holds,omitempty"`
}

// Uninstall takes the entry out of the lists and then, when nothing names the plugin any more, the binary out of its
// directory. caches are the runtimes' cache directories. With dryRun nothing is changed.
func Uninstall(o Options, caches []string, dryRun bool) (*Undone, error) {
	files, _, err := conflist.Read(o.ConfDir)
	if err != nil {
		return nil, err
	}
	u := &Undone{Lists: []string{}, Restored: []string{}}
	for _, f := range files {
		named := slices.ContainsFunc(f.Plugins, isBackstop)
		switch {
		case !named:
		case o.Network != "" && f.Name != o.Network:
			u.Holds = append(u.Holds, fmt.Sprintf("%s has an entry for it", f.Path))
		default:
			if err := u.takeOut(f, dryRun); err != nil {
				return u, fmt.Errorf("%s: %w", f.Path, err)
			}
			caches = append(caches, cachesOf(f)...)
		}
	}
	held, err := cached(caches)
	if err != nil {
		return u, err
	}
	u.Holds = append(u.Holds, held...)
	return u, u.removeBinary(filepath.Join(o.BinDir, pluginType), dryRun)
}

func isBackstop(p json.RawMessage) bool { return conflist.Type(p) == pluginType }

func (u *Undone) takeOut(f conflist.File, dryRun bool) error {
	out, _, err := without(f.Raw)
	if err != nil {
		return err
	}
	if _, plugins, err := parse(out); err == nil && len(plugins.Elements) == 0 {
		return errors.New("backstop is its only plugin: remove the file, or give it a primary")
	}
	single, original := singleBefore(f.Path, out)
	if single != "" {
		u.Restored = append(u.Restored, single)
	} else {
		u.Lists = append(u.Lists, f.Path)
	}
	if dryRun {
		return nil
	}
	if single != "" {
		if err := write(single, original, f.Path); err != nil {
			return err
		}
		return errors.Join(os.Remove(f.Path), os.Remove(single+backupSuffix))
	}
	if err := write(f.Path, out, f.Path); err != nil {
		return err
	}
	// A back-up that says the same is not needed any more; another one is a person's to look at.
	if b, err := os.ReadFile(f.Path + backupSuffix); err == nil && bytes.Equal(b, out) {
		return os.Remove(f.Path + backupSuffix)
	}
	return nil
}

// singleBefore gives the single configuration that a list was made of, if the list says nothing else since.
func singleBefore(list string, now []byte) (path string, original []byte) {
	for _, ext := range []string{".conf", ".json"} {
		path := strings.TrimSuffix(list, ".conflist") + ext
		b, err := os.ReadFile(path + backupSuffix)
		if err != nil {
			continue
		}
		if was, err := toList(b); err == nil && bytes.Equal(was, now) {
			return path, b
		}
	}
	return "", nil
}

// cached says which results of the runtimes' caches name the plugin.
func cached(dirs []string) (held []string, err error) {
	slices.Sort(dirs)
	for _, dir := range slices.Compact(dirs) {
		dir = filepath.Join(dir, "results")
		names, rerr := os.ReadDir(dir)
		if rerr != nil && !errors.Is(rerr, fs.ErrNotExist) {
			err = errors.Join(err, fmt.Errorf("read the runtime's cache: %w", rerr))
		}
		n, first := 0, ""
		for _, name := range names {
			e, ok := reconcile.ParseCacheEntry(reconcile.ReadCacheEntry(filepath.Join(dir, name.Name())))
			if ok && slices.ContainsFunc(pluginsOf(e.Config), isBackstop) {
				if n++; n == 1 {
					first = name.Name()
				}
			}
		}
		if n > 0 {
			held = append(held, fmt.Sprintf("%d cached results in %s name it, %s among them: their pods' DELs will call it", n, dir, first))
		}
	}
	return held, err
}

func (u *Undone) removeBinary(path string, dryRun bool) error {
	if len(u.Holds) > 0 {
		return nil
	}
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	u.Binary = path
	if dryRun {
		return nil
	}
	if err := os.Remove(path); err != nil {
		return fmt.Errorf("remove the plugin: %w", err)
	}
	return nil
}
