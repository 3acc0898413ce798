package attachment

import (
	"strings"
	"testing"
)

func TestKeyIsReadAsItIsWritten(t *testing.T) {
	k := Key{"aws-cni_1.0", "0a1B-2", "eth0"}
	if s := k.String(); s != "aws-cni_1.0/0a1B-2/eth0" {
		t.Fatalf("written as %q", s)
	}
	if got, err := ParseKey(k.String()); err != nil || got != k {
		t.Errorf("read as %v, %v", got, err)
	}
	for _, s := range []string{"", "net/c1", "net/c1/eth0/x", "net//eth0", "net/c1/", "/c1/eth0", "net/c1/eth:0"} {
		if k, err := ParseKey(s); err == nil {
			t.Errorf("%q was read as %v", s, k)
		}
	}
}

// Keys become file names and index entries that are split at "/" and NUL.
func TestKeyValid(t *testing.T) {
	long := strings.Repeat("a", 64)
	for name, c := range map[string]struct {
		key  Key
		part string // that the error names; empty when the key is valid
	}{
		"plain":                         {Key{"net", "c1", "eth0"}, ""},
		"all that is allowed":           {Key{"AZaz09_.-", "0Zz9Aa_.-", "!@veth.7"}, ""},
		"long ids":                      {Key{long, long, "abcdefghijklmno"}, ""},
		"name in another script":        {Key{"net", "c1", "сеть0"}, ""},
		"dots in an interface name":     {Key{"net", "c1", "..."}, ""},
		"no network":                    {Key{"", "c1", "eth0"}, "network"},
		"network begins with a dot":     {Key{"..", "c1", "eth0"}, "network"},
		"network with a slash":          {Key{"a/b", "c1", "eth0"}, "network"},
		"network ends in a line feed":   {Key{"net\n", "c1", "eth0"}, "network"},
		"no container id":               {Key{"net", "", "eth0"}, "container id"},
		"container id begins with '-'":  {Key{"net", "-c", "eth0"}, "container id"},
		"container id with a NUL":       {Key{"net", "c\x001", "eth0"}, "container id"},
		"container id with a space":     {Key{"net", "c 1", "eth0"}, "container id"},
		"no interface":                  {Key{"net", "c1", ""}, "interface"},
		"16 bytes":                      {Key{"net", "c1", "abcdefghijklmnop"}, "interface"},
		"15 letters of two bytes":       {Key{"net", "c1", strings.Repeat("é", 15)}, "interface"},
		"dot":                           {Key{"net", "c1", "."}, "interface"},
		"dot dot":                       {Key{"net", "c1", ".."}, "interface"},
		"interface with a slash":        {Key{"net", "c1", "a/b"}, "interface"},
		"interface with a colon":        {Key{"net", "c1", "eth0:1"}, "interface"},
		"interface with a space":        {Key{"net", "c1", "eth 0"}, "interface"},
		"interface with a tab":          {Key{"net", "c1", "eth\t0"}, "interface"},
		"interface with a NUL":          {Key{"net", "c1", "eth\x000"}, "interface"},
		"interface with a no-break one": {Key{"net", "c1", "eth\u00a00"}, "interface"},
		// JSON would store U+FFFD: the record would answer to another key than its own
		"interface that is no UTF-8": {Key{"net", "c1", "eth\xff"}, "interface"},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.key.Valid()
			switch {
			case c.part == "" && err != nil:
				t.Error(err)
			case c.part != "" && (err == nil || !strings.HasPrefix(err.Error(), c.part+" ")):
				t.Errorf("got %v, want an error about the %s", err, c.part)
			}
		})
	}
}
