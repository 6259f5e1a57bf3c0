package plugins_test

import (
	"fmt"

	"k8s.io/kubernetes/cmd/kube-scheduler/app"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	"k8s.io/kubernetes/pkg/scheduler/framework/runtime"

	plimsoll "github.com/plimsoll-k8s/plimsoll/plugins"
	"github.com/plimsoll-k8s/plimsoll/plugins/noderesourceslimits"
)

// Build a kube-scheduler with all plugins registered. A main function would call command.Execute.
func ExampleOptions() {
	command := app.NewSchedulerCommand(plimsoll.Options()...)
	fmt.Println(command.Name())
	// Output: kube-scheduler
}

// Add all plugins to the registry of a scheduler that embeds the framework.
func ExampleRegistry() {
	registry := plugins.NewInTreeRegistry()
	if err := registry.Merge(plimsoll.Registry()); err != nil {
		fmt.Println(err)
	}
	for _, plugin := range plimsoll.All {
		fmt.Println(plugin.Name, registry[plugin.Name] != nil)
	}
	// Output:
	// NodeResourcesLimits true
	// LowRiskOverCommitment true
	// PredictedUtilization true
	// NodeResourcesAllocatable true
}

// Register one plugin only.
func Example() {
	registry := runtime.Registry{noderesourceslimits.Name: noderesourceslimits.New}
	command := app.NewSchedulerCommand(app.WithPlugin(noderesourceslimits.Name, registry[noderesourceslimits.Name]))
	fmt.Println(command.Name())
	// Output: kube-scheduler
}
