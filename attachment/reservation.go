package attachment

import (
	"net/netip"
	"path/filepath"
)

// Reservation is one address that host-local holds: a file whose content names
// the container and the interface (plugins v1.10.0, host-local/backend/disk).
type Reservation struct {
	Address     netip.Addr `json:"address"`
	ContainerID string     `json:"containerID"`
	IfName      string     `json:"ifName,omitempty"` // empty in files of its first versions
	File        string     `json:"file"`
}

// Of reports whether the reservation is exactly this attachment's. A file
// without an interface is any attachment's of its container.
func (r Reservation) Of(k Key) bool {
	return r.ContainerID == k.ContainerID && (r.IfName == "" || r.IfName == k.IfName)
}

func (r Reservation) String() string { return r.Address.String() + " in " + filepath.Dir(r.File) }
