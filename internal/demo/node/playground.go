package node

import (
	"context"
	"fmt"

	"github.com/plimsoll-k8s/plimsoll/internal/demo"
	"github.com/plimsoll-k8s/plimsoll/load"
)

// playground is the cluster that remains after the scenarios, for users to add pods to. A pod without requests shows the
// difference between profiles: by requests small-2 has most free capacity, by limits medium-2.
var playground = Scenario{
	Name: "playground",
	Nodes: []demo.Node{
		{Name: "small-1", CPU: "4", Memory: "16Gi"},
		{Name: "small-2", CPU: "4", Memory: "16Gi"},
		{Name: "medium-1", CPU: "8", Memory: "32Gi"},
		{Name: "medium-2", CPU: "8", Memory: "32Gi"},
		{Name: "large-1", CPU: "32", Memory: "128Gi"},
		{Name: "large-2", CPU: "32", Memory: "128Gi"},
	},
	Running: []demo.Pod{
		{Name: "web-1", Node: "medium-1", Request: "2", Limit: "8", MemoryRequest: "4Gi", MemoryLimit: "8Gi"},
		{Name: "web-2", Node: "medium-1", Request: "1", Limit: "6", MemoryRequest: "4Gi", MemoryLimit: "8Gi"},
		{Name: "web-3", Node: "medium-2", Request: "2", Limit: "3", MemoryRequest: "4Gi", MemoryLimit: "8Gi"},
		{Name: "batch-1", Node: "large-1", Request: "12", Limit: "40", MemoryRequest: "32Gi", MemoryLimit: "64Gi"},
		{Name: "batch-2", Node: "large-2", Request: "12", Limit: "16", MemoryRequest: "32Gi", MemoryLimit: "48Gi"},
		{Name: "cache-1", Node: "small-1", Request: "1", Limit: "1", MemoryRequest: "8Gi", MemoryLimit: "8Gi"},
		{Name: "report-1", Node: "small-2", Request: "250m", Limit: "8", MemoryRequest: "1Gi", MemoryLimit: "4Gi"},
	},
}

var playgroundLoad = Measurements{Nodes: map[string]load.Node{
	"small-1": withLoad(0.15, 0.03), "small-2": withLoad(0.04, 0.01),
	"medium-1": withLoad(0.7, 0.15), "medium-2": withLoad(0.3, 0.05),
	"large-1": withLoad(0.6, 0.2), "large-2": withLoad(0.35, 0.04),
}}

// Play creates the playground.
func (d *Demo) Play(ctx context.Context) error {
	if _, err := d.run(ctx, playground, playground.Profile); err != nil {
		return fmt.Errorf("setting up the playground: %w", err)
	}
	if err := d.load.Set(ctx, &playgroundLoad); err != nil {
		return fmt.Errorf("setting up the playground: %w", err)
	}
	return nil
}
