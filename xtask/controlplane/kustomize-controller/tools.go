//go:build tools

// Package tools pins the Flux kustomize-controller that tests run against.
package tools

import _ "github.com/fluxcd/kustomize-controller"
