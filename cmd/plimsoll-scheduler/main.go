// Command plimsoll-scheduler is kube-scheduler with Plimsoll's plugins.
package main

import (
	"fmt"
	"os"

	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"

	"github.com/plimsoll-k8s/plimsoll/internal/cli/base"
	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/command"
)

func main() {
	const name = "plimsoll-scheduler"
	// kube-scheduler stops in its own signal handler; this handler bounds the time that it takes.
	_, stop := base.SignalContext(name, 0)
	err := cli.RunNoErrOutput(command.NewCommand(name))
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %s\n", name, base.EscapeLines(err.Error()))
	}
	stop()
	os.Exit(command.ExitCode(err))
}
