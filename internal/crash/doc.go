// Package crash marks the moments at which a SIGKILL matters. A plain build has nothing of it: At is empty, and the
// compiler drops the calls. With the build tag crashpoints the environment names a point and the process kills itself
// there, which internal/crashtest does a thousand times. Points are named package.moment; crashtest lists them all. With
// the tag steps each point says when it was passed, for the table of `make bench` that shows where the time goes.
package crash
