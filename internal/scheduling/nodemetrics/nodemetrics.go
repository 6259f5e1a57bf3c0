// Package nodemetrics shows how deep the nodes of a scheduler's cluster are
// loaded, as Prometheus metrics: by limits, and by risk. They are distributions
// over the nodes, with no series per node or pod, so that a cluster of 5,000
// nodes has as many series as one of 5.
//
// The figures are worked out on each scrape from the scheduler's informers, and
// not from the sums that its plugins keep: those are of the last pod that a node
// was scored for, and a full node is scored for none. Scoring knows nothing of
// this package.
package nodemetrics

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
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/plimsoll-k8s/plimsoll/internal/kube/facts"
	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/noderes"
)

// Judge says how risky a node is, in [0, 1], as it is.
type Judge interface {
	Risk(node fwk.NodeInfo, sums *noderes.Sums) float64
}

// limitBuckets are multiples of what a node has; riskBuckets are risks.
var (
	limitBuckets = []float64{0.25, 0.5, 0.75, 1, 1.25, 1.5, 2, 2.5, 3, 4, 6, 8}
	riskBuckets  = []float64{0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1}
)

var (
	limitRatio = prometheus.NewDesc("plimsoll_scheduler_node_limit_ratio",
		"[ALPHA] Nodes by the limits of their pods over what is allocatable, now. A pod counts with the limits it declares, and no less than it requests. The count is that of the nodes; it does not grow with time.",
		[]string{"resource"}, nil)
	unbounded = prometheus.NewDesc("plimsoll_scheduler_nodes_unbounded",
		"[ALPHA] Nodes with a pod that has no limit, which may use all there is.", []string{"resource"}, nil)
	riskRatio = prometheus.NewDesc("plimsoll_scheduler_node_risk_ratio",
		"[ALPHA] Nodes by the risk that LowRiskOverCommitment of a profile sees in them, now and without a further pod, from 0 to 1. The count is that of the nodes; it does not grow with time.",
		[]string{"profile"}, nil)
)

// Collector has the metrics of one cluster, that of the scheduler which was
// watched last. The zero value is good.
type Collector struct {
	mu      sync.Mutex
	watched *cluster
}

// cluster is what a scheduler knows of its nodes, and those who judge them.
type cluster struct {
	factory informers.SharedInformerFactory
	nodes   corev1listers.NodeLister
	pods    corev1listers.PodLister
	judges  map[string]Judge
	// counted are the nodes as they were at the last scrape, by name; names are
	// in order, so that sums of the same figures are the same.
	counted map[string]*counted
	names   []string
}

// counted is a node, the pods that were on it, and their sums.
type counted struct {
	node *v1.Node
	pods map[types.UID]*v1.Pod
	info fwk.NodeInfo
	sums *noderes.Sums
}

// Watch shows the nodes of a scheduler's informers until ctx ends, in place of
// those shown before. It may be called for each of its plugins; where there is a
// judge, its risks are shown as those of a profile.
func (c *Collector) Watch(ctx context.Context, factory informers.SharedInformerFactory, profile string, judge Judge) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.watched == nil || c.watched.factory != factory {
		watched := &cluster{
			factory: factory, nodes: factory.Core().V1().Nodes().Lister(), pods: factory.Core().V1().Pods().Lister(),
			judges: map[string]Judge{}, counted: map[string]*counted{},
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
	if judge != nil {
		c.watched.judges[profile] = judge
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
	if err := c.watched.count(); err != nil {
		klog.ErrorS(err, "Counting nodes for the metrics") // informers answer from memory
		return
	}
	for _, resource := range []noderes.Resource{noderes.CPU, noderes.Memory} {
		limits, without := histogram{bounds: limitBuckets}, 0.0
		for _, name := range c.watched.names {
			node := c.watched.counted[name]
			sum, allocatable := node.sums.Of(resource), resource.Allocatable(node.info)
			if allocatable > 0 {
				limits.add(float64(sum.FlooredLimit) / float64(allocatable))
			}
			if sum.Unbounded > 0 {
				without++
			}
		}
		name := string(resource.Name())
		out <- limits.metric(limitRatio, name)
		out <- prometheus.MustNewConstMetric(unbounded, prometheus.GaugeValue, without, name)
	}
	for profile, judge := range c.watched.judges {
		risks := histogram{bounds: riskBuckets}
		for _, name := range c.watched.names {
			node := c.watched.counted[name]
			risks.add(judge.Risk(node.info, node.sums))
		}
		out <- risks.metric(riskRatio, profile)
	}
}

// count brings the nodes up to date. Only those on which something has changed
// since the last scrape are added up.
func (c *cluster) count() error {
	nodes, err := c.nodes.List(labels.Everything())
	if err != nil {
		return err
	}
	pods, err := c.pods.List(labels.Everything())
	if err != nil {
		return err
	}
	byNode := make(map[string][]*v1.Pod, len(nodes))
	for _, pod := range pods {
		if facts.OccupiesNode(pod) {
			byNode[pod.Spec.NodeName] = append(byNode[pod.Spec.NodeName], pod)
		}
	}
	now := make(map[string]*counted, len(nodes))
	for _, node := range nodes {
		before, pods := c.counted[node.Name], byNode[node.Name]
		if before == nil || !before.describes(node, pods) {
			before = newCounted(node, pods)
		}
		now[node.Name] = before
	}
	c.counted, c.names = now, slices.Sorted(maps.Keys(now))
	return nil
}

func newCounted(node *v1.Node, pods []*v1.Pod) *counted {
	info := framework.NewNodeInfo(pods...)
	info.SetNode(node)
	c := &counted{node: node, pods: make(map[types.UID]*v1.Pod, len(pods)), info: info, sums: noderes.SumsOf(info)}
	for _, pod := range pods {
		c.pods[pod.UID] = pod
	}
	return c
}

// describes reports whether node and pods are the objects that were counted.
// Informers replace objects that change.
func (c *counted) describes(node *v1.Node, pods []*v1.Pod) bool {
	return c.node == node && len(c.pods) == len(pods) &&
		!slices.ContainsFunc(pods, func(pod *v1.Pod) bool { return c.pods[pod.UID] != pod })
}

// histogram counts values that are no greater than each bound.
type histogram struct {
	bounds []float64
	counts map[float64]uint64
	count  uint64
	sum    float64
}

func (h *histogram) add(value float64) {
	h.count++
	h.sum += value
	if h.counts == nil {
		h.counts = make(map[float64]uint64, len(h.bounds))
	}
	for _, bound := range h.bounds {
		if value <= bound {
			h.counts[bound]++
		}
	}
}

func (h *histogram) metric(desc *prometheus.Desc, labels ...string) prometheus.Metric {
	buckets := make(map[float64]uint64, len(h.bounds))
	for _, bound := range h.bounds {
		buckets[bound] = h.counts[bound]
	}
	return prometheus.MustNewConstHistogram(desc, h.count, h.sum, buckets, labels...)
}
