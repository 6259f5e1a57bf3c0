package shared

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	corev1listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/cache"
)

// RiskEvaluator returns the risk of a node without a further pod, in [0, 1].
type RiskEvaluator interface {
	Risk(sums *cache.NodeSums) float64
}

// limitBuckets are multiples of the allocatable amount; riskBuckets are risks.
var (
	limitBuckets = []float64{0.25, 0.5, 0.75, 1, 1.25, 1.5, 2, 2.5, 3, 4, 6, 8}
	riskBuckets  = []float64{0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1}
)

var (
	limitRatio = prometheus.NewDesc("plimsoll_scheduler_node_limit_ratio",
		"[ALPHA] Current distribution of the nodes by the sum of their pods' limits, as a multiple of the allocatable amount. "+
			"The limit of a pod counts as at least its request. The count is the number of nodes and does not increase over time.",
		[]string{"resource"}, nil)
	unbounded = prometheus.NewDesc("plimsoll_scheduler_nodes_unbounded",
		"[ALPHA] Number of nodes with at least one pod without a limit.", []string{"resource"}, nil)
	riskRatio = prometheus.NewDesc("plimsoll_scheduler_node_risk_ratio",
		"[ALPHA] Current distribution of the nodes by their risk according to the LowRiskOverCommitment plugin of a profile, from 0 to 1. "+
			"The count is the number of nodes and does not increase over time.",
		[]string{"profile"}, nil)
)

// Collector exposes the limit ratio and the risk of the nodes of one cluster as metrics: the cluster of the scheduler that was watched
// last. The metrics are distributions over the nodes, so their number does not depend on the size of the cluster.
//
// The values are computed on each scrape from the scheduler's informers. The sums that the plugins cache are not used: they are only
// current for nodes that were scored recently, and full nodes are not scored. The zero value is ready to use.
type Collector struct {
	mu      sync.Mutex
	watched *cluster
}

// cluster holds the informers of a scheduler and the evaluators of its profiles.
type cluster struct {
	factory informers.SharedInformerFactory
	nodes   corev1listers.NodeLister
	pods    corev1listers.PodLister
	// evaluators by profile.
	evaluators map[string]RiskEvaluator
	// states are the nodes at the last scrape, by name. names are sorted, so that sums of the same
	// values are identical.
	states map[string]*nodeState
	names  []string
}

// nodeState is a node with its pods and their sums.
type nodeState struct {
	node *v1.Node
	pods map[types.UID]*v1.Pod
	sums *cache.NodeSums
}

// Watch exposes the nodes of a scheduler's informers until ctx is done, in place of the nodes of a
// previous scheduler. It may be called for each plugin of the scheduler. If evaluator is not nil, the
// risks that it returns are exposed for the profile.
func (c *Collector) Watch(ctx context.Context, factory informers.SharedInformerFactory, profile string, evaluator RiskEvaluator) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.watched == nil || c.watched.factory != factory {
		watched := &cluster{
			factory: factory, nodes: factory.Core().V1().Nodes().Lister(), pods: factory.Core().V1().Pods().Lister(),
			evaluators: map[string]RiskEvaluator{}, states: map[string]*nodeState{},
		}
		c.watched = watched
		context.AfterFunc(ctx, func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			if c.watched == watched {
				c.watched = nil
			}
		})
	}
	if evaluator != nil {
		c.watched.evaluators[profile] = evaluator
	}
}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(out chan<- *prometheus.Desc) {
	out <- limitRatio
	out <- unbounded
	out <- riskRatio
}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(out chan<- prometheus.Metric) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.watched == nil {
		return
	}
	c.watched.update()
	for _, resource := range []resources.Resource{resources.CPUResource, resources.MemoryResource} {
		limits, unboundedNodes := []float64{}, 0.0
		for _, name := range c.watched.names {
			node := c.watched.states[name]
			sum, allocatable := node.sums.Get(resource), resource.AllocatableOf(node.node)
			if allocatable > 0 {
				limits = append(limits, float64(sum.FlooredLimit)/float64(allocatable))
			}
			if sum.Unbounded > 0 {
				unboundedNodes++
			}
		}
		name := string(resource.Name())
		out <- histogram(limitRatio, limitBuckets, limits, name)
		out <- prometheus.MustNewConstMetric(unbounded, prometheus.GaugeValue, unboundedNodes, name)
	}
	for profile, evaluator := range c.watched.evaluators {
		risks := make([]float64, len(c.watched.names))
		for i, name := range c.watched.names {
			risks[i] = evaluator.Risk(c.watched.states[name].sums)
		}
		out <- histogram(riskRatio, riskBuckets, risks, profile)
	}
}

// update lists the nodes and pods. Sums are only computed for nodes that changed since the last
// scrape.
func (c *cluster) update() {
	states := make(map[string]*nodeState, len(c.states))
	visitNodes(c.nodes, c.pods, func(node *v1.Node, pods []*v1.Pod) {
		state := c.states[node.Name]
		if state == nil || !state.isCurrent(node, pods) {
			state = newNodeState(node, pods)
		}
		states[node.Name] = state
	})
	c.states, c.names = states, slices.Sorted(maps.Keys(states))
}

// visitNodes calls visit with every node and the pods that occupy it, in any order.
func visitNodes(nodes corev1listers.NodeLister, pods corev1listers.PodLister, visit func(*v1.Node, []*v1.Pod)) {
	allNodes, _ := nodes.List(labels.Everything()) // from memory, without an error
	allPods, _ := pods.List(labels.Everything())
	byNode := make(map[string][]*v1.Pod, len(allNodes))
	for _, pod := range allPods {
		if resources.OccupiesNode(pod) {
			byNode[pod.Spec.NodeName] = append(byNode[pod.Spec.NodeName], pod)
		}
	}
	for _, node := range allNodes {
		visit(node, byNode[node.Name])
	}
}

func newNodeState(node *v1.Node, pods []*v1.Pod) *nodeState {
	info := framework.NewNodeInfo(pods...)
	info.SetNode(node)
	s := &nodeState{node: node, pods: make(map[types.UID]*v1.Pod, len(pods)), sums: cache.NewSums(info)}
	for _, pod := range pods {
		s.pods[pod.UID] = pod
	}
	return s
}

// isCurrent reports whether node and pods are the same objects. Informers replace an object when it
// changes.
func (s *nodeState) isCurrent(node *v1.Node, pods []*v1.Pod) bool {
	return s.node == node && len(s.pods) == len(pods) &&
		!slices.ContainsFunc(pods, func(pod *v1.Pod) bool { return s.pods[pod.UID] != pod })
}

// histogram returns the distribution of values.
func histogram(desc *prometheus.Desc, bounds, values []float64, label string) prometheus.Metric {
	buckets, sum := make(map[float64]uint64, len(bounds)), 0.0
	for _, bound := range bounds {
		buckets[bound] = 0
	}
	for _, value := range values {
		sum += value
		for _, bound := range bounds {
			if value <= bound {
				buckets[bound]++
			}
		}
	}
	return prometheus.MustNewConstHistogram(desc, uint64(len(values)), sum, buckets, label)
}
