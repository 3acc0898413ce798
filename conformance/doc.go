// Package conformance shows backstop at work with the programs that it meets in the field: the real cnitool and the
// real reference plugins, each scenario in a throw-away node.
//
// The scenarios are stories in scenarios/*.txtar; README.md tells how to read, run and add one.
package conformance
