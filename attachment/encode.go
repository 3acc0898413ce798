package attachment

import (
	"fmt"
	"slices"

	"github.com/mailru/easyjson/jlexer"
	"github.com/mailru/easyjson/jwriter"
)

// Encode gives the record's JSON.
func (r *Record) Encode() ([]byte, error) {
	var w jwriter.Writer
	r.MarshalEasyJSON(&w)
	b, err := w.BuildBytes()
	if err != nil {
		return nil, fmt.Errorf("encode record %s: %w", r.Key, err)
	}
	return b, nil
}

// Encode gives the claim's JSON.
func (c Claim) Encode() ([]byte, error) {
	var w jwriter.Writer
	c.MarshalEasyJSON(&w)
	b, err := w.BuildBytes()
	if err != nil {
		return nil, fmt.Errorf("encode claim of %s: %w", c.Key, err)
	}
	return b, nil
}

// DecodeClaim reads what Claim.Encode wrote.
func DecodeClaim(b []byte) (c Claim, err error) {
	l := jlexer.Lexer{Data: b}
	c.UnmarshalEasyJSON(&l)
	l.Consumed()
	if err := l.Error(); err != nil {
		return c, fmt.Errorf("decode claim: %w", err)
	}
	return c, nil
}

// Decode reads a record and refuses what could lead a teardown astray.
func Decode(b []byte) (*Record, error) {
	var r Record
	l := jlexer.Lexer{Data: b}
	r.UnmarshalEasyJSON(&l)
	l.Consumed() // nothing may follow
	if err := l.Error(); err != nil {
		return nil, fmt.Errorf("decode record: %w", err)
	}
	if r.Version > RecordVersion {
		return nil, fmt.Errorf("record %s has version %d, this backstop knows up to %d: upgrade it", r.Key, r.Version, RecordVersion)
	}
	if err := r.Valid(); err != nil {
		return nil, fmt.Errorf("record %s: %w", r.Key, err)
	}
	for _, x := range slices.Concat(r.Resources, r.Pod) {
		if err := x.Validate(); err != nil {
			return nil, fmt.Errorf("record %s: %w", r.Key, err)
		}
	}
	return &r, nil
}
