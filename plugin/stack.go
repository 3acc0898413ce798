package plugin

// deepStack makes the goroutine's stack large while there is little on it: it
// would be copied four times on the way down into bbolt and encoding/json. Its frame is there whatever grow is, and
// nothing is written to it.
//
//go:noinline
func deepStack(grow bool) {
	if grow {
		var frame [48 << 10]byte
		touch(frame[:])
	}
}

//go:noinline
func touch(b []byte) { b[0] = 1 }
