// Package teardown decides what a DEL or a sweep does with a record, plans the
// removal of its resources, carries the plan out and verifies it. Decisions and plans are pure; what
// touches the node goes through the Kernel interface.
package teardown
