// Package attachment holds backstop's nouns: the attachment and its record, the
// kinds of resource an attachment puts into a node, and what makes two of them
// the same thing. It makes no system call and knows no storage.
package attachment
