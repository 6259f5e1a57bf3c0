package fit

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"unique"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-k8s/plimsoll/api/capacity/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// classKey is a NodeClass as JSON, so that equal classes of all clusters are one value.
type classKey = unique.Handle[string]

// keyOf returns the key of a class.
func keyOf(c *v1alpha1.NodeClass) classKey {
	text, _ := json.Marshal(c) // of strings
	return unique.Make(string(text))
}

// classOf returns the class with a key.
func classOf(key classKey) (out v1alpha1.NodeClass) {
	_ = json.Unmarshal([]byte(key.Value()), &out) // of keyOf
	return out
}

// amounts are the amounts of each group by resource.
type amounts map[v1.ResourceName][]int64

// Summary is a ClusterCapacity in arrays by group. It does not change.
type Summary struct {
	// Cluster is the name of the cluster, ObservedAt the Unix time in seconds of the observation.
	Cluster    string
	ObservedAt int64

	// classes have consecutive groups, and nodes is the number of nodes of each group.
	classes []classGroups
	nodes   []int64
	// free and total are the amounts without and with the slack that placeholder pods hold, of the groups and then of the shapes of
	// pools. They are the same if hasSlack is not set.
	free, total amounts
	hasSlack    bool
	// pools are the shapes of the nodes of each pool, in the order of boot times.
	pools     [][]shape
	hostPorts []v1alpha1.HostPort
	quotas    map[string]v1.ResourceList
	recent    map[types.NamespacedName]int32

	// local are the nodes of the groups for each template, nil if the pods of the cluster are not known.
	local map[*Template]*Local
}

// Recent returns the number of recent pods of a workload, 0 if it is not in the summary.
func (s *Summary) Recent(workload types.NamespacedName) int32 { return s.recent[workload] }

// classGroups are the groups of a class, from and up to an index.
type classGroups struct {
	key      classKey
	from, to int
}

// groupsIn returns the part of a list by group that belongs to the class.
func (c *classGroups) groupsIn(byGroup []int64) []int64 { return byGroup[c.from:c.to] }

// shape is a shape of nodes that an autoscaler can add.
type shape struct {
	classGroups // has the index of the amounts

	pool string
	// nodes is the maximum number of nodes.
	nodes int64
	// boot is the time in seconds until a node takes pods, and price the price of a node for an hour in millionths.
	boot, price int64
}

// Bounds of credible amounts.
const (
	maxNodes = 100_000
	// maxAmount is the largest integer up to which a float64 represents all integers: 4 PiB, or 4 trillion cores.
	maxAmount = 1 << 52
)

// NewSummary converts the status of a ClusterCapacity. It returns an error if the status is not valid.
func NewSummary(status *v1alpha1.ClusterCapacityStatus) (*Summary, error) {
	if err := checkStatus(status); err != nil {
		return nil, err
	}
	return newSummary(status)
}

