package capacity

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unique"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-k8s/plimsoll/api/capacity/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// Summary is a ClusterCapacity in arrays by group. It does not change.
type Summary struct {
	// Cluster is the name of the cluster, ObservedAt the Unix time in seconds of the observation.
	Cluster    string
	ObservedAt int64
	// Nodes is the number of nodes of the cluster.
	Nodes int64

	// classes have consecutive groups.
	classes []classGroups
	nodes   []int64
	// free and total are the free amounts by resource and group, without and with the slack that placeholder pods hold.
	free, total map[v1.ResourceName][]int64
	hostPorts   map[hostPort]int64
	pools       [][]shape
	quotas      map[string]vector
	recent      map[types.NamespacedName]int32
}

// Recent returns the number of recent pods of a workload, 0 if it is not in the summary.
func (s *Summary) Recent(workload types.NamespacedName) int32 {
	if workload.Name == "" {
		return 0
	}
	return s.recent[workload]
}

// classGroups are the groups of a class, from and up to an index.
type classGroups struct {
	class

	from, to int
}

// shape is a shape of nodes that an autoscaler can add.
type shape struct {
	class

	pool string
	free vector
	// nodes is the maximum number of nodes, boot the time in seconds until a node takes pods, and price the price of a node for
	// an hour in millionths; boot and price are negative if they are unknown.
	nodes, boot, price int64
}

// Bounds of credible amounts.
const (
	maxNodes = 100_000
	// maxAmount is the largest integer up to which a float64 represents all integers: 4 PiB, or 4 trillion cores.
	maxAmount = 1 << 52
)

// NewSummary converts the status of a ClusterCapacity. It returns an error if the status is not valid.
func NewSummary(status *v1alpha1.ClusterCapacityStatus) (*Summary, error) {
	if err := checkSizes(status); err != nil {
		return nil, err
	}
	s := &Summary{
		Cluster: status.Cluster, ObservedAt: status.ObservedAt.Unix(), Nodes: int64(status.Nodes),
		free: map[v1.ResourceName][]int64{}, hostPorts: map[hostPort]int64{}, quotas: map[string]vector{},
		recent: map[types.NamespacedName]int32{},
	}
	classes := make([]class, len(status.Classes))
	for i := range status.Classes {
		slices.Sort(status.Classes[i].VariousLabels)
		status.Classes[i].Taints = sortedTaints(status.Classes[i].Taints)
		classes[i] = unique.Make(keyOf(&status.Classes[i]))
	}
	if err := s.addGroups(status.Groups, classes); err != nil {
		return nil, err
	}
	if err := s.addPools(status.ScaleUp, classes); err != nil {
		return nil, err
	}
	for _, p := range status.HostPorts {
		s.hostPorts[hostPort{p.Port, p.Protocol}] = int64(max(p.Nodes, 0))
	}
	for _, q := range status.Quotas {
		s.quotas[q.Namespace] = quotaVector(q.Left)
	}
	for _, r := range status.Recent {
		s.recent[types.NamespacedName{Namespace: r.Namespace, Name: r.Name}] = r.Pods
	}
	return s, nil
}

// checkSizes returns an error if a list is too long or the time is missing. Texts of labels must not contain separators.
func checkSizes(status *v1alpha1.ClusterCapacityStatus) error {
	if status.ObservedAt.IsZero() {
		return fmt.Errorf("status.observedAt: required")
	}
	for _, list := range []struct {
		name       string
		found, max int
	}{
		{"classes", len(status.Classes), v1alpha1.MaxClasses},
		{"groups", len(status.Groups), v1alpha1.MaxGroups},
		{"scaleUp", len(status.ScaleUp), v1alpha1.MaxScaleUps},
		{"quotas", len(status.Quotas), v1alpha1.MaxQuotas},
		{"hostPorts", len(status.HostPorts), v1alpha1.MaxHostPorts},
		{"recent", len(status.Recent), v1alpha1.MaxRecent},
	} {
		if list.found > list.max {
			return fmt.Errorf("status.%s: found %d, at most %d are allowed", list.name, list.found, list.max)
		}
	}
	for i := range status.Classes {
		if key := keyOf(&status.Classes[i]); strings.Count(key, listEnd) != 2 ||
			strings.Count(
				key,
				partEnd,
			) != 2*len(
				status.Classes[i].Labels,
			)+len(
				status.Classes[i].VariousLabels,
			)+3*len(
				status.Classes[i].Taints,
			) {
			return fmt.Errorf("status.classes[%d]: labels and taints must not contain control characters", i)
		}
	}
	return nil
}

