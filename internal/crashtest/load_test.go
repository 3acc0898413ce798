package crashtest

import (
	"errors"
	"fmt"
	"sync"
)

// lives is how many lives of the workers there may be beside a play.
func lives() int {
	if *killsFlag == 0 {
		return 1
	}
	return 2 * workers
}

// load is pods that come and go on the journal while others are killed.
type load struct {
	w     *world
	begun chan struct{} // a life for each
	group sync.WaitGroup
	mu    sync.Mutex
	err   error
	lives int
}

// startLoad makes the workers, who wait for the first play.
func (w *world) startLoad() *load {
	l := &load{w: w, begun: make(chan struct{}, lives())}
	for i := range workers {
		p := &pod{id: fmt.Sprintf("load%d", i), network: "n", netns: fmt.Sprintf("l%d", i), link: fmt.Sprintf("hl%d", i),
			ip: fmt.Sprintf("10.8.0.%d", i+1), journal: w.journal, to: 512, from: 1536}
		l.group.Go(func() { l.work(p) })
	}
	return l
}

// play lets them live beside the next play.
func (l *load) play() {
	for range cap(l.begun) - len(l.begun) {
		l.begun <- struct{}{}
	}
}

func (l *load) work(p *pod) {
	n := 0
	for range l.begun {
		n++
		err := l.life(p, n%3 == 0)
		l.mu.Lock()
		l.err, l.lives = errors.Join(l.err, err), l.lives+1
		l.mu.Unlock()
	}
}

// life is an ADD and a DEL; what the last DEL had left would be in this one's way. acknowledge has the primary finish, too.
func (l *load) life(p *pod, acknowledge bool) error {
	l.w.gate.RLock()
	defer l.w.gate.RUnlock()
	if err := errors.Join(p.dress(), l.w.add(p)); err != nil {
		return fmt.Errorf("ADD of %s, beside the killed: %w", p.id, err)
	}
	l.w.ending(p)
	err := works(l.w.verb(death{}, "DEL", p))
	if err == nil && acknowledge {
		err = errors.Join(p.up(), works(l.w.verb(death{}, "DEL", p)), p.uncache(), p.down())
	}
	if err != nil {
		return fmt.Errorf("DEL of %s, beside the killed: %w", p.id, err)
	}
	return nil
}

// end waits for the last lives and gives what went wrong.
func (l *load) end() (lived int, err error) {
	close(l.begun)
	l.group.Wait()
	return l.lives, l.err
}