// newSummary converts a status without checks.
func newSummary(status *v1alpha1.ClusterCapacityStatus) (*Summary, error) {
	s := &Summary{
		Cluster: status.Cluster, ObservedAt: status.ObservedAt.Unix(), free: amounts{}, total: amounts{},
		hostPorts: status.HostPorts, quotas: map[string]v1.ResourceList{}, recent: map[types.NamespacedName]int32{},
	}
	keys := make([]classKey, len(status.Classes))
	for i := range status.Classes {
		keys[i] = keyOf(&status.Classes[i])
	}
	count := len(status.Groups) + len(status.ScaleUp)
	for i, g := range slices.SortedStableFunc(slices.Values(status.Groups), func(a, b v1alpha1.NodeGroup) int {
		return cmp.Compare(a.Class, b.Class)
	}) {
		key := keys[g.Class]
		if n := len(s.classes); n == 0 || s.classes[n-1].key != key {
			s.classes = append(s.classes, classGroups{key: key, from: i})
		}
		s.classes[len(s.classes)-1].to = i + 1
		s.nodes = append(s.nodes, int64(g.Nodes))
		s.free.addList(g.Free, i, count)
		s.total.addList(g.Free, i, count)
		s.total.addList(g.Slack, i, count)
		s.hasSlack = s.hasSlack || len(g.Slack) > 0
	}
	if !s.hasSlack {
		s.total = s.free
	}
	for i, up := range status.ScaleUp {
		at := len(status.Groups) + i
		s.free.addList(up.Free, at, count)
		next, err := shapeOf(&up, classGroups{keys[up.Class], at, at + 1})
		if err != nil {
			return nil, fmt.Errorf("status.scaleUp[%d].pricePerHour: %w", i, err)
		}
		pool := slices.IndexFunc(s.pools, func(p []shape) bool { return p[0].pool == up.Pool })
		if pool < 0 {
			pool, s.pools = len(s.pools), append(s.pools, nil)
		}
		s.pools[pool] = append(s.pools[pool], next)
	}
	slices.SortStableFunc(s.pools, func(a, b []shape) int { return cmp.Compare(a[0].boot, b[0].boot) })
	for _, q := range status.Quotas {
		s.quotas[q.Namespace] = q.Left
	}
	for _, r := range status.Recent {
		s.recent[types.NamespacedName{Namespace: r.Namespace, Name: r.Name}] = r.Pods
	}
	return s, nil
}

// shapeOf returns the shape of the nodes that a pool may add, whose amounts are in a group.
func shapeOf(up *v1alpha1.ScaleUp, group classGroups) (s shape, err error) {
	s = shape{group, up.Pool, int64(up.MaxNodes), never, never}
	if up.PricePerHour != "" {
		s.price, err = v1alpha1.ParsePrice(up.PricePerHour)
	}
	if up.BootSeconds != nil && *up.BootSeconds >= 0 {
		s.boot = int64(*up.BootSeconds)
	}
	return s, err
}

// addList adds a list to the amounts at an index of a number of groups. The number of pods, which each pod needs, is at most MaxReplicas,
// so that sums over nodes and groups do not overflow.
func (a amounts) addList(list v1.ResourceList, at, count int) {
	for name, quantity := range list {
		if a[name] == nil {
			a[name] = make([]int64, count)
		}
		limit := int64(maxAmount)
		if name == v1.ResourcePods {
			limit = MaxReplicas
		}
		a[name][at] = min(a[name][at]+min(resources.NewResource(name).Amount(quantity), limit), limit)
	}
}

// byGroup returns the amounts of a resource of the groups of a class, nil if no group has the resource.
func (a amounts) byGroup(name v1.ResourceName, c *classGroups) []int64 {
	column := a[name]
	if column == nil {
		return nil
	}
	return c.groupsIn(column)
}

// checkStatus returns an error if a list is too long, or a time, an index or a number is missing or out of range.
func checkStatus(status *v1alpha1.ClusterCapacityStatus) error {
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
	checkNodes := func(field string, class int32, name string, nodes int32) error {
		switch {
		case class < 0 || int(class) >= len(status.Classes):
			return fmt.Errorf(
				"%s.class: found %d: must be the index of one of %d classes, counted from 0",
				field,
				class,
				len(status.Classes),
			)
		case nodes < 1 || nodes > maxNodes:
			return fmt.Errorf("%s.%s: found %d: must be in [1, %d]", field, name, nodes, maxNodes)
		}
		return nil
	}
	for i, g := range status.Groups {
		if err := checkNodes(fmt.Sprintf("status.groups[%d]", i), g.Class, "nodes", g.Nodes); err != nil {
			return err
		}
	}
	for i, up := range status.ScaleUp {
		if err := checkNodes(fmt.Sprintf("status.scaleUp[%d]", i), up.Class, "maxNodes", up.MaxNodes); err != nil {
			return err
		}
	}
	return nil
}
