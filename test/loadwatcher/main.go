// Command loadwatcher is a client as others have it: it asks a service with the
// client of github.com/paypal/load-watcher and prints what that understood. It
// is in a module of its own, since it wants old versions of Kubernetes' modules.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/paypal/load-watcher/pkg/watcher/api"
)

func main() {
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(address string) error {
	client, err := api.NewServiceClient(address)
	if err != nil {
		return err
	}
	metrics, err := client.GetLatestWatcherMetrics()
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(metrics)
}
