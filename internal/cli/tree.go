package cli

import (
	"fmt"
	"io"
)

// branch is a part of a tree that is printed.
type branch struct {
	text  string
	parts []branch
}

func (b *branch) leaf(format string, args ...any) {
	b.parts = append(b.parts, branch{text: fmt.Sprintf(format, args...)})
}

// below adds a branch with leaves, if there are any.
func (b *branch) below(title string, lines []string) {
	if len(lines) == 0 {
		return
	}
	part := branch{text: title}
	for _, l := range lines {
		part.parts = append(part.parts, branch{text: l})
	}
	b.parts = append(b.parts, part)
}

// write prints it; here is what stands before its text, and under what stands before that of its parts.
func (b *branch) write(w io.Writer, here, under string) {
	fmt.Fprintf(w, "%s%s\n", here, b.text)
	for i, p := range b.parts {
		if i < len(b.parts)-1 {
			p.write(w, under+"├─ ", under+"│  ")
		} else {
			p.write(w, under+"└─ ", under+"   ")
		}
	}
}
