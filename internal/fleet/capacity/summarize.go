package capacity

import (
	"cmp"
	"encoding/json"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
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
	Pods  iter.Seq[*Pod]
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
		out := s.summarize(in, classes, max(groups, classes))
		if raw, err := json.Marshal(out); err == nil && len(raw) <= v1alpha1.MaxBytes-maxMetadata || groups == 1 {
			return out
		}
	}
}

// maxMetadata is the size that is left for the metadata of the object.
const maxMetadata = 2000

// summarizer has the sums over the pods of a cluster.
type summarizer struct {
	nodes []*Node
	// names are the resources of the cluster: the common ones, then extended ones by name.
	names []resources.Resource
	// used, held and bound are the sums over all pods of a node, over placeholders, and over pods of DaemonSets.
	used, held, bound map[string]*vector
	ports             map[v1alpha1.HostPort]map[string]bool // names of nodes by port
	recent            map[types.NamespacedName]int32
}

func newSummarizer(in *Input) *summarizer {
	s := &summarizer{
		nodes: slices.Clone(in.Nodes), used: map[string]*vector{}, held: map[string]*vector{}, bound: map[string]*vector{},
		ports: map[v1alpha1.HostPort]map[string]bool{}, recent: map[types.NamespacedName]int32{},
	}
	slices.SortFunc(s.nodes, func(a, b *Node) int { return strings.Compare(a.Name, b.Name) })
	extended := map[v1.ResourceName]bool{}
	for _, n := range s.nodes {
		for name := range n.allocatable.extended {
			extended[name] = true
		}
	}
	for _, name := range []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory, v1.ResourceEphemeralStorage, v1.ResourcePods} {
		s.names = append(s.names, resources.NewResource(name))
	}
	for _, name := range slices.Sorted(maps.Keys(extended)) {
		s.names = append(s.names, resources.NewResource(name))
	}
	for p := range in.Pods {
		if p.Node != "" {
			s.add(p, in.Now)
		}
	}
	return s
}

// add adds a pod to the sums.
func (s *summarizer) add(p *Pod, now time.Time) {
	addTo(s.used, p)
	if p.placeholder {
		addTo(s.held, p)
		return
	}
	if p.nodeBound {
		addTo(s.bound, p)
	}
	for _, port := range p.hostPorts {
		if s.ports[port] == nil {
			s.ports[port] = map[string]bool{}
		}
		s.ports[port][p.Node] = true
	}
	if age := now.Unix() - p.boundAt; age < int64(recentTime/time.Second) {
		s.recent[p.Workload()]++
	}
}

// addTo adds the amounts of a pod to the sum of its node.
func addTo(sums map[string]*vector, p *Pod) {
	sum := sums[p.Node]
	if sum == nil {
		sum = &vector{}
		sums[p.Node] = sum
	}
	sum.Amounts = sum.Add(p.amounts.Amounts)
	for name, amount := range p.amounts.extended {
		if sum.extended == nil {
			sum.extended = map[v1.ResourceName]int64{}
		}
		sum.extended[name] = resources.Add(sum.extended[name], amount)
	}
}

// summarize returns a summary with at most the given numbers of classes and groups.
func (s *summarizer) summarize(in *Input, maxClasses, maxGroups int) *v1alpha1.ClusterCapacityStatus {
	out := &v1alpha1.ClusterCapacityStatus{
		Cluster: in.Cluster, ObservedAt: metav1.NewTime(in.Now.UTC().Truncate(time.Second)), Nodes: int32(len(in.Nodes)), Slack: in.Slack,
		Quotas: in.Quotas[:min(len(in.Quotas), v1alpha1.MaxQuotas)],
	}
	nodes := slices.Clone(s.nodes)
	classOf, classes := classify(nodes, maxClasses)
	out.Classes = classes
	out.Groups = s.groups(nodes, classOf, len(classes), maxGroups)
	for _, pool := range in.Pools {
		out.ScaleUp = append(out.ScaleUp, s.shapesOf(&pool, nodes, classOf)...)
	}
	out.ScaleUp = out.ScaleUp[:min(len(out.ScaleUp), v1alpha1.MaxScaleUps)]
	out.HostPorts = s.hostPorts()
	out.Recent = s.recentWorkloads()
	return out
}

