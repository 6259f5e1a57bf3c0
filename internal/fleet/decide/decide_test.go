package decide

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

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

func TestRanking(t *testing.T) {
	avoid := []clusterv1.Taint{taintOf("slow", "", clusterv1.TaintEffectPreferNoSelect, 0)}
	for name, tc := range map[string]struct {
		fleet  []*Cluster
		chosen []int32
		rules  []Prioritizer
		number int64
		want   string
		short  int64
	}{
		"highest allocatable": {named("a=4 b=8 c=6 d=1"), nil, byCPU, 2, "b c", 0},
		"lowest allocatable": {
			named("a=4 b=8 c=6 d=1"), nil, []Prioritizer{{Kind: v1beta1.ResourceAllocatableCPU, Weight: -1}}, 2, "a d", 0,
		},
		"ties by name":                 {named("a=4 b=4 c=4 d=4"), nil, byCPU, 2, "a b", 0},
		"ties by previous choice":      {named("a=4 b=4 c=4 d=4"), []int32{1, 3}, byCPU, 2, "b d", 0},
		"score before previous choice": {named("a=9 b=4 c=4 d=4"), []int32{1, 3}, byCPU, 2, "a b", 0},
		"more than feasible":           {named("a=1 b=2"), nil, byCPU, 5, "a b", 3},
		"zero clusters":                {named("a=1 b=2"), nil, byCPU, 0, "", 0},
		"negative number":              {named("a=1 b=2"), nil, byCPU, -3, "", 0},
		"empty fleet":                  {nil, nil, byCPU, 2, "", 2},
		// c has the highest score but is ranked last because of its taint.
		"PreferNoSelect": {
			append(named("a=1 b=2"), &Cluster{Name: "c", Taints: avoid, Allocatable: Amounts{9000, 0}}), nil, byCPU, 2, "a b", 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := &Request{
				Fleet: tc.fleet, Members: Indexes(len(tc.fleet)), Prioritizers: tc.rules, Number: tc.number, Chosen: tc.chosen,
			}
			d := Decide(r)
			if got := names(r, d); got != tc.want || d.Shortfall != tc.short {
				t.Errorf("chosen %q, %d short, want %q, %d short", got, d.Shortfall, tc.want, tc.short)
			}
		})
	}
}

// ResourceAllocatableCPU scores b 100, a 20 (200 x (6/10 - 0.5)) and c -100. c is the
// previous choice: with weight 1 of Steady its total is -100 + 100 = 0, less than b's. With
// weight 2 it is -100 + 200 = 100, equal to b's, and the previous choice wins. With weight 3
// it is 200.
func TestSteadyPins(t *testing.T) {
	for weight, want := range map[int32]string{0: "b", 1: "b", 2: "c", 3: "c"} {
		r := &Request{
			Fleet: named("a=7 b=11 c=1"), Members: Indexes(3), Number: 1, Chosen: []int32{2},
			Prioritizers: []Prioritizer{{Kind: v1beta1.ResourceAllocatableCPU, Weight: 1}, {Kind: v1beta1.Steady, Weight: weight}},
		}
		if got := names(r, Decide(r)); got != want {
			t.Errorf("weight %d: chosen %s, want %s", weight, got, want)
		}
	}
}

// tolerating returns a toleration of all taints for a number of seconds after they were added.
func tolerating(seconds int64) clusterv1beta1.Toleration {
	return clusterv1beta1.Toleration{Operator: clusterv1beta1.TolerationOpExists, TolerationSeconds: &seconds}
}

