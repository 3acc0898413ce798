// Package journal keeps the records of attachments in a bbolt file and moves
// them through their life. The file is never held open: every change opens it
// under a lock file, commits and closes. docs/journal-format.md describes what is on disk.
package journal
