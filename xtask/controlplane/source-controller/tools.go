//go:build tools

// Package tools pins the Flux source-controller that tests run against.
package tools

import _ "github.com/fluxcd/source-controller"
