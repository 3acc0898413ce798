package plugin

import (
	"io"
	"os"

	"github.com/sirupsen/logrus"
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
	f, err := os.OpenFile(c.LogFile, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		l.WithError(err).WithField("action", "log").Warn("cannot open logFile, logging to stderr")
		return l, func() {}
	}
	l.SetOutput(f)
	l.SetLevel(c.LogLevel)
	return l, func() { f.Close() }
}
