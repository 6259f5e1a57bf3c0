package decide

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/plimsoll-k8s/plimsoll/api/placement/v1beta1"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// named returns clusters from names with optional allocatable cores, such as "a=4 b=8".
func named(specs string) (fleet []*Cluster) {
	for spec := range strings.FieldsSeq(specs) {
		name, cpu, _ := strings.Cut(spec, "=")
		c := &Cluster{Name: name, Allocatable: Amounts{Missing, Missing}, Capacity: Amounts{Missing, Missing}}
		if cpu != "" {
			var cores int64
			if _, err := fmt.Sscan(cpu, &cores); err != nil {
				panic(err)
			}
			c.Allocatable[resources.CPU] = cores * 1000
		}
		fleet = append(fleet, c)
	}
	return fleet
}

// names returns the names of the chosen clusters.
func names(r *Request, d *Decision) string {
	var all []string
	for _, i := range d.Chosen {
		all = append(all, r.Fleet[i].Name)
	}
	return strings.Join(all, " ")
}

var byCPU = []Prioritizer{{Kind: v1beta1.ResourceAllocatableCPU, Weight: 1}}

func TestOutcomes(t *testing.T) {
	fleet := named("a b c d e")
	for i := range fleet {
		fleet[i].Labels = map[string]string{"tier": []string{"gold", "tin"}[min(i, 1)]}
	}
	fleet[2].Claims = map[string]string{"platform": "AWS"}
	fleet[3].Taints = []clusterv1.Taint{taintOf("k", "", clusterv1.TaintEffectNoSelect, 0)}
	r := &Request{
		Fleet: fleet, Members: []int32{0, 1, 2, 3}, Number: All,
		Predicates: []Predicate{
			{Selector: Selector{Labels: selectorOf("tier=gold")}},
			{Selector: Selector{Claims: selectorOf("platform")}},
			{Selector: Selector{Claims: selectorOf("!platform")}, HasExpressions: true},
		},
		Match: func(_ int, c *Cluster) bool { return c.Name == "d" },
	}
	d := Decide(r)
	var got []ClusterOutcome
	for _, result := range d.Clusters {
		got = append(got, result.Outcome)
	}
	if want := []ClusterOutcome{Chosen, Unmatched, Chosen, Tainted, NotMember}; !slices.Equal(got, want) {
		t.Errorf("outcomes %v, want %v", got, want)
	}
	if d.Members != 4 || d.Matched != 3 || d.Feasible != 2 {
		t.Errorf("%d members, %d matched, %d feasible, want 4, 3, 2", d.Members, d.Matched, d.Feasible)
	}
}

func TestNamesOfConstants(t *testing.T) {
	for o := Chosen; o <= Tainted; o++ {
		if o.Feasible() != slices.Contains([]string{"Chosen", "Outranked", "Skewed", "NoTopology"}, o.String()) {
			t.Errorf("outcome %d is %s, feasible: %v", o, o, o.Feasible())
		}
	}
}
