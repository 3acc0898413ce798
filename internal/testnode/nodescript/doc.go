// Package nodescript has testscript commands for stories that are told inside a testnode.
//
//	snap FILE                look at the node and keep it in FILE (in the story's directory)
//	snap -netfilter FILE     the same with the nftables and iptables rules
//	snap -in POD FILE        the inside of a pod instead of the node
//	same A B                 the two snapshots are equal
//	kept A B PATTERN         what matches PATTERN in A is in B as well, and something does match
//	lost A B PATTERN         what matches PATTERN in A, and nothing else, is gone in B; something does match
//	has PATTERN              the node has a thing that matches, now
//	has FILE PATTERN         the snapshot has one
//	lacks PATTERN            the opposite of has
//	lacks FILE PATTERN
//	pod NAME                 make a pod: a named network namespace with lo up
//	pod -gone NAME           remove it, and wait until the kernel has removed the node's ends of its veth pairs
//	daemon up|down|forget    the primary's daemon: start it, kill it, let it lose its memory
//
// Patterns are regular expressions on lines of a testnode.Snapshot. None of the commands sleeps: each returns when
// what it names is so, or fails the story.
package nodescript
