package licences

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// allowed are the licences that parts of a program under the Apache License 2.0 may be under, each with what its text
// has to say.
var allowed = []struct {
	name string // SPDX
	says []string
}{
	{"Apache-2.0", []string{"apache license version 2.0, january 2004", "terms and conditions for use, reproduction, and distribution"}},
	{"BSD-3-Clause", []string{bsdSource, bsdBinary, bsdEndorse}},
	{"BSD-2-Clause", []string{bsdSource, bsdBinary}},
	{"MIT", []string{"permission is hereby granted, free of charge, to any person obtaining a copy", "the above copyright notice and this permission notice shall be included"}},
	{"ISC", []string{"permission to use, copy, modify, and", "distribute this software for any purpose with or without fee is hereby granted"}},
}

const (
	bsdSource  = "redistributions of source code must retain the above copyright notice"
	bsdBinary  = "redistributions in binary form must reproduce the above copyright notice"
	bsdEndorse = "used to endorse or promote products derived from"
)

// others are words of licences that ask for more: one of them in a file is enough.
var others = []string{"general public license", "mozilla public license", "server side public", "business source license", "commons clause", "eclipse public", "creative commons", "common development and distribution"}

// TestLicences is `make licences`: -v shows what it found.
func TestLicences(t *testing.T) {
	modules, err := modules("../../cmd/backstop", "../../cmd/backstopctl")
	if err != nil {
		t.Fatal(err)
	}
	if len(modules) < 10 {
		t.Fatalf("go list gives only %v", modules)
	}
	for _, m := range modules {
		found, err := ofModule(m)
		if err != nil {
			t.Errorf("%s: %v", m.Path, err)
			continue
		}
		t.Logf("%-40s %s", m.Path, strings.Join(found, ", "))
	}
}

func TestWhatIsNotKnownIsRefused(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"nothing":        {"", ""},
		"words":          {"All rights reserved.", ""},
		"MIT":            {"Permission is hereby granted, free of charge,\n to any person obtaining a copy … The above copyright notice and this permission\nnotice shall be included", "MIT"},
		"half of it":     {"Permission is hereby granted, free of charge, to any person obtaining a copy", ""},
		"with another":   {"Permission is hereby granted, free of charge, to any person obtaining a copy. The above copyright notice and this permission notice shall be included. GNU General Public License", ""},
		"two BSD's, one": {"Redistributions of source code must retain the above copyright notice. Redistributions in binary form must reproduce the above copyright notice", "BSD-2-Clause"},
	} {
		found, err := recognise(c.text)
		if got := strings.Join(found, ","); got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%s: %q, %v, want %q", name, got, err, c.want)
		}
	}
}

type module struct{ Path, Dir string }

// modules are those that the programs are built from, each once.
func modules(programs ...string) (out []module, err error) {
	c := exec.Command("go", append([]string{"list", "-deps", "-json=Module"}, programs...)...)
	c.Stderr = os.Stderr
	b, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	for d := json.NewDecoder(strings.NewReader(string(b))); ; {
		var p struct{ Module *module }
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return out, nil
		} else if err != nil {
			return nil, fmt.Errorf("read go list: %w", err)
		}
		if p.Module != nil && !slices.Contains(out, *p.Module) {
			out = append(out, *p.Module)
		}
	}
}

// ofModule reads the licence files at a module's top.
func ofModule(m module) (found []string, err error) {
	files, err := os.ReadDir(m.Dir)
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		name := strings.ToLower(f.Name())
		if f.IsDir() || !strings.HasPrefix(name, "licen") && !strings.HasPrefix(name, "copying") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(m.Dir, f.Name()))
		if err != nil {
			return nil, err
		}
		of, err := recognise(string(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name(), err)
		}
		found = append(found, of...)
	}
	if len(found) == 0 {
		return nil, errors.New("there is no licence file")
	}
	return found, nil
}

// recognise names the licences in a text. One that asks for more, or none that is known, is an error.
func recognise(text string) (found []string, err error) {
	text = strings.ToLower(strings.Join(strings.Fields(text), " "))
	for _, o := range others {
		if strings.Contains(text, o) {
			return nil, fmt.Errorf("speaks of %q: look at it", o)
		}
	}
	for _, l := range allowed {
		says := func(s string) bool { return strings.Contains(text, s) }
		if !slices.ContainsFunc(l.says, func(s string) bool { return !says(s) }) && !(l.name == "BSD-2-Clause" && slices.Contains(found, "BSD-3-Clause")) {
			found = append(found, l.name)
		}
	}
	if len(found) == 0 {
		return nil, errors.New("no licence that is known: see the list in internal/licences, and ask before adding to it")
	}
	return found, nil
}
