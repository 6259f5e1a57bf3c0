// Command load-watcher serves the load of a cluster's nodes over HTTP.
package main

import (
	"os"

	"github.com/plimsoll-k8s/plimsoll/internal/cli/base"
	"github.com/plimsoll-k8s/plimsoll/internal/cli/loadwatcher"
)

func main() { os.Exit(base.RunService(loadwatcher.NewCommand())) }
