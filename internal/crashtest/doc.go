// Package crashtest kills backstop where it hurts: at every point of internal/crash and at random moments, for each verb
// and command that writes the journal, while other pods come and go on the same journal. After each kill it asks of the
// node what a runtime and its owner would: is every acknowledged ADD recorded, does the next call work, is everything of
// the pod gone in the end, and is nothing else gone. What is in the kernel it asks the ip program, not backstop.
//
// `go test` kills at each point once; `make crash` a thousand times, and prints a table. docs/robustness.md has one.
package crashtest
