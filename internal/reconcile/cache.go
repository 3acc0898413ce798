package reconcile

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"

	"github.com/backstop-cni/backstop/attachment"
	"golang.org/x/sys/unix"
)

// CacheFile is where libcni keeps the result of an attachment (libcni/api.go,
// getCacheFilePath).
func CacheFile(cacheDir string, k attachment.Key) string {
	return filepath.Join(cacheDir, "results", k.Network+"-"+k.ContainerID+"-"+k.IfName)
}

// cacheEntryThere reports whether the runtime still has its entry.
func cacheEntryThere(r *attachment.Record) bool {
	_, err := os.Lstat(CacheFile(r.Settings.RuntimeCacheDir, r.Key))
	return err == nil
}

// maxCacheEntry bounds what is read of a cache file: lists and results are
// kilobytes.
const maxCacheEntry = 1 << 20

// ReadCacheEntry reads libcni's entry, nil when it is missing, damaged (a crash
// leaves it empty or cut off) or too large.
func ReadCacheEntry(path string) json.RawMessage {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil
	}
	defer f.Close()
	if fi, err := f.Stat(); err != nil || !fi.Mode().IsRegular() || fi.Size() > maxCacheEntry {
		return nil
	}
	b, err := io.ReadAll(io.LimitReader(f, maxCacheEntry))
	if err != nil || !json.Valid(b) {
		return nil
	}
	return b
}

// CacheEntry is libcni's entry of an attachment (libcni/api.go, cachedInfo).
type CacheEntry struct {
	Kind           string          `json:"kind"`
	ContainerID    string          `json:"containerId"`
	Config         []byte          `json:"config"` // the list
	IfName         string          `json:"ifName"`
	NetworkName    string          `json:"networkName"`
	NetNS          string          `json:"netns,omitempty"` // since libcni 1.2
	CNIArgs        [][2]string     `json:"cniArgs,omitempty"`
	CapabilityArgs map[string]any  `json:"capabilityArgs,omitempty"`
	Result         json.RawMessage `json:"result,omitempty"`
}

// ParseCacheEntry reads one; false when it names no attachment.
func ParseCacheEntry(b json.RawMessage) (e CacheEntry, ok bool) {
	err := json.Unmarshal(b, &e)
	return e, err == nil && e.ContainerID != "" && e.NetworkName != ""
}
