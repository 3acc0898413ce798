package plugin

import (
	"fmt"
	"io"
	"os"

	"github.com/sirupsen/logrus"
	"golang.org/x/sys/unix"
)

// newLogger writes JSON lines to the log file or, from warnings up, to stderr.
// A log file that cannot be opened must not keep a verb from its work.
func newLogger(c *Config, stderr io.Writer) (*logrus.Logger, func()) {
	l := logrus.New()
	l.SetFormatter(&logrus.JSONFormatter{})
	l.SetOutput(stderr)
	l.SetLevel(min(c.LogLevel, logrus.WarnLevel))
	if c.LogFile == "" {
		return l, func() {}
	}
	f, err := openLog(c.LogFile)
	if err != nil {
		l.WithError(err).WithField("action", "log").Warn("cannot use logFile, logging to stderr")
		return l, func() {}
	}
	l.SetOutput(f)
	l.SetLevel(c.LogLevel)
	return l, func() { f.Close() }
}

// openLog opens a regular file other than stdout: that has the CNI result and
// nothing else, and a fifo without a reader would hold up the pod. A symlink is not followed to somebody else's file.
func openLog(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	fi, err := f.Stat()
	if err == nil && !fi.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", path)
	}
	if out, serr := os.Stdout.Stat(); err == nil && serr == nil && os.SameFile(fi, out) {
		err = fmt.Errorf("%s is the plugin's stdout", path)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
