// Package kernel reads and removes what attachments put into a network
// namespace. It is the only package that speaks netlink; every handle is bound to one namespace.
package kernel
