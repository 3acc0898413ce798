package kernel

import "golang.org/x/sys/unix"

// Deafen leaves the socket room for hardly an answer at a time.
func (h *Handle) Deafen() error { return unix.SetsockoptInt(h.fd, unix.SOL_SOCKET, unix.SO_RCVBUF, 1) }
