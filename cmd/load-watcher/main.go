// Command load-watcher serves the load of a cluster's nodes over HTTP.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/plimsoll-k8s/plimsoll/internal/cli/base"
	"github.com/plimsoll-k8s/plimsoll/internal/cli/loadwatcher"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := base.RunService(ctx, loadwatcher.NewCommand())
	stop()
	os.Exit(code)
}
