package damage

import (
	"encoding/binary"
	"os"
	"testing"

	bolt "go.etcd.io/bbolt"
)

const file = dir + "/journal.db"

// damage is one way in which a journal can be in trouble.
type damage struct {
	name  string
	stage string // what the journal's directory is, before anything is recorded; "" for a plain one
	fresh bool   // nothing was recorded before
	holes bool   // the file has no blocks ahead: one change only was made
	make  func(t *testing.T)

	record  string // where the new pod's record is with "warn": journal, anew (a new one), spool, memory
	fails   bool   // an ADD with "fail" is an error
	check   int    // exit code of `backstopctl journal check`
	recover string // what a person types, after the words of recovery
	words   string
	loses   bool // the older pod's record cannot be had back
}

func shell(script string) func(*testing.T) {
	return func(t *testing.T) { t.Helper(); sh(t, script) }
}

const (
	toMerge = `backstopctl --journal ` + file + `.corrupt-* journal export --show-secrets >/root/records.json
backstopctl journal import /root/records.json`
	toStore  = `backstopctl sweep --yes`
	tmpfs    = "mount -t tmpfs -o mode=700,size=8m damage " + dir
	ext4     = "truncate -s 12M /run/ext4; mkfs.ext4 -q -O ^has_journal /run/ext4; mount -o loop /run/ext4 " + dir + "; chmod 700 " + dir + "; rmdir " + dir + "/lost+found"
	fillDisk = "dd if=/dev/zero of=" + dir + "/filler bs=64k 2>/dev/null || true; cat /dev/zero >>" + dir + "/filler 2>/dev/null || true"
)

