package attachment

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Key names an attachment: one interface of one container in one network
// (CNI spec 1.1, "Attachment"). The spec's own identity is (ContainerID, IfName);
// Network tells two journals' worth of lists apart.
type Key struct {
	Network     string `json:"network"`
	ContainerID string `json:"containerID"`
	IfName      string `json:"ifName"`
}

// String gives the form in which commands take and print a key.
func (k Key) String() string { return k.Network + "/" + k.ContainerID + "/" + k.IfName }

// ParseKey reads the form that String writes.
func ParseKey(s string) (Key, error) {
	p := strings.Split(s, "/")
	if len(p) != 3 {
		return Key{}, fmt.Errorf("attachment %q: want NETWORK/CONTAINERID/IFNAME", s)
	}
	k := Key{Network: p[0], ContainerID: p[1], IfName: p[2]}
	return k, k.Valid()
}

// Valid reports which part of the key breaks the CNI spec's rules (network and
// container id: "[a-zA-Z0-9][a-zA-Z0-9_.-]*"; interface: at most 15 bytes, not "."
// or "..", no "/", ":" or white space). Keys become file names and index entries, so nothing
// else may pass.
func (k Key) Valid() error {
	if !identifier(k.Network) {
		return fmt.Errorf("network name %q: want a letter or digit, then letters, digits, '_', '.', '-'", k.Network)
	}
	if !identifier(k.ContainerID) {
		return fmt.Errorf("container id %q: want a letter or digit, then letters, digits, '_', '.', '-'", k.ContainerID)
	}
	n := k.IfName
	if n == "" || len(n) > 15 || n == "." || n == ".." || strings.ContainsFunc(n, forbidden) {
		return fmt.Errorf("interface name %q: want 1 to 15 bytes without '/', ':' and white space", n)
	}
	return nil
}

// identifier is "[a-zA-Z0-9][a-zA-Z0-9_.-]*": compiling that costs each start of
// the plugin more than all its matching.
func identifier(s string) bool {
	for i, c := range []byte(s) {
		alnum := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
		if !alnum && (i == 0 || c != '_' && c != '.' && c != '-') {
			return false
		}
	}
	return s != ""
}

// forbidden are a '/', ':' or white space; NUL, which ends a name in the kernel; and bytes that
// are no UTF-8: JSON would store another name than was asked for.
func forbidden(r rune) bool {
	return r == '/' || r == ':' || r == 0 || r == utf8.RuneError || unicode.IsSpace(r)
}
