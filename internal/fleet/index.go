package fleet

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// maxColumns is the maximum number of columns of an Index, one for each label or claim key.
const maxColumns = 64

// Index has the data of all clusters of a fleet that decisions read, in arrays by cluster. To read an array takes a fraction
// of the time of following a pointer to each cluster and looking up its labels. A decision adds columns for the labels and
// claims that its predicates use, and uses the buffers of the index: it is not safe for concurrent use.
type Index struct {
	allocatable, capacity [numAmounts][]int64
	tainted               []bool
	labels, claims        map[string]*column

	// Buffers of one decision.
	feasible, others    []int32
	totals              []int64
	mask, matched, meet []uint8
	clusters            []ClusterResult
	scores              []int8
}

// column has the values of a label or claim.
type column struct {
	// ids has the number of the value of each cluster, 0 without the key.
	ids []int32
	// numbers are the numbers of the values, from 1.
	numbers map[string]int32
}

// NewIndex returns the index of a fleet.
func NewIndex(fleet []*Cluster) *Index {
	n := len(fleet)
	x := &Index{
		tainted: make([]bool, n), labels: map[string]*column{}, claims: map[string]*column{},
		feasible: make([]int32, 0, n), others: make([]int32, n), totals: make([]int64, n),
		mask: make([]uint8, n), matched: make([]uint8, n),
	}
	for resource := range numAmounts {
		x.allocatable[resource], x.capacity[resource] = make([]int64, n), make([]int64, n)
	}
	for i, cluster := range fleet {
		x.setAmounts(i, cluster)
	}
	return x
}

// results returns lists for the results of each cluster and for a column of scores for each prioritizer, with any content.
func (x *Index) results(r *Request) (clusters []ClusterResult, scores []int8) {
	n := len(r.Prioritizers) * len(r.Fleet)
	if !r.Transient {
		return make([]ClusterResult, len(r.Fleet)), make([]int8, n)
	}
	if x.clusters == nil {
		x.clusters = make([]ClusterResult, len(r.Fleet))
	}
	if cap(x.scores) < n {
		x.scores = make([]int8, n)
	}
	return x.clusters, x.scores[:n]
}

// Set replaces the cluster with an index in the fleet. The fleet of the next request must have it.
func (x *Index) Set(i int, cluster *Cluster) {
	x.setAmounts(i, cluster)
	for _, set := range []struct {
		columns map[string]*column
		values  map[string]string
	}{{x.labels, cluster.Labels}, {x.claims, cluster.Claims}} {
		for key, c := range set.columns {
			c.set(i, key, set.values)
			if len(c.numbers) > 2*len(c.ids)+16 { // of values that no cluster has any more
				delete(set.columns, key)
			}
		}
	}
}

// setAmounts sets the amounts of a cluster, and whether it has taints.
func (x *Index) setAmounts(i int, cluster *Cluster) {
	for resource := range numAmounts {
		x.allocatable[resource][i], x.capacity[resource][i] = cluster.Allocatable[resource], cluster.Capacity[resource]
	}
	x.tainted[i] = len(cluster.Taints) > 0
}

// set sets the value of a cluster.
func (c *column) set(i int, key string, values map[string]string) {
	value, found := values[key]
	if !found {
		c.ids[i] = 0
		return
	}
	number, known := c.numbers[value]
	if !known {
		number = int32(len(c.numbers) + 1)
		c.numbers[value] = number
	}
	c.ids[i] = number
}

// label returns the column of a label.
func (x *Index) label(fleet []*Cluster, key string) *column {
	return x.columnOf(x.labels, fleet, key, func(c *Cluster) map[string]string { return c.Labels })
}

// claim returns the column of a claim.
func (x *Index) claim(fleet []*Cluster, key string) *column {
	return x.columnOf(x.claims, fleet, key, func(c *Cluster) map[string]string { return c.Claims })
}

// columnOf returns a column and adds it if it is missing. If there are too many columns, all others are dropped first.
func (x *Index) columnOf(columns map[string]*column, fleet []*Cluster, key string, values func(*Cluster) map[string]string) *column {
	if c := columns[key]; c != nil {
		return c
	}
	if len(x.labels)+len(x.claims) >= maxColumns {
		clear(x.labels)
		clear(x.claims)
	}
	c := &column{ids: make([]int32, len(fleet)), numbers: map[string]int32{}}
	for i, cluster := range fleet {
		c.set(i, key, values(cluster))
	}
	columns[key] = c
	return c
}

// matches returns 1 for each member that matches a predicate, else 0; nil if there are no predicates. It is valid until
// the next call.
func (x *Index) matches(r *Request) []uint8 {
	if len(r.Predicates) == 0 {
		return nil
	}
	clear(x.matched)
	for p := range r.Predicates {
		predicate := &r.Predicates[p]
		if !x.selectClusters(r.Fleet, &predicate.Selector) {
			continue
		}
		if predicate.Match == nil {
			for i, is := range x.mask {
				x.matched[i] |= is
			}
			continue
		}
		for _, i := range r.Members {
			if x.mask[i] == 1 && x.matched[i] == 0 && predicate.Match(int(i)) {
				x.matched[i] = 1
			}
		}
	}
	return x.matched
}

// selectClusters sets mask to 1 for each cluster that meets a selector, else to 0. It reports whether any cluster does.
func (x *Index) selectClusters(fleet []*Cluster, s *Selector) bool {
	for i := range x.mask {
		x.mask[i] = 1
	}
	for k := range s.Labels {
		if !x.require(x.label(fleet, s.Labels[k].Key), &s.Labels[k]) {
			return false
		}
	}
	for k := range s.Claims {
		if !x.require(x.claim(fleet, s.Claims[k].Key), &s.Claims[k]) {
			return false
		}
	}
	return true
}

// require removes the clusters that do not meet a requirement from mask. It reports whether any cluster remains.
func (x *Index) require(c *column, r *metav1.LabelSelectorRequirement) bool {
	meet := x.meeting(c, r)
	var remains uint8
	ids := c.ids[:len(x.mask)]
	for i := range x.mask {
		x.mask[i] &= meet[ids[i]]
		remains |= x.mask[i]
	}
	return remains == 1
}

// meeting returns 1 for the number of each value that meets a requirement, else 0. No value meets an unknown operator.
func (x *Index) meeting(c *column, r *metav1.LabelSelectorRequirement) []uint8 {
	var absent, listed, other uint8 // whether clusters without the key, with a listed and with another value meet it
	switch r.Operator {
	case metav1.LabelSelectorOpIn:
		listed = 1
	case metav1.LabelSelectorOpNotIn:
		absent, other = 1, 1
	case metav1.LabelSelectorOpExists:
		listed, other = 1, 1
	case metav1.LabelSelectorOpDoesNotExist:
		absent = 1
	}
	n := len(c.numbers) + 1
	if cap(x.meet) < n {
		x.meet = make([]uint8, 2*n)
	}
	meet := x.meet[:n]
	meet[0] = absent
	for number := range meet[1:] {
		meet[number+1] = other
	}
	for _, value := range r.Values {
		if number, known := c.numbers[value]; known {
			meet[number] = listed
		}
	}
	return meet
}
