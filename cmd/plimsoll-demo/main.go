// Command plimsoll-demo runs scenarios with a real scheduler on a real control plane on this
// machine.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/plimsoll-k8s/plimsoll/internal/cli/demo"
	"github.com/plimsoll-k8s/plimsoll/internal/embedded/controlplane"
)

func main() {
	controlplane.RunIfChild()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := demo.Run(ctx)
	stop()
	os.Exit(code)
}
