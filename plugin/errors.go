package plugin

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/backstop-cni/backstop/journal"
	"github.com/containernetworking/cni/pkg/types"
)

// Error codes of our own (CNI spec: 100 and up).
const (
	codeCheckFailed = 100
	codeNotReady    = 50 // STATUS: "The plugin is not available"
)

// safeWords replaces what go-cni takes for success: it greps error texts for
// "not found" and "no such file or directory".
var safeWords = strings.NewReplacer("no such file or directory", "path does not exist", "not found", "missing")

func fail(code uint, msg string, err error) *types.Error {
	details := ""
	if err != nil {
		details = err.Error()
	}
	return types.NewError(code, safeWords.Replace(msg), safeWords.Replace(details))
}

// advised adds to an error of the journal what to do about it.
func advised(err error) error {
	if todo := journal.Advice(err); todo != "" {
		return fmt.Errorf("%w: %s", err, todo)
	}
	return err
}

// badConfig names the offending keys (code 7).
func badConfig(ps []Problem) *types.Error {
	var all []string
	for _, p := range ps {
		all = append(all, p.Error())
	}
	return fail(types.ErrInvalidNetworkConfig, "configuration of backstop: "+strings.Join(all, "; "), nil)
}

// write puts an error on stdout as the spec wants it.
func write(w io.Writer, cniVersion string, e *types.Error) {
	if cniVersion == "" {
		cniVersion = "1.0.0"
	}
	_ = json.NewEncoder(w).Encode(struct {
		CNIVersion string `json:"cniVersion"`
		*types.Error
	}{cniVersion, e})
}
