package node

import (
	"slices"
	"sync"
	"time"

	"github.com/plimsoll-k8s/plimsoll/internal/demo"
	"github.com/plimsoll-k8s/plimsoll/internal/simulate/engine"
)

// keptDecisions is the number of recent decisions that are kept.
const keptDecisions = 30

// Decision is the decision of the scheduler on a pod, and the scores of the nodes, computed by the
// what-if engine for the cluster just before the decision.
type Decision struct {
	Time     time.Time
	Scenario string
	Profile  string
	// Node is the selected node, or demo.Pending.
	Node string
	// Default is the node that the default profile selects, empty if it is not known.
	Default string
	Scores  engine.PodScores
}

// Reason explains the decision.
func (d Decision) Reason() string {
	node := d.Node
	if node == demo.Pending {
		node = ""
	}
	return d.Scores.Reason(node)
}

// decisions are the most recent decisions, newest first.
type decisions struct {
	mu   sync.Mutex
	list []Decision
}

func (d *decisions) add(decision Decision) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.list = slices.Insert(d.list, 0, decision)
	d.list = d.list[:min(len(d.list), keptDecisions)]
}

func (d *decisions) all() []Decision {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.list)
}
