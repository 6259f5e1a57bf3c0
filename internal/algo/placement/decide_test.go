package placement

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

// named returns clusters with these names, and allocatable CPU in steps of one
// core: "a=4 b=8".
func named(specs string) (fleet []*Cluster) {
	for spec := range strings.FieldsSeq(specs) {
		name, cpu, _ := strings.Cut(spec, "=")
		c := &Cluster{Name: name, Allocatable: Amounts{Missing, Missing}, Capacity: Amounts{Missing, Missing}}
		if cpu != "" {
			var cores int64
			if _, err := fmt.Sscan(cpu, &cores); err != nil {
				panic(err)
			}
			c.Allocatable[CPU] = cores * 1000
		}
		fleet = append(fleet, c)
	}
	return fleet
}

// names of the chosen clusters.
func names(r *Request, d *Decision) string {
	var all []string
	for _, i := range d.Chosen {
		all = append(all, r.Fleet[i].Name)
	}
	return strings.Join(all, " ")
}

var byCPU = []Prioritizer{{Kind: ResourceAllocatableCPU, Weight: 1}}

func TestRanking(t *testing.T) {
	avoid := []Taint{{"slow", "", PreferNoSelect, 0}}
	tests := map[string]struct {
		fleet  []*Cluster
		chosen []int32
		rules  []Prioritizer
		number int64
		want   string
		short  int64
	}{
		"the most":                  {named("a=4 b=8 c=6 d=1"), nil, byCPU, 2, "b c", 0},
		"the least":                 {named("a=4 b=8 c=6 d=1"), nil, []Prioritizer{{Kind: ResourceAllocatableCPU, Weight: -1}}, 2, "a d", 0},
		"ties by name":              {named("a=4 b=4 c=4 d=4"), nil, byCPU, 2, "a b", 0},
		"ties by previous choice":   {named("a=4 b=4 c=4 d=4"), []int32{1, 3}, byCPU, 2, "b d", 0},
		"more data than previous":   {named("a=9 b=4 c=4 d=4"), []int32{1, 3}, byCPU, 2, "a b", 0},
		"nothing to rank by":        {named("a b c"), []int32{2}, nil, 2, "a c", 0},
		"all":                       {named("a=1 b=2"), nil, byCPU, All, "a b", 0},
		"more than there are":       {named("a=1 b=2"), nil, byCPU, 5, "a b", 3},
		"none wanted":               {named("a=1 b=2"), nil, byCPU, 0, "", 0},
		"a number that is mistaken": {named("a=1 b=2"), nil, byCPU, -3, "", 0},
		"none there":                {nil, nil, byCPU, 2, "", 2},
		// The tainted one has the most, and comes last all the same.
		"to be avoided":           {append(named("a=1 b=2"), &Cluster{Name: "c", Taints: avoid, Allocatable: Amounts{9000, 0}}), nil, byCPU, 2, "a b", 0},
		"to be avoided, but need": {append(named("a=1 b=2"), &Cluster{Name: "c", Taints: avoid, Allocatable: Amounts{9000, 0}}), nil, byCPU, 3, "a b c", 0},
	}
	for name, tc := range tests {
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

// Allocatable gives b 100, a 20 (200 x (6/10 - 0.5)) and c -100; c was chosen.
// Steady x 1 makes c -100 + 100 = 0: b. Steady x 2 makes it -100 + 200 = 100,
// as much as b: it stays. Steady x 3 makes it 200.
func TestSteadyPins(t *testing.T) {
	for weight, want := range map[int32]string{0: "b", 1: "b", 2: "c", 3: "c"} {
		r := &Request{
			Fleet: named("a=7 b=11 c=1"), Members: Indexes(3), Number: 1, Chosen: []int32{2},
			Prioritizers: []Prioritizer{{Kind: ResourceAllocatableCPU, Weight: 1}, {Kind: Steady, Weight: weight}},
		}
		if got := names(r, Decide(r)); got != want {
			t.Errorf("with a weight of %d, %s is chosen, want %s", weight, got, want)
		}
	}
}

func TestTaints(t *testing.T) {
	const now = 1000
	tests := map[string]struct {
		taint       Taint
		tolerations []Toleration
		before      bool
		outcome     Outcome
		avoided     bool
		changesAt   int64
	}{
		"not tolerated":             {Taint{"k", "v", NoSelect, 900}, nil, false, Tainted, false, Forever},
		"not tolerated any more":    {Taint{"k", "v", NoSelect, 900}, nil, true, Tainted, false, Forever},
		"avoided":                   {Taint{"k", "v", PreferNoSelect, 900}, nil, false, Chosen, true, Forever},
		"not for new ones":          {Taint{"k", "v", NoSelectIfNew, 900}, nil, false, Tainted, false, Forever},
		"had already":               {Taint{"k", "v", NoSelectIfNew, 900}, nil, true, Chosen, false, Forever},
		"an effect nobody knows":    {Taint{"k", "v", AnyEffect, 900}, nil, true, Tainted, false, Forever},
		"key and value":             {Taint{"k", "v", NoSelect, 900}, []Toleration{{Key: "k", Value: "v"}}, false, Chosen, false, Forever},
		"another value":             {Taint{"k", "v", NoSelect, 900}, []Toleration{{Key: "k", Value: "w"}}, false, Tainted, false, Forever},
		"another key":               {Taint{"k", "v", NoSelect, 900}, []Toleration{{Key: "l", Operator: TolerateExists}}, false, Tainted, false, Forever},
		"any value":                 {Taint{"k", "v", NoSelect, 900}, []Toleration{{Key: "k", Operator: TolerateExists}}, false, Chosen, false, Forever},
		"any key":                   {Taint{"k", "v", NoSelect, 900}, []Toleration{{Operator: TolerateExists}}, false, Chosen, false, Forever},
		"any key, with a value":     {Taint{"k", "", NoSelect, 900}, []Toleration{{}}, false, Tainted, false, Forever},
		"an operator nobody knows":  {Taint{"k", "v", NoSelect, 900}, []Toleration{{Key: "k", Operator: 7}}, false, Tainted, false, Forever},
		"the effect":                {Taint{"k", "v", PreferNoSelect, 900}, []Toleration{{Operator: TolerateExists, Effect: PreferNoSelect}}, false, Chosen, false, Forever},
		"another effect":            {Taint{"k", "v", PreferNoSelect, 900}, []Toleration{{Operator: TolerateExists, Effect: NoSelect}}, false, Chosen, true, Forever},
		"for a while":               {Taint{"k", "v", NoSelect, 900}, []Toleration{{Operator: TolerateExists, Seconds: new(int64(300))}}, false, Chosen, false, 1200},
		"to the last second":        {Taint{"k", "v", NoSelect, 900}, []Toleration{{Operator: TolerateExists, Seconds: new(int64(101))}}, false, Chosen, false, 1001},
		"over this second":          {Taint{"k", "v", NoSelect, 900}, []Toleration{{Operator: TolerateExists, Seconds: new(int64(100))}}, true, Tainted, false, Forever},
		"never":                     {Taint{"k", "v", NoSelect, 1000}, []Toleration{{Operator: TolerateExists, Seconds: new(int64(0))}}, true, Tainted, false, Forever},
		"negative":                  {Taint{"k", "v", NoSelect, 1000}, []Toleration{{Operator: TolerateExists, Seconds: new(int64(math.MinInt64))}}, true, Tainted, false, Forever},
		"avoided after a while":     {Taint{"k", "v", PreferNoSelect, 900}, []Toleration{{Operator: TolerateExists, Seconds: new(int64(300))}}, false, Chosen, false, 1200},
		"avoided now":               {Taint{"k", "v", PreferNoSelect, 600}, []Toleration{{Operator: TolerateExists, Seconds: new(int64(300))}}, false, Chosen, true, Forever},
		"seconds for new ones":      {Taint{"k", "v", NoSelectIfNew, 600}, []Toleration{{Operator: TolerateExists, Seconds: new(int64(300))}}, false, Chosen, false, Forever},
		"the longer one":            {Taint{"k", "v", NoSelect, 900}, []Toleration{{Operator: TolerateExists, Seconds: new(int64(300))}, {Key: "k", Value: "v", Seconds: new(int64(400))}}, false, Chosen, false, 1300},
		"one without an end":        {Taint{"k", "v", NoSelect, 900}, []Toleration{{Operator: TolerateExists, Seconds: new(int64(300))}, {Key: "k", Value: "v"}}, false, Chosen, false, Forever},
		"added who knows when":      {Taint{"k", "v", NoSelect, 0}, []Toleration{{Operator: TolerateExists, Seconds: new(int64(300))}}, false, Tainted, false, Forever},
		"10^18 seconds":             {Taint{"k", "v", NoSelect, 900}, []Toleration{{Operator: TolerateExists, Seconds: new(int64(1e18))}}, false, Chosen, false, 1e18 + 900},
		"past the end of time":      {Taint{"k", "v", NoSelect, math.MaxInt64}, []Toleration{{Operator: TolerateExists, Seconds: new(int64(1e18))}}, false, Chosen, false, Forever},
		"before the start of time":  {Taint{"k", "v", NoSelect, math.MinInt64}, []Toleration{{Operator: TolerateExists, Seconds: new(int64(-1))}}, false, Tainted, false, Forever},
		"added in the near future":  {Taint{"k", "v", NoSelect, 1100}, []Toleration{{Operator: TolerateExists, Seconds: new(int64(300))}}, false, Chosen, false, 1400},
		"added after it would end":  {Taint{"k", "v", NoSelect, 1100}, []Toleration{{Operator: TolerateExists, Seconds: new(int64(-50))}}, false, Chosen, false, 1050},
		"added after it did so too": {Taint{"k", "v", NoSelect, 1100}, []Toleration{{Operator: TolerateExists, Seconds: new(int64(-150))}}, false, Tainted, false, Forever},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			r := &Request{
				Fleet: []*Cluster{{Name: "a", Taints: []Taint{tc.taint}}}, Members: []int32{0}, Number: All,
				Tolerations: tc.tolerations, Now: now,
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

// What a cluster that is ruled out anyway has to expire changes nothing.
func TestChangesOfFeasibleOnly(t *testing.T) {
	for _, order := range [][2]int{{0, 1}, {1, 0}} {
		taints := []Taint{{"limited", "", NoSelect, 900}, {"hard", "", NoSelect, 900}}
		r := &Request{
			Fleet:       []*Cluster{{Name: "a", Taints: []Taint{taints[order[0]], taints[order[1]]}}},
			Members:     []int32{0},
			Tolerations: []Toleration{{Key: "limited", Operator: TolerateExists, Seconds: new(int64(300))}},
			Prioritizers: []Prioritizer{
				{Kind: AddOn, Weight: 1, Scores: []AddOnScore{{0, 1, 1100}}},
			},
			Number: All, Now: 1000,
		}
		d := Decide(r)
		if d.ChangesAt != Forever || int(d.Clusters[0].Detail) != order[1] {
			t.Errorf("changes at %d because of taint %d, want never because of %d", d.ChangesAt, d.Clusters[0].Detail, order[1])
		}
	}
}

// A score valid up to and in second 1100 is missing from 1101.
func TestChangesWithScore(t *testing.T) {
	r := &Request{
		Fleet: named("a b"), Members: Indexes(2), Number: All, Now: 1100,
		Prioritizers: []Prioritizer{{Kind: AddOn, Weight: 1, Scores: []AddOnScore{{0, 50, 1100}, {1, 50, 1300}}}},
	}
	d := Decide(r)
	if d.ChangesAt != 1101 || d.Clusters[0].Total != 50 {
		t.Errorf("changes at %d, total %d, want 1101 and 50", d.ChangesAt, d.Clusters[0].Total)
	}
	r.Now = d.ChangesAt
	if d = Decide(r); d.ChangesAt != 1301 || d.Clusters[0].Total != -100 {
		t.Errorf("then at %d, total %d, want 1301 and -100", d.ChangesAt, d.Clusters[0].Total)
	}
}

func TestFunnel(t *testing.T) {
	fleet := named("a b c d e")
	for i := range fleet {
		fleet[i].Labels = map[string]string{"tier": []string{"gold", "tin"}[min(i, 1)]}
	}
	fleet[2].Claims = map[string]string{"platform": "AWS"}
	fleet[3].Taints = []Taint{{"k", "", NoSelect, 0}}
	r := &Request{
		Fleet: fleet, Members: []int32{0, 1, 2, 3}, Number: All,
		Predicates: []Predicate{
			{Selector: Selector{Labels: []Requirement{{"tier", In, []string{"gold"}}}}},
			{Selector: Selector{Claims: []Requirement{{"platform", Exists, nil}}}},
			{Selector: Selector{Claims: []Requirement{{"platform", DoesNotExist, nil}}}, Match: func(i int) bool { return i == 3 }},
		},
	}
	d := Decide(r)
	var got []Outcome
	for _, result := range d.Clusters {
		got = append(got, result.Outcome)
	}
	if want := []Outcome{Chosen, Unmatched, Chosen, Tainted, NotMember}; !slices.Equal(got, want) {
		t.Errorf("outcomes %v, want %v", got, want)
	}
	if d.Members != 4 || d.Matched != 3 || d.Feasible != 2 {
		t.Errorf("%d members, %d matched, %d feasible, want 4, 3, 2", d.Members, d.Matched, d.Feasible)
	}
}

// A set without members, or a set that is gone, chooses nothing.
func TestNoMembers(t *testing.T) {
	r := &Request{Fleet: named("a b"), Number: All}
	if d := Decide(r); len(d.Chosen) != 0 || d.Clusters[0].Outcome != NotMember {
		t.Errorf("chosen %v without members", d.Chosen)
	}
}

func TestRequirements(t *testing.T) {
	set := map[string]string{"k": "v", "empty": ""}
	tests := map[string]struct {
		requirement Requirement
		want        bool
	}{
		"in":                  {Requirement{"k", In, []string{"u", "v"}}, true},
		"not in these":        {Requirement{"k", In, []string{"u"}}, false},
		"absent, in":          {Requirement{"x", In, []string{""}}, false},
		"empty, in":           {Requirement{"empty", In, []string{""}}, true},
		"in nothing":          {Requirement{"k", In, nil}, false},
		"out":                 {Requirement{"k", NotIn, []string{"u"}}, true},
		"not out":             {Requirement{"k", NotIn, []string{"u", "v"}}, false},
		"absent, out":         {Requirement{"x", NotIn, []string{"v"}}, true},
		"exists":              {Requirement{"empty", Exists, nil}, true},
		"absent, exists":      {Requirement{"x", Exists, nil}, false},
		"does not exist":      {Requirement{"x", DoesNotExist, nil}, true},
		"there, not to exist": {Requirement{"k", DoesNotExist, nil}, false},
		"nobody knows":        {Requirement{"k", 9, []string{"v"}}, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := tc.requirement.matches(set); got != tc.want {
				t.Errorf("matches: %v, want %v", got, tc.want)
			}
		})
	}
}

func TestNamesOfConstants(t *testing.T) {
	for o := Chosen; o <= Tainted; o++ {
		if strings.Contains(o.String(), "(") || o.Feasible() != slices.Contains([]string{"Chosen", "Outranked", "Skewed", "NoTopology"}, o.String()) {
			t.Errorf("outcome %d is %s, feasible: %v", o, o, o.Feasible())
		}
	}
	if got := Outcome(99).String() + Kind(99).String(); got != "Outcome(99)Kind(99)" {
		t.Errorf("unknown ones are %s", got)
	}
}
