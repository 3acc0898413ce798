// Package install puts backstop's entry last into a node's conflist, and takes it out again, without changing another byte
// of it, and its binary into the directory of the CNI plugins.
package install
