package load_test

import (
	"context"
	"fmt"
	"time"

	"github.com/plimsoll-k8s/plimsoll/api/metricprovider"
	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/load/provider"
)

// Read the load of nodes from a source into a store, and look up a node.
func Example() {
	source, err := provider.New(metricprovider.Config{Type: metricprovider.File, Address: "wire/testdata/recorded.json"},
		provider.Cluster{})
	if err != nil {
		fmt.Println(err)
		return
	}
	// The clock of the recorded file; use nil for the real time.
	now := func() time.Time { return time.Unix(1795259567, 0) }
	store := load.NewStore(5*time.Minute, now)

	// A program runs this in a goroutine, until its context is done.
	ctx, cancel := context.WithCancel(context.Background())
	store.Run(ctx, source, 30*time.Second, func(state load.State) {
		fmt.Println("degraded:", state.Degraded)
		cancel()
	})

	node, known := store.Fresh().Node("node-1")
	fmt.Printf("known: %t, CPU: %.0f%%, memory: %.0f%%\n", known, 100*node.CPU.Mean, 100*node.Memory.Mean)
	// Output:
	// degraded: false
	// known: true, CPU: 39%, memory: 55%
}
