// Package cli is backstopctl: one file for each verb.
package cli