var damages = []damage{
	{name: "not a database at all", make: shell("echo 'this was a journal once' >" + file),
		record: "anew", check: 1, recover: toMerge, words: "nothing to do: the runtime's cache has the pods. What the file still holds:"},
	{name: "zero length", make: shell(": >" + file),
		record: "anew", check: 1, recover: toMerge, words: "nothing to do: the runtime's cache has the pods"},
	{name: "cut off after 100 bytes", make: shell("truncate -s 100 " + file), record: "anew", check: 1, recover: toMerge, words: "as above"},
	{name: "cut off after one page", make: shell("truncate -s 4096 " + file), record: "anew", check: 1, recover: toMerge, words: "as above"},
	{name: "cut off after five pages", make: shell("truncate -s 20480 " + file), record: "anew", check: 1, recover: toMerge, words: "as above"},
	{name: "both meta pages zeroed", make: shell("dd if=/dev/zero of=" + file + " bs=4096 count=2 conv=notrunc 2>/dev/null"),
		record: "anew", check: 1, recover: toMerge, words: "as above"},
	{name: "a database of another program", make: foreign, record: "spool", fails: true, check: 1,
		recover: "mv " + file + " /root/of-another-program.db\n" + toStore, words: "move the file away, or name another one in the conflist:", loses: true},
	{name: "written by a newer backstop", make: newerSchema, record: "spool", fails: true, check: 1,
		recover: "mv " + file + " /root/newer.db\n" + toStore, words: "put the newer backstop back; or begin anew:", loses: true},
	{name: "a symlink at the journal's path", make: shell("mv " + file + " /root/journal.db; ln -s /root/journal.db " + file),
		record: "spool", fails: true, check: 1, recover: "mv /root/journal.db " + file + "\n" + toStore, words: "put the file itself there:"},
	{name: "a directory at the journal's path", make: shell("rm " + file + "; mkdir " + file),
		record: "spool", fails: true, check: 1, recover: "rmdir " + file + "\n" + toStore, words: "remove it:", loses: true},
	{name: "a fifo at the journal's path", make: shell("rm " + file + "; mkfifo " + file),
		record: "spool", fails: true, check: 1, recover: "rm " + file + "\n" + toStore, words: "remove it:", loses: true},
	{name: "a directory at the lock's path", make: shell("rm -f " + file + ".lock; mkdir " + file + ".lock"),
		record: "spool", fails: true, check: 1, recover: "rmdir " + file + ".lock\n" + toStore, words: "remove it:"},
	{name: "a symlink at the lock's path", make: shell("echo other >/root/other; rm -f " + file + ".lock; ln -s /root/other " + file + ".lock"),
		record: "spool", fails: true, check: 1, recover: "rm " + file + ".lock\n" + toStore, words: "remove it:"},
	{name: "a file at the spool's path, and a directory at the lock's", make: shell("rm -f " + file + ".lock; mkdir " + file + ".lock; : >" + file + ".spool"),
		record: "memory", fails: true, check: 1, recover: "rm -r " + file + ".lock " + file + ".spool\n" + toStore, words: "remove both:"},
	{name: "the directory is a symlink", make: shell("mv " + dir + " /root/backstop; ln -s /root/backstop " + dir),
		record: "memory", fails: true, check: 1, recover: "rm " + dir + "\nmv /root/backstop " + dir + "\n" + toStore, words: "put the directory itself there:"},
	{name: "others may write the directory", make: shell("chmod 777 " + dir),
		record: "memory", fails: true, check: 1, recover: "chmod 0700 " + dir + "\n" + toStore, words: "correct its mode, if nobody put anything there:"},
	{name: "a read-only file system", stage: tmpfs, make: shell("mount -o remount,ro " + dir),
		record: "memory", fails: true, check: 3, recover: "mount -o remount,rw " + dir + "\n" + toStore, words: "mount it writable:"},
	{name: "a read-only file system, no journal yet", stage: tmpfs, fresh: true, make: shell("mount -o remount,ro " + dir),
		record: "memory", fails: true, check: 3, recover: "mount -o remount,rw " + dir + "\n" + toStore, words: "mount it writable:"},
	{name: "a directory that is mounted read-only", make: shell("mount --bind " + dir + " " + dir + "; mount -o remount,bind,ro " + dir),
		record: "memory", fails: true, check: 3, recover: "umount " + dir + "\n" + toStore, words: "mount it writable:"},
	{name: "an immutable directory, no journal yet", stage: ext4, fresh: true, make: shell("chattr +i " + dir),
		record: "memory", fails: true, check: 3, recover: "chattr -i " + dir + "\n" + toStore, words: "take the attribute off:"},
	{name: "an immutable journal", stage: ext4, make: shell("chattr +i " + file),
		record: "spool", fails: true, check: 3, recover: "chattr -i " + file + "\n" + toStore, words: "take the attribute off:"},
	{name: "a full disk (tmpfs)", stage: tmpfs, make: shell(fillDisk), record: "journal", words: "nothing to do: the journal has its blocks"},
	{name: "a full disk, the journal just begun", stage: tmpfs, holes: true, make: shell(fillDisk),
		record: "memory", fails: true, recover: "rm " + dir + "/filler\n" + toStore, words: "make room:"},
	{name: "a full disk (ext4)", stage: ext4, make: shell(fillDisk), record: "journal", words: "nothing to do: the journal has its blocks"},
	{name: "a full disk (tmpfs), no journal yet", stage: tmpfs, fresh: true, make: shell(fillDisk),
		record: "memory", fails: true, check: 3, recover: "rm " + dir + "/filler\n" + toStore, words: "make room:"},
	{name: "a full disk (ext4), no journal yet", stage: ext4, fresh: true, make: shell(fillDisk),
		record: "memory", fails: true, recover: "rm " + dir + "/filler\n" + toStore, words: "make room:"},
	{name: "a full disk, and a damaged journal", stage: tmpfs, make: shell("dd if=/dev/zero of=" + file + " bs=4096 count=2 conv=notrunc 2>/dev/null; " + fillDisk),
		record: "memory", fails: true, check: 1, recover: "rm " + dir + "/filler\nmv " + file + " " + file + ".corrupt-1\n" + toStore + "\n" + toMerge,
		words: "make room, then the next ADD or DEL puts the file aside; by hand:"},
	{name: "no inode left, no journal yet", stage: "mount -t tmpfs -o mode=700,nr_inodes=3 damage " + dir, fresh: true,
		make:   shell("i=0; while touch " + dir + "/f$i; do i=$((i+1)); done 2>/dev/null"),
		record: "memory", fails: true, check: 3, recover: "rm " + dir + "/f*\n" + toStore, words: "remove files:"},
	{name: "no inode left", stage: "mount -t tmpfs -o mode=700,nr_inodes=10 damage " + dir,
		make: shell("i=0; while touch " + dir + "/f$i; do i=$((i+1)); done 2>/dev/null"), record: "journal", words: "nothing to do: the journal needs no new file"},
	{name: "the journal was removed", make: shell("rm " + file), record: "journal", words: "nothing to do: pods of before are torn down from prevResult and the kernel", loses: true},
}

func foreign(t *testing.T) {
	sh(t, "rm "+file)
	update(t, func(tx *bolt.Tx) error {
		b, err := tx.CreateBucket([]byte("v1"))
		if err != nil {
			return err
		}
		return b.Put([]byte("containers"), []byte("of somebody else"))
	})
}

func newerSchema(t *testing.T) {
	update(t, func(tx *bolt.Tx) error {
		return tx.Bucket([]byte("meta")).Put([]byte("schema"), binary.BigEndian.AppendUint32(nil, 2))
	})
}

func update(t *testing.T, fn func(*bolt.Tx) error) {
	t.Helper()
	db, err := bolt.Open(file, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Update(fn); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(file, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}
