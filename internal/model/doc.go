// Package model is a test: it plays random lives of pods on the real kernel of a throw-away node, with the real
// plugin and the real backstopctl, and compares the node after each operation with a plain map of who is live and what
// each of them must have. It has no code of its own to import.
//
// A run is a list of operations that follows from its seed alone (ops_test.go). A runtime (runtime_test.go) plays
// libcni's part, primaries (primary_test.go) make and remove what their kind of CNI makes and removes, daemons come and
// go and forget, calls are lost, late, doubled and simultaneous, the node reboots, and foreign things that look alike come
// and go. Two things are judged:
//
//   - after each operation nothing has gone that a live attachment or a bystander needs, unless its own primary or its
//     own DEL took it (judge_test.go): foreign removals;
//   - at the end, with the daemons up and the graces over, the kernel holds what the live attachments and the bystanders
//     need and nothing else, and the journal the live ones and what is owed for a reason (settle_test.go): leftovers.
//
// backstop, backstopctl and the primary that a replay starts are processes: this test binary under their names. What the
// primary does at ADD and DEL happens in the test's own process, with netlink; a replay's primary asks it by a socket.
// The node is read by netlink messages that this package takes apart itself (listing_test.go), and at the end of each
// run once more by ip, never by backstop's own reading.
//
//	go test ./internal/model                          some runs, in a few seconds
//	make soak                                         20,000 operations, another seed each time
//	go test ./internal/model -seed=N -operations=1    the one run of that seed, then its shortest form if it fails
//
// What a run decides follows from the seed, when a grace is over does not: a failure that needs two things to meet in
// time may need several tries.
package model
