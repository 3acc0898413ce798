package install

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/backstop-cni/backstop/internal/conflist"
	"github.com/tailscale/hujson"
)

// pluginType is backstop's own, in a conflist.
const pluginType = "backstop"

// Errors of an edit.
var (
	errNoList   = errors.New("not a network configuration list: it has no array \"plugins\"")
	errNoPlugin = errors.New("the list has no plugin: backstop stands behind one")
)

// parse gives a list's tree, in which every byte is kept, and its plugins.
func parse(b []byte) (tree hujson.Value, plugins *hujson.Array, err error) {
	if !json.Valid(b) { // hujson takes comments, too, which no runtime does
		var x any
		return tree, nil, fmt.Errorf("not JSON: %w", json.Unmarshal(b, &x))
	}
	if tree, err = hujson.Parse(b); err != nil {
		return tree, nil, err
	}
	list, ok := tree.Value.(*hujson.Object)
	if !ok {
		return tree, nil, errNoList
	}
	for i := range list.Members {
		if name, ok := list.Members[i].Name.Value.(hujson.Literal); ok && name.String() == "plugins" {
			plugins, _ = list.Members[i].Value.Value.(*hujson.Array)
		}
	}
	if plugins == nil {
		return tree, nil, errNoList
	}
	return tree, plugins, nil
}

func types(a *hujson.Array) (out []string) {
	for _, e := range a.Elements {
		out = append(out, conflist.Type(e.Pack()))
	}
	return out
}

// with gives the list with backstop's entry at its end, in the list's own layout. A list that has one is left as it is; one that
// has it in another place is an error.
func with(list []byte, e entry) ([]byte, error) {
	tree, plugins, err := parse(list)
	if err != nil {
		return nil, err
	}
	n := len(plugins.Elements)
	if n == 0 {
		return nil, errNoPlugin
	}
	switch i := slices.Index(types(plugins), pluginType); {
	case i == n-1:
		return list, nil
	case i >= 0:
		return nil, fmt.Errorf("backstop is plugin %d of %d: it must be the last one; take it out (`backstopctl uninstall`) and install again", i+1, n)
	}
	last := &plugins.Elements[n-1]
	before := slices.Clone(last.BeforeExtra) // the white space that the layout puts before an element
	text, err := layOut(e, last.Pack(), string(before))
	if err != nil {
		return nil, err
	}
	added, err := hujson.Parse(text)
	if err != nil {
		return nil, err
	}
	added.BeforeExtra = before
	// What stands between the last element and the bracket stays there.
	plugins.Elements = append(plugins.Elements, added)
	return tree.Pack(), nil
}

// layOut writes the entry like the element before it: on one line if that is, else with its indents.
func layOut(e entry, like []byte, before string) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(e); err != nil {
		return nil, err
	}
	compact := bytes.TrimSpace(b.Bytes())
	line, isLines := cutLast(before)
	if !isLines {
		return compact, nil
	}
	first, inLines := strings.CutPrefix(string(bytes.TrimSpace(like)), "{\n")
	if !inLines {
		return compact, nil
	}
	indent := first[:len(first)-len(strings.TrimLeft(first, " \t"))]
	var out bytes.Buffer
	if err := json.Indent(&out, compact, line, strings.TrimPrefix(indent, line)); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// cutLast gives what follows the last line break of white space.
func cutLast(space string) (line string, found bool) {
	i := strings.LastIndexByte(space, '\n')
	return space[i+1:], i >= 0
}

// without gives the list without backstop's entries, every other byte as it was; changed is false when there is none.
func without(list []byte) (out []byte, changed bool, err error) {
	tree, plugins, err := parse(list)
	if err != nil {
		return nil, false, err
	}
	n := len(plugins.Elements)
	plugins.Elements = slices.DeleteFunc(plugins.Elements, func(v hujson.ArrayElement) bool { return conflist.Type(v.Pack()) == pluginType })
	if len(plugins.Elements) == n {
		return list, false, nil
	}
	return tree.Pack(), true, nil
}
