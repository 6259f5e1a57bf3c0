package decide

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/intstr"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
)

func TestGroupLimit(t *testing.T) {
	for _, tc := range []struct {
		size      intstr.IntOrString
		decisions int
		want      int
	}{
		{intstr.FromInt32(0), 25, 25},
		{intstr.FromInt32(4), 25, 4},
		{intstr.FromInt32(math.MaxInt32), 0, math.MaxInt32},
		{intstr.FromInt32(-1), 25, 25},
		{intstr.FromString("28%"), 25, 7},                     // exactly; 0.28 x 25 is 7.000000000000001 in floating point
		{intstr.FromString("99%"), math.MaxInt32, 2126008811}, // 2126008810.53
		{intstr.FromString("50%"), 0, 1},
		{intstr.FromString("-5%"), 25, 25},
		{intstr.FromString("many"), 25, 25},
	} {
		if got := groupLimit(tc.size, tc.decisions); got != tc.want {
			t.Errorf("groups of %s have at most %d of %d decisions, want %d", &tc.size, got, tc.decisions, tc.want)
		}
	}
	for percent := range 101 { // exactly, in integers
		for decisions := range 2000 {
			got := groupLimit(intstr.FromString(fmt.Sprint(percent, "%")), decisions)
			if want := max(1, (decisions*percent+99)/100); percent > 0 && got != want {
				t.Fatalf("%d%% of %d is %d, want %d", percent, decisions, got, want)
			}
		}
	}
}

func TestGroups(t *testing.T) {
	tier := func(values ...string) Selector {
		return Selector{Labels: selectorOf("tier in (" + strings.Join(values, ",") + ")")}
	}
	canary, gold := NamedGroup{"canary", tier("canary")}, NamedGroup{"gold", tier("gold", "canary")}
	// a and d have tier canary, b and e tier gold. Ordered by CPU: g c f a b d e.
	fleet := named("a=5 b=4 c=8 d=3 e=2 f=6 g=9")
	for i, tier := range map[int]string{0: "canary", 3: "canary", 1: "gold", 4: "gold"} {
		fleet[i].Labels = map[string]string{"tier": tier}
	}
	for name, tc := range map[string]struct {
		groups  []NamedGroup
		size    intstr.IntOrString
		byScore bool
		number  int64
		want    string
	}{
		"one group":            {nil, intstr.IntOrString{}, false, All, ":abcdefg"},
		"by number":            {nil, intstr.FromInt32(3), false, All, ":abc :def :g"},
		"by percent":           {nil, intstr.FromString("50%"), false, All, ":abcd :efg"}, // 3.5 up to 4
		"by score":             {nil, intstr.FromInt32(3), true, All, ":gcf :abd :e"},
		"named":                {[]NamedGroup{canary, gold}, intstr.IntOrString{}, false, All, "canary:ad gold:be :cfg"},
		"named and split":      {[]NamedGroup{gold}, intstr.FromInt32(3), true, All, "gold:abd gold:e :gcf"},
		"chosen clusters only": {[]NamedGroup{canary}, intstr.FromString("50%"), false, 4, "canary:a :cf :g"}, // a c f g
		"none chosen":          {[]NamedGroup{canary}, intstr.FromString("50%"), false, 0, ":"},
	} {
		t.Run(name, func(t *testing.T) {
			r := &Request{
				Fleet: fleet, Members: Indexes(len(fleet)), Prioritizers: byCPU, Number: tc.number,
				Groups: tc.groups, GroupSize: tc.size, SortByScore: tc.byScore,
			}
			d := Decide(r)
			var got []string
			for _, g := range d.Groups {
				text := g.Name + ":"
				for _, c := range g.Clusters {
					text += c.ClusterName
				}
				got = append(got, text)
			}
			if strings.Join(got, " ") != tc.want {
				t.Errorf("groups %s, want %s", strings.Join(got, " "), tc.want)
			}
			if !slices.IsSorted(d.Chosen) {
				t.Errorf("chosen %v are not ascending", d.Chosen)
			}
		})
	}
}

type terms = []clusterv1beta1.SpreadConstraintsTerm

// required returns a spread constraint of a label that must be met.
func required(key string, skew int32) clusterv1beta1.SpreadConstraintsTerm {
	return spreadConstraint(key, false, skew, true)
}