// TestTaints checks one taint k=v at second 1000. TestAgainstOracle checks several taints, and times at the limits of int64.
func TestTaints(t *testing.T) {
	const (
		no     = clusterv1.TaintEffectNoSelect
		prefer = clusterv1.TaintEffectPreferNoSelect
		ifNew  = clusterv1.TaintEffectNoSelectIfNew
		exists = clusterv1beta1.TolerationOpExists
	)
	type tolerations = []clusterv1beta1.Toleration
	for name, tc := range map[string]struct {
		effect      clusterv1.TaintEffect
		added       int64
		tolerations tolerations
		before      bool
		outcome     ClusterOutcome
		avoided     bool
		changesAt   int64
	}{
		"not tolerated, chosen before": {no, 900, nil, true, Tainted, false, Forever},
		"PreferNoSelect":               {prefer, 900, nil, false, Chosen, true, Forever},
		"NoSelectIfNew":                {ifNew, 900, nil, false, Tainted, false, Forever},
		"NoSelectIfNew, chosen before": {ifNew, 900, nil, true, Chosen, false, Forever},
		"unknown effect":               {"", 900, nil, true, Tainted, false, Forever},
		"key and value":                {no, 900, tolerations{{Key: "k", Value: "v"}}, false, Chosen, false, Forever},
		"another value":                {no, 900, tolerations{{Key: "k", Value: "w"}}, false, Tainted, false, Forever},
		"another key":                  {no, 900, tolerations{{Key: "l", Operator: exists}}, false, Tainted, false, Forever},
		"any value":                    {no, 900, tolerations{{Key: "k", Operator: exists}}, false, Chosen, false, Forever},
		"any key":                      {no, 900, tolerations{{Operator: exists}}, false, Chosen, false, Forever},
		"Equal without key":            {no, 900, tolerations{{Value: "v"}}, false, Tainted, false, Forever},
		"unknown operator":             {no, 900, tolerations{{Key: "k", Operator: "unknown"}}, false, Tainted, false, Forever},
		"another effect":               {prefer, 900, tolerations{{Operator: exists, Effect: no}}, false, Chosen, true, Forever},
		"to the last second":           {no, 900, tolerations{tolerating(101)}, false, Chosen, false, 1001},
		"expired this second":          {no, 900, tolerations{tolerating(100)}, true, Tainted, false, Forever},
		"PreferNoSelect, expired":      {prefer, 600, tolerations{tolerating(300)}, false, Chosen, true, Forever},
		"seconds with NoSelectIfNew":   {ifNew, 600, tolerations{tolerating(300)}, false, Chosen, false, Forever},
		"longest toleration":           {no, 900, tolerations{tolerating(300), tolerating(400)}, false, Chosen, false, 1300},
		"one without limit":            {no, 900, tolerations{tolerating(300), {Key: "k", Value: "v"}}, false, Chosen, false, Forever},
		"unknown time added":           {no, 0, tolerations{tolerating(300)}, false, Tainted, false, Forever},
		"time added overflows":         {no, math.MaxInt64, tolerations{tolerating(1e18)}, false, Chosen, false, Forever},
		"added in the near future":     {no, 1100, tolerations{tolerating(300)}, false, Chosen, false, 1400},
	} {
		t.Run(name, func(t *testing.T) {
			r := &Request{
				Fleet:   []*Cluster{{Name: "a", Taints: []clusterv1.Taint{taintOf("k", "v", tc.effect, tc.added)}}},
				Members: []int32{0}, Number: All, Tolerations: tc.tolerations, Now: 1000,
			}
			if tc.before {
				r.Chosen = []int32{0}
			}
			d := Decide(r)
			if got := d.Clusters[0]; got.Outcome != tc.outcome || got.Avoided != tc.avoided || d.ChangesAt != tc.changesAt {
				t.Errorf("%s, avoided: %v, changes at %d, want %s, avoided: %v, changes at %d",
					got.Outcome, got.Avoided, d.ChangesAt, tc.outcome, tc.avoided, tc.changesAt)
			}
		})
	}
}

// A score that is valid until second 1100 inclusive is missing from second 1101 on.
func TestChangesWithScore(t *testing.T) {
	r := &Request{
		Fleet: named("a b"), Members: Indexes(2), Number: All, Now: 1100,
		Prioritizers: []Prioritizer{addOn("usage", "cpu", 1)},
	}
	r.Fleet[0].Scores, r.Fleet[1].Scores = usageScore(50, 1100), usageScore(50, 1300)
	d := Decide(r)
	if d.ChangesAt != 1101 || d.Clusters[0].Total != 50 {
		t.Errorf("changes at %d, total %d, want 1101 and 50", d.ChangesAt, d.Clusters[0].Total)
	}
	r.Now = d.ChangesAt
	if d = Decide(r); d.ChangesAt != 1301 || d.Clusters[0].Total != -100 {
		t.Errorf("after expiry: changes at %d, total %d, want 1301 and -100", d.ChangesAt, d.Clusters[0].Total)
	}
}

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
