//go:build tools

// Package tools pins the KWOK that tests run against.
package tools

import _ "sigs.k8s.io/kwok/cmd/kwok"
