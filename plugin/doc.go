// Package plugin is the chained CNI plugin: one file for each verb of the CNI
// specification, and its configuration.
package plugin
