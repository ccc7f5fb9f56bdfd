//go:build tools

// Package tools pins the Flagger that tests run against.
package tools

import _ "github.com/fluxcd/flagger/cmd/flagger"
