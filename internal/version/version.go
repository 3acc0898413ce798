// Package version holds the version that the build sets.
package version

// Version is set with -ldflags "-X".
var Version = "dev"
