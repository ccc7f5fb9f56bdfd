// Recorder says what kube-apiserver's own packages make of the inputs that stand in recordings, and writes it beside them.
// It is run by `cargo xtask record cost` and `cargo xtask record protobuf`.
package main

import (
	"fmt"
	"os"
)

func main() {
	if len(os.Args) != 3 {
		fail(fmt.Errorf("usage: recorder cost FILE | recorder protobuf FOLDER"))
	}
	switch what, where := os.Args[1], os.Args[2]; what {
	case "cost":
		fail(cost(where))
	case "protobuf":
		fail(protobuf(where))
	default:
		fail(fmt.Errorf("there is no recorder of %q", what))
	}
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "recorder:", err)
		os.Exit(1)
	}
}
