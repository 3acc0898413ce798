// Package testnode gives a test a node of its own: a network, mount and pid namespace in which it may do what it
// likes as root, and which is gone, with every process in it, when the test ends.
//
//	func TestHostVethIsRemoved(t *testing.T) {
//		testnode.Run(t, func(t *testing.T) {
//			// here the test is inside its node: lo is up, /run, /var/lib/cni, /var/log and /etc/cni are empty
//			before, err := testnode.View{}.Take()
//			…
//		})
//	}
//
// Run executes the test binary once more inside the node, for the calling test alone, and reports how that went.
//
// A View is how the package looks at a node: it asks the ip and nft programs, never backstop's own code, so that a
// mistake in backstop's reading of the kernel cannot hide itself in a test.
//
// The package nodescript has the same as testscript commands. Programs that are no tests (the demo, the bench) use
// Node.Exec. FindPrograms, Daemon and RemovePod are here for conformance and conformance/aws: neither module may require
// the other, which would move the versions of the plugins that it is about.
package testnode