// classAt returns a class by index.
func classAt(classes []class, i int32, field string) (class, error) {
	if i < 0 || int(i) >= len(classes) {
		return class{}, fmt.Errorf("%s: found %d: must be the index of one of %d classes", field, i, len(classes))
	}
	return classes[i], nil
}

// groupAmount returns a credible amount of a group. The number of pods, which each pod needs, bounds the sums over nodes and groups.
func groupAmount(name v1.ResourceName, quantity resource.Quantity) int64 {
	r := resources.NewResource(name)
	if r.Index() == resources.Pods {
		return min(r.Amount(quantity), MaxReplicas)
	}
	return min(r.Amount(quantity), maxAmount)
}

// addGroups adds the groups, in the order of their classes.
func (s *Summary) addGroups(groups []v1alpha1.NodeGroup, classes []class) error {
	ordered := slices.Clone(groups)
	slices.SortStableFunc(ordered, func(a, b v1alpha1.NodeGroup) int { return int(a.Class) - int(b.Class) })
	slack := map[v1.ResourceName][]int64{}
	column := func(columns map[v1.ResourceName][]int64, name v1.ResourceName) []int64 {
		if columns[name] == nil {
			columns[name] = make([]int64, len(ordered))
		}
		return columns[name]
	}
	for i := range ordered {
		g := &ordered[i]
		c, err := classAt(classes, g.Class, fmt.Sprintf("status.groups[%d].class", i))
		if err != nil {
			return err
		}
		if g.Nodes < 1 || g.Nodes > maxNodes {
			return fmt.Errorf("status.groups[%d].nodes: found %d: must be in [1, %d]", i, g.Nodes, maxNodes)
		}
		if n := len(s.classes); n == 0 || s.classes[n-1].class != c {
			s.classes = append(s.classes, classGroups{class: c, from: i})
		}
		s.classes[len(s.classes)-1].to = i + 1
		s.nodes = append(s.nodes, int64(g.Nodes))
		for name, quantity := range g.Free {
			column(s.free, name)[i] = groupAmount(name, quantity)
		}
		for name, quantity := range g.Slack {
			column(slack, name)[i] = groupAmount(name, quantity)
		}
	}
	s.total = s.free
	if len(slack) > 0 {
		s.total = map[v1.ResourceName][]int64{}
		for name := range s.free {
			copy(column(s.total, name), s.free[name])
		}
		for name := range slack {
			for i, amount := range slack[name] {
				column(s.total, name)[i] += amount
			}
		}
	}
	return nil
}

// addPools adds the shapes that autoscalers can add, by pool.
func (s *Summary) addPools(list []v1alpha1.ScaleUp, classes []class) error {
	for i := range list {
		up := &list[i]
		field := fmt.Sprintf("status.scaleUp[%d]", i)
		c, err := classAt(classes, up.Class, field+".class")
		if err != nil {
			return err
		}
		if up.MaxNodes < 1 || up.MaxNodes > maxNodes {
			return fmt.Errorf("%s.maxNodes: found %d: must be in [1, %d]", field, up.MaxNodes, maxNodes)
		}
		next := shape{class: c, pool: up.Pool, free: vectorOf(up.Free), nodes: int64(up.MaxNodes), boot: -1, price: -1}
		if up.BootSeconds != nil && *up.BootSeconds >= 0 {
			next.boot = int64(*up.BootSeconds)
		}
		if up.PricePerHour != "" {
			price, err := strconv.ParseFloat(up.PricePerHour, 64)
			if err != nil || !(price >= 0 && price <= 1e6) {
				return fmt.Errorf("%s.pricePerHour: found %q: must be a decimal number in [0, 1000000]", field, up.PricePerHour)
			}
			next.price = int64(math.Round(price * 1e6))
		}
		n := slices.IndexFunc(s.pools, func(p []shape) bool { return p[0].pool == up.Pool })
		if n < 0 {
			s.pools = append(s.pools, []shape{next})
		} else {
			s.pools[n] = append(s.pools[n], next)
		}
	}
	return nil
}

// quotaVector converts the amounts that a quota leaves. A missing amount has no limit, in contrast to an amount of 0.
func quotaVector(left v1.ResourceList) vector {
	out := vectorOf(left)
	for _, name := range []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory, v1.ResourceEphemeralStorage, v1.ResourcePods} {
		if _, limited := left[name]; !limited {
			out.Amounts[resources.NewResource(name).Index()] = math.MaxInt64
		}
	}
	for name := range left {
		if resources.NewResource(name).Index() == resources.Extended {
			if out.extended == nil {
				out.extended = map[v1.ResourceName]int64{}
			}
			out.extended[name] += 0 // an amount of 0 is a limit
		}
	}
	return out
}
