package install

import "github.com/backstop-cni/backstop/internal/conflist"

// Pick gives the configuration of a directory that the runtime would use, and whose last plugin backstop has to be: where
// Multus is the first, the list that it hands on to.
func Pick(dir string) (conflist.File, error) {
	t, err := choose(dir, "")
	return t.File, err
}
