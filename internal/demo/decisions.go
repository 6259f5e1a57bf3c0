package demo

import (
	"slices"
	"sync"
	"time"

	"github.com/plimsoll-k8s/plimsoll/internal/simulate/engine"
)

// keptDecisions is how many of the last decisions are remembered.
const keptDecisions = 30

// Decision is where the scheduler took a pod, and the scores for it, worked out
// by the what-if over the cluster as it was just before.
type Decision struct {
	Time     time.Time
	Scenario string
	Profile  string
	// Node, or Pending.
	Node   string
	Scores engine.PodScores
}

// Reason says in words why.
func (d Decision) Reason() string {
	node := d.Node
	if node == Pending {
		node = ""
	}
	return d.Scores.Reason(node)
}

// decisions are the last ones, newest first.
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
