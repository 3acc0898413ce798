// Package conflist reads network configuration lists as they lie in a
// runtime's configuration directory.
package conflist

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// File is one list, or single-plugin configuration, of a directory.
type File struct {
	Path    string
	Name    string // of the network
	Raw     []byte
	Plugins []json.RawMessage
}

// BadFile is one that no runtime could use.
type BadFile struct {
	Path string
	Err  error
}

func (b BadFile) Error() string { return b.Path + ": " + b.Err.Error() }
func (b BadFile) Unwrap() error { return b.Err }

// Read gives the configurations of a directory in lexical order, which is the
// order in which runtimes look. Files that are no JSON are left out and reported in bad.
func Read(dir string) (files []File, bad []BadFile, err error) {
	names, err := os.ReadDir(dir)
	if os.IsNotExist(err) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read conf directory: %w", err)
	}
	for _, n := range names {
		if !slices.Contains([]string{".conflist", ".conf", ".json"}, filepath.Ext(n.Name())) {
			continue
		}
		path := filepath.Join(dir, n.Name())
		b, err := os.ReadFile(path)
		if err != nil {
			bad = append(bad, BadFile{path, fmt.Errorf("cannot be read: %w", err)})
			continue
		}
		var l struct {
			Name    string            `json:"name"`
			Plugins []json.RawMessage `json:"plugins"`
		}
		if err := json.Unmarshal(b, &l); err != nil {
			bad = append(bad, BadFile{path, fmt.Errorf("not a network configuration: %w", err)})
			continue
		}
		if l.Plugins == nil {
			l.Plugins = []json.RawMessage{b}
		}
		files = append(files, File{Path: path, Name: l.Name, Raw: b, Plugins: l.Plugins})
	}
	return files, bad, nil
}

// ByName gives the list of a network, the first in lexical order.
func ByName(dir, network string) ([]byte, error) {
	files, _, err := Read(dir)
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		if f.Name == network && strings.HasSuffix(f.Path, ".conflist") {
			return f.Raw, nil
		}
	}
	return nil, fmt.Errorf("no list in %s is named %q", dir, network)
}

// Type reads a plugin entry's type.
func Type(plugin json.RawMessage) string {
	var p struct {
		Type string `json:"type"`
	}
	_ = json.Unmarshal(plugin, &p)
	return p.Type
}

// Without takes the entries of one type out of a list and tells how many
// others are left. Everything else stays as it is.
func Without(list []byte, typ string) (rest []byte, left int, err error) {
	var l map[string]json.RawMessage
	if err := json.Unmarshal(list, &l); err != nil {
		return nil, 0, err
	}
	var plugins []json.RawMessage
	if err := json.Unmarshal(l["plugins"], &plugins); err != nil {
		return nil, 0, fmt.Errorf("plugins: %w", err)
	}
	plugins = slices.DeleteFunc(plugins, func(p json.RawMessage) bool { return Type(p) == typ })
	if l["plugins"], err = json.Marshal(plugins); err != nil {
		return nil, 0, err
	}
	rest, err = json.Marshal(l)
	return rest, len(plugins), err
}
