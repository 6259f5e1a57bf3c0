// Command loadwatcher reads a load-watcher service with the client of github.com/paypal/load-watcher and
// prints the decoded response. It is a separate module, because that client requires old versions of the
// Kubernetes modules.
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
