package install

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

// How long a change is left alone: an installer writes several files, and some write in place. And when everything is looked at
// anyway.
const (
	settleTime = 100 * time.Millisecond
	lookAgain  = time.Minute
	retryTime  = time.Second
)

// Watch installs, and again whenever something in the directory changes, until ctx ends. Each outcome goes to each, which is not
// told of those that changed nothing.
func Watch(ctx context.Context, o Options, each func(*Done, error)) error {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("watch %s: %w", o.ConfDir, err)
	}
	defer w.Close()
	said := ""
	watched := false
	for {
		if !watched {
			err := w.Add(o.ConfDir)
			if watched = err == nil; err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("watch %s: %w", o.ConfDir, err)
			}
		}
		done, err := Install(o)
		switch {
		case err == nil:
			if said = ""; done.Changed || done.Binary != "" {
				each(done, nil)
			}
		case err.Error() != said: // the same again is no news
			said = err.Error()
			each(nil, err)
		}
		if watched, err = wait(ctx, w, o.ConfDir, watched, said != ""); err != nil {
			return nil // told to end
		}
	}
}

// wait returns when something changed and is quiet again, or it is time to look anyway; false says that the directory itself went.
func wait(ctx context.Context, w *fsnotify.Watcher, dir string, watched, failed bool) (bool, error) {
	next := lookAgain
	if failed || !watched {
		next = retryTime
	}
	timer := time.NewTimer(next)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return watched, ctx.Err()
		case <-timer.C:
			return watched, nil
		case e := <-w.Events:
			if filepath.Clean(e.Name) == filepath.Clean(dir) && e.Has(fsnotify.Remove|fsnotify.Rename) {
				return false, nil
			}
			timer.Reset(settleTime)
		case <-w.Errors: // an overflow: look
			timer.Reset(settleTime)
		}
	}
}
