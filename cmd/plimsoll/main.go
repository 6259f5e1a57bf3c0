// Command plimsoll shows how Plimsoll scores, simulates, plans and decides.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/plimsoll-k8s/plimsoll/internal/cli/plimsoll"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := plimsoll.Run(ctx)
	stop()
	os.Exit(code)
}
