package journal

import (
	"fmt"

	bolt "go.etcd.io/bbolt"
)

// checkOverflow compares what each page in use says of its length with the file's. A change frees the pages that it
// replaces one by one: over a length of some billions, which one flipped bit makes, a call would hold the lock for minutes and take
// memory without bound. It is a look at each header, in memory, which each change can afford; the whole walk is checkPages.
func checkOverflow(tx *bolt.Tx) error {
	high := int(tx.Size() / int64(tx.DB().Info().PageSize))
	for id := 2; id < high; id++ { // behind the meta pages
		p, err := tx.Page(id)
		if err != nil {
			return fmt.Errorf("look at page %d: %w", id, err)
		}
		if p == nil || p.Type == "free" {
			continue
		}
		if p.OverflowCount >= high-id || p.OverflowCount < 0 {
			return fmt.Errorf("%w: page %d says that it goes on for %d pages, there are %d", ErrDamaged, id, p.OverflowCount, high)
		}
		id += p.OverflowCount
	}
	return nil
}
