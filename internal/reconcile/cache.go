package reconcile

import (
	"encoding/json"
	"os"
	"path/filepath"

	"github.com/backstop-cni/backstop/attachment"
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
	fi, err := os.Lstat(path)
	if err != nil || !fi.Mode().IsRegular() || fi.Size() > maxCacheEntry {
		return nil
	}
	b, err := os.ReadFile(path)
	if err != nil || !json.Valid(b) {
		return nil
	}
	return b
}