// groups returns the groups of the nodes, in the order of their classes and amounts.
func (s *summarizer) groups(nodes []*Node, classOf []int, classes, limit int) []v1alpha1.NodeGroup {
	// The dimensions are the free amounts and, if there are placeholders, the free amounts without them.
	free, order := make([][]int64, 0, 2*len(s.names)), make([]int, len(nodes))
	for _, withSlack := range []bool{false, true}[:min(1+len(s.held), 2)] {
		for _, r := range s.names {
			column := make([]int64, len(nodes))
			for i, n := range nodes {
				column[i] = s.freeOf(n, r, withSlack)
			}
			free = append(free, column)
		}
	}
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		c := cmp.Compare(classOf[a], classOf[b])
		for d := 0; d < len(free) && c == 0; d++ {
			c = cmp.Compare(free[d][a], free[d][b])
		}
		return c
	})
	classOf = permuted(classOf, order)
	for d := range free {
		free[d] = permuted(free[d], order)
	}
	cells := (&divider{amounts: free, weights: s.weights(free), lowest: make([]int64, len(free))}).divide(classOf, classes, limit)
	out := make([]v1alpha1.NodeGroup, 0, len(cells))
	lowest := make([][]int64, 0, len(cells))
	for _, c := range cells {
		amounts := make([]int64, len(free))
		for d := range free {
			amounts[d] = free[d][c.nodes[0]]
			for _, n := range c.nodes {
				amounts[d] = min(amounts[d], free[d][n])
			}
		}
		lowest = append(lowest, append([]int64{int64(c.class), int64(len(c.nodes))}, amounts...))
	}
	slices.SortFunc(lowest, func(a, b []int64) int { return cmp.Or(cmp.Compare(a[0], b[0]), slices.Compare(a[2:], b[2:])) })
	n := len(s.names)
	for _, a := range lowest {
		group, amounts := v1alpha1.NodeGroup{Class: int32(a[0]), Nodes: int32(a[1])}, a[2:]
		group.Free = s.listOf(amounts[:n])
		if len(s.held) > 0 {
			for d := range n {
				amounts[n+d] -= amounts[d]
			}
			group.Slack = s.listOf(amounts[n:])
		}
		out = append(out, group)
	}
	return out
}

// permuted returns the elements of a list in an order.
func permuted[T any](list []T, order []int) []T {
	out := make([]T, len(list))
	for i, from := range order {
		out[i] = list[from]
	}
	return out
}

// freeOf returns what pods leave free of a resource on a node, at least 0, and 0 if the node takes no pods. Placeholders do not
// count if withSlack is set.
func (s *summarizer) freeOf(n *Node, r resources.Resource, withSlack bool) int64 {
	if !n.usable {
		return 0
	}
	free := n.allocatable.get(r)
	if used := s.used[n.Name]; used != nil {
		free -= used.get(r)
	}
	if held := s.held[n.Name]; withSlack && held != nil {
		free += held.get(r)
	}
	return max(free, 0)
}

// Weights of lost amounts. CPU and memory limit most pods; the numbers of pods and storage rarely do.
const (
	commonWeight = 1
	rareWeight   = 0.001
)

// weights returns the weights of the dimensions: a share of the total amount of a resource has the weight of its kind.
func (s *summarizer) weights(free [][]int64) []float64 {
	out := make([]float64, len(free))
	for d, column := range free {
		total := 0.0
		for _, amount := range column {
			total += float64(amount)
		}
		if total == 0 {
			continue
		}
		out[d] = commonWeight / total
		if index := s.names[d%len(s.names)].Index(); index == resources.Pods || index == resources.EphemeralStorage {
			out[d] = rareWeight / total
		}
	}
	return out
}

// listOf returns the amounts above 0 of the resources of the cluster.
func (s *summarizer) listOf(amounts []int64) v1.ResourceList {
	var out v1.ResourceList
	for i, r := range s.names {
		if amounts[i] <= 0 {
			continue
		}
		if out == nil {
			out = v1.ResourceList{}
		}
		switch r.Index() {
		case resources.CPU:
			out[r.Name()] = *resource.NewMilliQuantity(amounts[i], resource.DecimalSI)
		case resources.Memory, resources.EphemeralStorage:
			out[r.Name()] = *resource.NewQuantity(amounts[i], resource.BinarySI)
		default:
			out[r.Name()] = *resource.NewQuantity(amounts[i], resource.DecimalSI)
		}
	}
	return out
}

// hostPorts returns the host ports in use. Above the maximum, one entry of port 0 has the number of nodes of the cluster.
func (s *summarizer) hostPorts() (out []v1alpha1.HostPort) {
	for _, port := range slices.SortedFunc(maps.Keys(s.ports), comparePorts) {
		port.Nodes = int32(len(s.ports[port]))
		out = append(out, port)
	}
	if len(out) > v1alpha1.MaxHostPorts {
		return []v1alpha1.HostPort{{Port: 0, Protocol: v1.ProtocolTCP, Nodes: int32(len(s.nodes))}}
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
