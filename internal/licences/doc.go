// Package licences holds the test that every module whose code is in one of the programs is under a licence of a short list.
package licences
