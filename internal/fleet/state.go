package fleet

import (
	"runtime"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/semaphore"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/plimsoll-k8s/plimsoll/api/placement/v1beta1"
	"github.com/plimsoll-k8s/plimsoll/internal/fairqueue"
	"github.com/plimsoll-k8s/plimsoll/internal/fleet/decide"
	"github.com/plimsoll-k8s/plimsoll/internal/fleet/expression"
)

// State is the state of a hub: clusters, cluster sets and placements. Methods that set
// or delete an object return the placements whose decisions can change, in no order.
// It is safe for concurrent use. It retains objects and does not change them.
type State struct {
	mu sync.Mutex
	// fleet is sorted by name. It is replaced, never changed: results refer to it.
	fleet   []*decide.Cluster
	entries map[string]*entry
	// counts has the number of decisions for each cluster of the fleet.
	counts []int32
	// decision is the memory for the next decision.
	decision *decide.Decision
	sets     map[string]*set
	// bindings has the names of bound sets by namespace.
	bindings map[string]map[string]bool
	// sharers has the number of namespaces for each cluster of the fleet that are bound to sets with the cluster, nil if it must be
	// computed.
	sharers    []int64
	placements map[types.NamespacedName]*placementState
	// queue has the placements with expressions to compile or evaluate, by namespace. queued has a value if the queue may
	// have become non-empty.
	queue  *fairqueue.Levels[string, types.NamespacedName]
	queued chan struct{}
	// evaluators bounds the goroutines that compile or evaluate expressions. Half of the CPUs remain
	// for decisions without expressions.
	evaluators *semaphore.Weighted
	// maxCost is maxTotalCost. Tests lower it.
	maxCost int64
}

// entry has the data of a cluster that only some decisions use.
type entry struct {
	object *clusterv1.ManagedCluster
	// scores is replaced, never changed: value and the cluster of the fleet refer to it.
	scores map[string]*decide.AddOnScores
	// value is the cluster for expressions, nil until needed.
	value *expression.Cluster
	// limit is the limit of the cluster, nil if it has none, and capacity its capacity, nil if it reports none.
	limit    *limit
	capacity *ClusterCapacity
	// promised are the workloads of placements with promises in the cluster.
	promised []*placementWorkload
}

// placementState is the state of a placement.
type placementState struct {
	uid        types.UID
	generation int64
	policy     *placementPolicy // nil with errs
	errs       field.ErrorList
	// selected are the selected clusters, sorted, and decidedGeneration the generation
	// of the spec that selected them, 0 if unknown.
	selected          []string
	decidedGeneration int64
	// feasible is a bit set of the feasible clusters by index in the fleet; nil if
	// unknown.
	feasible []uint64
	// outcomes has the outcome of the expressions of each predicate by cluster.
	outcomes []map[*decide.Cluster]expression.Outcome
	// uncompiled is a new version that is to be compiled, nil if there is none.
	uncompiled *uncompiled
	// waiting has the expressions that are to be evaluated, nil if there are none.
	waiting *waiting
	// workload is nil if the placement names none. lacksRoom is set if it did not fit enough clusters.
	workload  *placementWorkload
	lacksRoom bool
}

// evaluation is an evaluation of the expressions of a predicate for a cluster.
type evaluation struct {
	predicate int
	cluster   *decide.Cluster
	value     *expression.Cluster
}

// waiting is a placement that waits for its expressions.
type waiting struct {
	policy *placementPolicy
	list   []evaluation
	// cost is the cost of the outcomes that are known.
	cost int64
}

// uncompiled is a placement that EvaluateNext adds.
type uncompiled struct {
	object   *v1beta1.Placement
	clusters []string
}

// unmanaged reports whether another controller decides the placement.
func (p *placementState) unmanaged() bool { return p.policy == nil && len(p.errs) == 0 }

// maxTotalCost is the cost limit of all expressions of a placement for all clusters, in units of CEL of 0.1 to 1 microseconds.
const maxTotalCost = 10_000_000

// maxEvaluators returns the number of goroutines that may compile or evaluate expressions.
func maxEvaluators() int64 { return int64(max(1, runtime.GOMAXPROCS(0)/2)) }

// NewState returns the state of a hub without objects.
func NewState() *State {
	return &State{
		entries: map[string]*entry{}, sets: map[string]*set{}, bindings: map[string]map[string]bool{},
		placements: map[types.NamespacedName]*placementState{},
		queue:      fairqueue.NewLevels[string, types.NamespacedName](1), queued: make(chan struct{}, 1),
		evaluators: semaphore.NewWeighted(maxEvaluators()), maxCost: maxTotalCost,
		decision: new(decide.Decision),
	}
}

// indexOf returns the index of a cluster in the fleet, or the index to insert it at.
func (s *State) indexOf(name string) (int, bool) {
	return slices.BinarySearchFunc(s.fleet, name, func(c *decide.Cluster, name string) int { return strings.Compare(c.Name, name) })
}

// placement returns the state of a placement and adds it if it is missing.
func (s *State) placement(key types.NamespacedName) *placementState {
	p := s.placements[key]
	if p == nil {
		p = &placementState{}
		s.placements[key] = p
	}
	return p
}

// entry returns the entry of a cluster and adds it if it is missing. Scores, capacities and promises may be set before the cluster.
func (s *State) entry(name string) *entry {
	e := s.entries[name]
	if e == nil {
		e = &entry{}
		s.entries[name] = e
	}
	return e
}

// dropIfEmpty removes the entry of a cluster if it has no data.
func (s *State) dropIfEmpty(name string) {
	if e := s.entries[name]; e.object == nil && e.capacity == nil && len(e.scores)+len(e.promised) == 0 {
		delete(s.entries, name)
	}
}

// placementsWhere returns the placements for which a function returns true.
func (s *State) placementsWhere(isTrue func(types.NamespacedName, *placementState) bool) (keys []types.NamespacedName) {
	for key, p := range s.placements {
		if isTrue(key, p) {
			keys = append(keys, key)
		}
	}
	return keys
}

// enqueue adds a placement for EvaluateNext. It must be called with the lock held.
func (s *State) enqueue(key types.NamespacedName) {
	s.queue.Push(0, key.Namespace, key)
	select {
	case s.queued <- struct{}{}:
	default:
	}
}
