package journal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/backstop-cni/backstop/attachment"
)

// FallbackDir has the spools of journals beside which nothing can be written: a full or read-only disk. It is in memory,
// like the attachments themselves, and outlives a boot as little as they do.
const FallbackDir = "/run/backstop"

// escape makes one file name of a path, and none of two.
var escape = strings.NewReplacer("%", "%25", "/", "%2F")

// fallbackSpool is the journal's spool in FallbackDir.
func (j *Journal) fallbackSpool() string {
	return filepath.Join(FallbackDir, escape.Replace(j.path)+spoolSuffix)
}

// spoolDirs are the places where records wait for the journal.
func (j *Journal) spoolDirs() []string { return []string{j.spoolDir(), j.fallbackSpool()} }

// SpoolDirs are the places where records wait for this journal: beside it, and in FallbackDir. They need not be there.
func (j *Journal) SpoolDirs() []string { return j.spoolDirs() }

// Keep puts a record where whoever can write the journal next takes it in, and tells where that is: beside the journal,
// on disk, or in FallbackDir.
func (j *Journal) Keep(r *attachment.Record) (string, error) {
	err := keepIn(filepath.Dir(j.path), j.spoolDir(), r)
	if err == nil {
		return j.spoolDir(), nil
	}
	if ferr := keepIn(FallbackDir, j.fallbackSpool(), r); ferr != nil {
		return "", errors.Join(err, ferr)
	}
	return j.fallbackSpool(), nil
}

// keepIn writes a record to a spool in parent, which may not be anybody else's.
func keepIn(parent, spool string, r *attachment.Record) error {
	if err := prepareDir(parent); err != nil {
		return err
	}
	p, err := spoolIn(spool, r)
	if err != nil {
		return err
	}
	if err := p.keep(); err != nil {
		return errors.Join(err, p.Drop())
	}
	return nil
}

// safeSpool says why the entries of a spool may not be read.
func safeSpool(dir string) error {
	for _, d := range []string{filepath.Dir(dir), dir} {
		fi, err := os.Lstat(d)
		if err != nil {
			return fmt.Errorf("look at spool: %w", err)
		}
		if err := checkDir(d, fi); err != nil {
			return err
		}
	}
	return nil
}
