//go:build tools

// Package tools pins the KWOK and the Flux that tests run against.
package tools

import (
	_ "github.com/fluxcd/kustomize-controller"
	_ "github.com/fluxcd/source-controller"
	_ "sigs.k8s.io/kwok/cmd/kwok"
)
