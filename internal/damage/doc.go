// Package damage holds the test of what backstop and backstopctl do about a journal that is spoilt, in the way, or on a
// disk that takes nothing. What they did and said is docs/damage.md, which the test compares, and writes with -write.
package damage
