// Package aws plays the AWS VPC CNI's real plugin in throw-away nodes, without and with backstop behind it, against a
// daemon that is up, killed, stopped, hanging, forgetful or refusing, and writes down what stays in the node.
package aws
