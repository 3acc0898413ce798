package netfilter

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
)

// Legacy says what cannot be seen here: nat tables of the legacy iptables, which have their own place in the kernel. It
// is empty when there is none. They are those of the calling thread's network namespace.
func Legacy() (string, error) {
	var have []string
	for file, program := range map[string]string{"ip_tables_names": "iptables-legacy-save", "ip6_tables_names": "ip6tables-legacy-save"} {
		b, err := os.ReadFile("/proc/thread-self/net/" + file)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("look for legacy iptables: %w", err)
		}
		if slices.Contains(strings.Fields(string(b)), "nat") {
			have = append(have, program+" -t nat")
		}
	}
	if len(have) == 0 {
		return "", nil
	}
	slices.Sort(have)
	return "the legacy iptables have a nat table here; chains that CNI plugins made in it are neither seen nor removed: look with " + strings.Join(have, " and "), nil
}
