//go:build !crashpoints && !steps

package crash

// At is a crash point; in a build without the tag it is nothing.
func At(string) {}

// Soon is a crash point for what cannot be stopped at a named moment.
func Soon(string) {}