// preferred returns a spread constraint of a label that is a preference.
func preferred(key string, skew int32) clusterv1beta1.SpreadConstraintsTerm {
	return spreadConstraint(key, false, skew, false)
}

func spreadConstraint(key string, claim bool, skew int32, required bool) clusterv1beta1.SpreadConstraintsTerm {
	c := clusterv1beta1.SpreadConstraintsTerm{TopologyKey: key, TopologyKeyType: clusterv1beta1.TopologyKeyTypeLabel, MaxSkew: skew}
	if claim {
		c.TopologyKeyType = clusterv1beta1.TopologyKeyTypeClaim
	}
	if c.WhenUnsatisfiable = clusterv1beta1.ScheduleAnyway; required {
		c.WhenUnsatisfiable = clusterv1beta1.DoNotSchedule
	}
	return c
}

func TestSpread(t *testing.T) {
	for name, tc := range map[string]struct {
		fleet  string // name=cores, with the zone as the first letter
		spread []clusterv1beta1.SpreadConstraintsTerm
		number int64
		want   string
		others string // outcomes of clusters that are not chosen
	}{
		// Without the constraint: a1 a2 a3.
		"required": {"a1=9 a2=8 a3=7 b1=3 c1=2", terms{required("zone", 1)}, 3, "a1 b1 c1", "a2 Outranked a3 Outranked"},
		"required, second round": {
			"a1=9 a2=8 a3=7 b1=3 b2=3 c1=2", terms{required("zone", 1)}, 4, "a1 a2 b1 c1", "a3 Skewed 0 b2 Outranked",
		},
		// c has one cluster, so no zone can have more than two.
		"required, all": {
			"a1=9 a2=8 a3=7 b1=3 b2=3 b3=3 c1=2", terms{required("zone", 1)}, All, "a1 a2 b1 b2 c1", "a3 Skewed 0 b3 Skewed 0",
		},
		"preferred": {"a1=9 a2=8 a3=7 b1=3 c1=2", terms{preferred("zone", 1)}, 4, "a1 a2 b1 c1", "a3 Outranked"},
		// After a1 and b1 the zones are even, and a2 has a higher score than b2.
		"preferred, second round": {"a1=9 a2=8 b1=3 b2=2", terms{preferred("zone", 1)}, 3, "a1 a2 b1", "b2 Outranked"},
		"no key":                  {"a1=9 ?1=99 b1=1", terms{required("zone", 1)}, 3, "a1 b1", "?1 NoTopology 0"},
		// Clusters without the key are ranked after clusters that do not violate the preference.
		"no key, preferred": {"a1=9 ?1=99 b1=1", terms{preferred("zone", 1)}, 2, "a1 b1", "?1 Outranked"},
		// The first constraint has precedence: b1 is chosen before a2.
		"two preferred, first has precedence": {
			"a1=9 a2=8 b1=3", terms{preferred("zone", 1), preferred("name", 1)}, 2, "a1 b1", "a2 Outranked",
		},
		"skew of 0 is 1": {"a1=9 a2=8 b1=3", terms{required("zone", 0)}, 2, "a1 b1", "a2 Outranked"},
	} {
		t.Run(name, func(t *testing.T) {
			r := &Request{Fleet: named(tc.fleet), Prioritizers: byCPU, Number: tc.number, Spread: tc.spread}
			slices.SortFunc(r.Fleet, func(a, b *Cluster) int { return strings.Compare(a.Name, b.Name) })
			r.Members = Indexes(len(r.Fleet))
			for _, c := range r.Fleet {
				c.Labels = map[string]string{"name": c.Name}
				if c.Name[0] != '?' {
					c.Labels["zone"] = c.Name[:1]
				}
			}
			d := Decide(r)
			var others []string
			for i, result := range d.Clusters {
				if result.Outcome == Chosen {
					continue
				}
				others = append(others, r.Fleet[i].Name, result.Outcome.String())
				if result.Outcome != Outranked {
					others = append(others, fmt.Sprint(result.Detail))
				}
			}
			if got := names(r, d); got != tc.want || strings.Join(others, " ") != tc.others {
				t.Errorf("chosen %s, others %s, want %s and %s", got, strings.Join(others, " "), tc.want, tc.others)
			}
		})
	}
}
