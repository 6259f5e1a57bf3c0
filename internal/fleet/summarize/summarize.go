// Package summarize makes a ClusterCapacity from the nodes and pods of a cluster: at most MaxGroups groups of nodes, each with the
// lowest free amount of its nodes. A summary never has more than the cluster, so that no answer is optimistic. It is the side of the
// agent: package fit reads the summaries on the hub. It does no I/O.
package summarize

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-k8s/plimsoll/api/capacity/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// recentTime is the time for which a bound pod counts as recent.
const recentTime = 15 * time.Minute

// maxClasses is the number of classes of nodes in a summary, with the labels of which it has about half of its maximum size.
const maxClasses = 60

// Input is the state of a cluster.
type Input struct {
	// Cluster is the name of the cluster on the hub.
	Cluster string
	// Now is the time of the state.
	Now   time.Time
	Nodes []*Node
	Pods  Pods
	// Slack is the sum of the requests of the placeholders of all policies.
	Slack  v1.ResourceList
	Pools  []Pool
	Quotas []v1alpha1.Quota
}

// Summarize returns the summary of a cluster. It depends on neither the order of nodes and pods nor the names of nodes, and
// has at most MaxBytes as JSON.
func Summarize(in *Input) *v1alpha1.ClusterCapacityStatus {
	s := newSummarizer(in)
	for classes, groups := maxClasses, v1alpha1.MaxGroups; ; classes, groups = max(classes/2, 1), max(groups*3/4, 1) {
		out := s.summaryWithin(classes, max(groups, classes))
		if raw, err := json.Marshal(out); err == nil && len(raw) <= v1alpha1.MaxBytes-maxMetadata || groups == 1 {
			return out
		}
	}
}

// SummarizeNodes returns the summary of a cluster with a class and a group for each node, in their order, without host ports.
func SummarizeNodes(in *Input) *v1alpha1.ClusterCapacityStatus {
	s, out := newSummarizer(in), &v1alpha1.ClusterCapacityStatus{ObservedAt: metav1.NewTime(in.Now), Nodes: int32(len(in.Nodes))}
	var classes []nodeClass
	for _, n := range in.Nodes {
		class := nodeClass{NodeClass: v1alpha1.NodeClass{Labels: map[string]string{}, Taints: n.taints}, nodes: []*Node{n}}
		for _, l := range n.labels {
			class.Labels[l.Value().key] = l.Value().value
		}
		out.Classes, classes = append(out.Classes, class.NodeClass), append(classes, class)
		group := s.groupsOf([]nodeClass{class}, 1)[0]
		group.Class = int32(len(classes) - 1)
		out.Groups = append(out.Groups, group)
	}
	for _, pool := range s.Pools {
		s.addShapes(out, &pool, classes)
	}
	return out
}

// maxMetadata is the size that is left for the metadata of the object.
const maxMetadata = 2000

// summarizer has the sums over the pods of a cluster.
type summarizer struct {
	*Input

	// names are the resources of the cluster: the common ones, then the other ones by name.
	names []resources.Resource
	// hasSlack is set if there are placeholders.
	hasSlack bool
	// ports are the numbers of nodes on which pods use host ports.
	ports map[v1alpha1.HostPort]int32
	// recent are the numbers of pods that were bound within recentTime. Workloads of different kinds count as one if they have the same
	// name.
	recent map[types.NamespacedName]int32
}

func newSummarizer(in *Input) *summarizer {
	s := &summarizer{Input: in, ports: map[v1alpha1.HostPort]int32{}, recent: map[types.NamespacedName]int32{}}
	names := map[v1.ResourceName]bool{
		v1.ResourceCPU: true, v1.ResourceMemory: true, v1.ResourceEphemeralStorage: true, v1.ResourcePods: true,
	}
	for _, n := range s.Nodes {
		for name, quantity := range n.Allocatable {
			if !names[name] && !quantity.IsZero() {
				names[name] = true
			}
		}
		s.observeNode(n.Name, resources.Arrival(in.Now.Add(-recentTime).UnixMicro()))
	}
	for name := range names {
		s.names = append(s.names, resources.NewResource(name))
	}
	slices.SortFunc(s.names, resources.Resource.Compare)
	return s
}

// observeNode counts the placeholders and host ports on a node, and its pods that were bound after a time.
func (s *summarizer) observeNode(node NodeName, after resources.Arrival) {
	sums := s.Pods.sumsOn(node)
	s.hasSlack = s.hasSlack || sums.placeholders.Get(resources.NewResource(v1.ResourcePods)).Request > 0
	for _, port := range sums.hostPorts {
		s.ports[port]++
	}
	if sums.lastBound <= after {
		return
	}
	for i := range s.Pods[node].pods {
		if pod := &s.Pods[node].pods[i]; !pod.placeholder && pod.boundAt > after {
			workload := pod.amounts.Workload().Value()
			s.recent[types.NamespacedName{Namespace: workload.Namespace, Name: workload.Name}]++
		}
	}
}

// summaryWithin returns a summary with at most the given numbers of classes and groups.
func (s *summarizer) summaryWithin(maxClasses, maxGroups int) *v1alpha1.ClusterCapacityStatus {
	out := &v1alpha1.ClusterCapacityStatus{
		Cluster: s.Cluster, ObservedAt: metav1.NewTime(s.Now.UTC().Truncate(time.Second)), Nodes: int32(len(s.Nodes)), Slack: s.Slack,
		Quotas: s.Quotas[:min(len(s.Quotas), v1alpha1.MaxQuotas)], HostPorts: s.hostPorts(), Recent: s.recentWorkloads(),
	}
	classes := divideByClass(s.Nodes, maxClasses)
	for _, c := range classes {
		out.Classes = append(out.Classes, c.NodeClass)
	}
	out.Groups = s.groupsOf(classes, maxGroups)
	for _, pool := range s.Pools {
		s.addShapes(out, &pool, classes)
	}
	out.ScaleUp = out.ScaleUp[:min(len(out.ScaleUp), v1alpha1.MaxScaleUps)]
	return out
}

// hostPorts returns the host ports in use. Above the maximum, one entry of port 0 has the number of nodes of the cluster.
func (s *summarizer) hostPorts() (out []v1alpha1.HostPort) {
	for _, port := range slices.SortedFunc(maps.Keys(s.ports), func(a, b v1alpha1.HostPort) int {
		return cmp.Or(cmp.Compare(a.Port, b.Port), cmp.Compare(a.Protocol, b.Protocol))
	}) {
		port.Nodes = s.ports[port]
		out = append(out, port)
	}
	if len(out) > v1alpha1.MaxHostPorts {
		return []v1alpha1.HostPort{{Port: 0, Protocol: v1.ProtocolTCP, Nodes: int32(len(s.Nodes))}}
	}
	return out
}

// recentWorkloads returns the workloads with the most recent pods.
func (s *summarizer) recentWorkloads() (out []v1alpha1.RecentWorkload) {
	for key, pods := range s.recent {
		out = append(out, v1alpha1.RecentWorkload{Namespace: key.Namespace, Name: key.Name, Pods: pods})
	}
	slices.SortFunc(out, func(a, b v1alpha1.RecentWorkload) int {
		return cmp.Or(cmp.Compare(b.Pods, a.Pods), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return out[:min(len(out), v1alpha1.MaxRecent)]
}
