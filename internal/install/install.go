package install

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/renameio/v2"
)

// backupSuffix ends the name of a file as it was before backstop came. No runtime reads such a name.
const backupSuffix = ".before-backstop"

// Options say where.
type Options struct {
	ConfDir string // of the runtime
	BinDir  string // of the CNI plugins
	Network string // "": the one that the runtime would pick
	Binary  string // the plugin to install; "": none
}

// Done is what an install did.
type Done struct {
	List    string   `json:"list"`             // the file that has the entry now
	Network string   `json:"network"`          // its name
	Primary string   `json:"primary"`          // who stands before it
	Changed bool     `json:"changed"`          // false: it had the entry already
	Backup  string   `json:"backup,omitempty"` // the file as it was
	Binary  string   `json:"binary,omitempty"` // where the plugin is, when it was put there now
	Advice  []string `json:"advice,omitempty"` // what a person should look at
}

// Install puts the plugin into its directory, and then its entry into the list. Doing it again changes nothing.
func Install(o Options) (*Done, error) {
	t, err := choose(o.ConfDir, o.Network)
	if err != nil {
		return nil, err
	}
	e, primary, advice := entryFor(t.Plugins)
	if t.underMultus {
		e.RuntimeCacheDir = multusCacheDir
	}
	d := &Done{List: t.Path, Network: t.Name, Primary: primary}
	list := t.Raw
	single := !strings.HasSuffix(t.Path, ".conflist")
	if single {
		if list, err = toList(t.Raw); err != nil {
			return nil, fmt.Errorf("%s: %w", t.Path, err)
		}
		d.List = strings.TrimSuffix(t.Path, filepath.Ext(t.Path)) + ".conflist"
	}
	out, err := with(list, e)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t.Path, err)
	}
	// The list must not name a plugin that is not there.
	if d.Binary, err = putBinary(o.Binary, o.BinDir); err != nil {
		return nil, err
	}
	if !single && bytes.Equal(out, t.Raw) {
		return d, nil
	}
	d.Changed, d.Advice = true, advice
	if d.Backup, err = backUp(t.Path, t.Raw); err != nil {
		return nil, err
	}
	if err := write(d.List, out, t.Path); err != nil {
		return nil, err
	}
	if single { // it would be read first
		if err := os.Remove(t.Path); err != nil {
			return nil, fmt.Errorf("remove the single configuration, which is a list now: %w", err)
		}
	}
	return d, nil
}

// toList makes a list of a single plugin's configuration, as libcni reads one (libcni/conf.go, ConfListFromConf).
func toList(single []byte) ([]byte, error) {
	var c struct {
		CNIVersion json.RawMessage `json:"cniVersion"`
		Name       json.RawMessage `json:"name"`
	}
	if err := json.Unmarshal(single, &c); err != nil {
		return nil, err
	}
	if c.CNIVersion == nil {
		c.CNIVersion = json.RawMessage(`"0.1.0"`) // what libcni takes it for
	}
	if c.Name == nil {
		return nil, errors.New("it has no name")
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "{\n  \"cniVersion\": %s,\n  \"name\": %s,\n  \"plugins\": [\n    ", c.CNIVersion, c.Name)
	if err := json.Indent(&out, bytes.TrimSpace(single), "    ", "  "); err != nil {
		return nil, err
	}
	out.WriteString("\n  ]\n}\n")
	return out.Bytes(), nil
}

// backUp keeps the file as it is now. One of an earlier install is older, and goes.
func backUp(path string, b []byte) (string, error) {
	to := path + backupSuffix
	return to, write(to, b, path)
}

// write replaces a file in one step, with owner and mode of another; no reader sees half of it, nor does a power cut.
func write(path string, b []byte, like string) error {
	fi, err := os.Stat(like)
	if err != nil {
		return err
	}
	f, err := renameio.NewPendingFile(path, renameio.WithPermissions(fi.Mode().Perm()), renameio.WithTempDir(filepath.Dir(path)))
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer f.Cleanup()
	if err := own(f.File, fi); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if _, err := f.Write(b); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := f.CloseAtomicallyReplace(); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// putBinary copies the plugin unless the very same one is there. It says where to, or "" when there was nothing to do.
func putBinary(from, dir string) (string, error) {
	if from == "" {
		return "", nil
	}
	b, err := os.ReadFile(from)
	if err != nil {
		return "", fmt.Errorf("read the plugin to install: %w", err)
	}
	to := filepath.Join(dir, pluginType)
	if is, err := sameFile(to, b); err != nil || is {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("make the directory for plugins: %w", err)
	}
	if err := renameio.WriteFile(to, b, 0o755, renameio.WithTempDir(dir)); err != nil {
		return "", fmt.Errorf("install the plugin: %w", err)
	}
	return to, nil
}

func sameFile(path string, want []byte) (bool, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look at the installed plugin: %w", err)
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil || fi.Size() != int64(len(want)) || fi.Mode().Perm()&0o111 == 0 {
		return false, err
	}
	is, err := io.ReadAll(f)
	return bytes.Equal(is, want), err
}
