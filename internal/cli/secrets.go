package cli

import (
	"github.com/backstop-cni/backstop/attachment"
	"github.com/backstop-cni/backstop/internal/redact"
)

// shown gives a record as it may be printed.
func (a *app) shown(r *attachment.Record) *attachment.Record {
	if a.showSecrets {
		return r
	}
	clean, _ := redact.Record(r)
	return clean
}

// text gives an error as it may be printed: a plugin that was run may have put anything into it.
func (a *app) text(err error) string {
	if a.showSecrets {
		return err.Error()
	}
	return redact.Text(err.Error())
}
