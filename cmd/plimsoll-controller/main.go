// Command plimsoll-controller keeps resource slack, decides placements, or reports about a cluster
// to a hub.
package main

import (
	"os"

	"github.com/plimsoll-k8s/plimsoll/internal/cli/base"
	"github.com/plimsoll-k8s/plimsoll/internal/cli/controller"
)

func main() { os.Exit(base.RunService(controller.NewCommand())) }
