// Command plimsoll shows how Plimsoll scores, simulates, plans and decides.
package main

import (
	"os"

	"github.com/plimsoll-k8s/plimsoll/internal/cli/base"
	"github.com/plimsoll-k8s/plimsoll/internal/cli/plimsoll"
)

func main() {
	ctx, stop := base.SignalContext("plimsoll", base.ExitFailure)
	code := plimsoll.Run(ctx)
	stop()
	os.Exit(code)
}
