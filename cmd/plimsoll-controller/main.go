// Command plimsoll-controller keeps resource slack, decides placements, or reports about a cluster
// to a hub.
package main

import (
	"os"

	"github.com/plimsoll-k8s/plimsoll/internal/cli/base"
	"github.com/plimsoll-k8s/plimsoll/internal/cli/controller"
)

func main() {
	ctx, stop := base.SignalContext("plimsoll-controller", 0)
	code := base.RunService(ctx, controller.NewCommand())
	stop()
	os.Exit(code)
}
