package service_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/plimsoll-k8s/plimsoll/api/metricprovider"
	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/load/provider"
	"github.com/plimsoll-k8s/plimsoll/load/service"
)

// Serve the load in a store, and read it with a client.
func Example() {
	store := load.NewStore(time.Minute, nil)
	nodes := map[string]load.Node{"node-1": {CPU: load.Utilization{Mean: 0.5, StdDev: 0.1}, HasCPU: true}}
	if err := store.Put(load.Reading{Source: "Example", Time: time.Now(), Window: 15 * time.Minute, Nodes: nodes}); err != nil {
		fmt.Println(err)
		return
	}
	server := httptest.NewServer(service.New(service.Config{
		Store: store, Source: "example", State: &service.State{}, Metrics: http.NotFoundHandler(),
	}))
	defer server.Close()

	source, err := provider.NewWatcher(metricprovider.Config{Address: server.URL})
	if err != nil {
		fmt.Println(err)
		return
	}
	reading, err := source.Read(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	cpu := reading.Nodes["node-1"].CPU
	fmt.Printf("%s: mean %.2f, standard deviation %.2f\n", reading.Source, cpu.Mean, cpu.StdDev)
	// Output: Example: mean 0.50, standard deviation 0.10
}
