package fleet

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Selector matches clusters that meet all of its requirements; the zero value
// matches all clusters.
type Selector struct {
	Labels, Claims []metav1.LabelSelectorRequirement
}

// Predicate is a condition on clusters: a selector and, because expressions are slow, expressions on the clusters that
// the selector matches.
type Predicate struct {
	Selector
	expressions []*expression
}

// attribute is a label or claim of clusters.
type attribute struct {
	key   string
	claim bool
}

// of returns the value of a cluster, if it has one.
func (a attribute) of(c *Cluster) (value string, found bool) {
	if a.claim {
		value, found = c.Claims[a.key]
		return value, found
	}
	value, found = c.Labels[a.key]
	return value, found
}

// maxColumns is the maximum number of columns of an Index, one for each label or claim.
const maxColumns = 64

// Index has the data of all clusters of a fleet that decisions read, in arrays by cluster. To read an array takes a fraction
// of the time of following a pointer to each cluster and looking up its labels. A decision adds columns for the labels and
// claims that its selectors use, and uses the buffers of the index: it is not safe for concurrent use.
type Index struct {
	allocatable, capacity [numAmounts][]int64
	tainted, ignored      []bool // whether a cluster has taints, and amounts that are ignored
	columns               map[attribute]*column

	// Buffers of one decision, which has clusters and scores.
	feasible, others    []int32
	mask, matched, meet []uint8
	clusters            []ClusterResult
	scores              []int8
}

// column has the values of an attribute.
type column struct {
	// ids has the number of the value of each cluster, 0 without the attribute.
	ids []int32
	// numbers are the numbers of the values, from 1.
	numbers map[string]int32
}

// NewIndex returns the index of a fleet.
func NewIndex(fleet []*Cluster) *Index {
	n := len(fleet)
	x := &Index{
		tainted: make([]bool, n), ignored: make([]bool, n), columns: map[attribute]*column{},
		feasible: make([]int32, 0, n), others: make([]int32, n),
		mask: make([]uint8, n), matched: make([]uint8, n), clusters: make([]ClusterResult, n),
	}
	for resource := range numAmounts {
		x.allocatable[resource], x.capacity[resource] = make([]int64, n), make([]int64, n)
	}
	for i, cluster := range fleet {
		x.Set(i, cluster)
	}
	return x
}

// Set replaces the cluster with an index in the fleet. The fleet of the next request must have it.
func (x *Index) Set(i int, cluster *Cluster) {
	for resource := range numAmounts {
		x.allocatable[resource][i], x.capacity[resource][i] = cluster.Allocatable[resource], cluster.Capacity[resource]
	}
	x.tainted[i], x.ignored[i] = len(cluster.Taints) > 0, len(cluster.Ignored) > 0
	for a, c := range x.columns {
		c.set(i, a, cluster)
		if len(c.numbers) > 2*len(c.ids)+16 { // of values that no cluster has any more
			delete(x.columns, a)
		}
	}
}

// set sets the value of a cluster.
func (c *column) set(i int, a attribute, cluster *Cluster) {
	value, found := a.of(cluster)
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

// column returns a column and adds it if it is missing. If there are too many columns, all others are dropped first.
func (x *Index) column(fleet []*Cluster, a attribute) *column {
	if c := x.columns[a]; c != nil {
		return c
	}
	if len(x.columns) >= maxColumns {
		clear(x.columns)
	}
	c := &column{ids: make([]int32, len(fleet)), numbers: map[string]int32{}}
	for i, cluster := range fleet {
		c.set(i, a, cluster)
	}
	x.columns[a] = c
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
		if len(predicate.expressions) == 0 {
			for i, is := range x.mask {
				x.matched[i] |= is
			}
			continue
		}
		for _, i := range r.Members {
			if x.mask[i] == 1 && x.matched[i] == 0 && r.Match(p, r.Fleet[i]) {
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
		if !x.require(x.column(fleet, attribute{key: s.Labels[k].Key}), &s.Labels[k]) {
			return false
		}
	}
	for k := range s.Claims {
		if !x.require(x.column(fleet, attribute{s.Claims[k].Key, true}), &s.Claims[k]) {
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
