package ipam

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// blocked looks in /proc/locks (proc(5)) for a waiter ("->") on an inode.
func blocked(t *testing.T, inode uint64) bool {
	t.Helper()
	b, err := os.ReadFile("/proc/locks")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if strings.Contains(line, "->") && strings.Contains(line, fmt.Sprintf(":%d ", inode)) {
			return true
		}
	}
	return false
}
