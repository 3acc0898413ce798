// Boltplugin is what backstop's bursts are measured against: a chained plugin that does nothing but store its stdin in a
// bbolt file and commit. "lock": "polling" waits with bbolt's own file lock, which is tried anew every 50 ms; "queue"
// waits in flock(2) on a file beside it first, one commit for each process.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	bolt "go.etcd.io/bbolt"
	"golang.org/x/sys/unix"
)

const file = "/var/lib/cni/boltplugin.db"

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "boltplugin:", err)
		os.Exit(1)
	}
}

func run() error {
	in, err := io.ReadAll(os.Stdin)
	if err != nil {
		return fmt.Errorf("reading stdin: %w", err)
	}
	var c struct {
		Lock       string          `json:"lock"`
		PrevResult json.RawMessage `json:"prevResult"`
	}
	if err := json.Unmarshal(in, &c); err != nil {
		return fmt.Errorf("reading the configuration: %w", err)
	}
	switch c.Lock {
	case "polling":
	case "queue":
		lock, err := os.OpenFile(file+".lock", os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return err
		}
		defer lock.Close()
		if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
			return fmt.Errorf("waiting for the lock: %w", err)
		}
	default:
		return fmt.Errorf("lock %q: want polling or queue", c.Lock)
	}
	if err := store(os.Getenv("CNI_CONTAINERID"), in); err != nil {
		return err
	}
	_, err = os.Stdout.Write(c.PrevResult)
	return err
}

func store(key string, value []byte) error {
	db, err := bolt.Open(file, 0o600, &bolt.Options{Timeout: time.Minute, FreelistType: bolt.FreelistMapType})
	if err != nil {
		return fmt.Errorf("opening %s: %w", file, err)
	}
	defer db.Close()
	return db.Update(func(tx *bolt.Tx) error {
		b, err := tx.CreateBucketIfNotExists([]byte("attachments"))
		if err != nil {
			return err
		}
		return b.Put([]byte(key), value)
	})
}
