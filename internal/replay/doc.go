// Package replay runs the rest of a list's DEL again for attachments that are
// owed: their kernel state is gone, but the primary, and its IPAM, never acknowledged.
package replay
