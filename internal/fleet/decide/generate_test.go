package decide

import (
	"fmt"
	"math"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"pgregory.net/rapid"

	"github.com/plimsoll-k8s/plimsoll/api/placement/v1beta1"
)

// Few keys and values, so that selectors match and scores tie.
var (
	keys   = rapid.SampledFrom([]string{"zone", "region", "tier"})
	values = rapid.SampledFrom([]string{"", "a", "b", "c"})
	addOns = rapid.SampledFrom([]string{"usage", "cost"})
)

// oneIn generates true with probability 1/n.
func oneIn(n int) *rapid.Generator[bool] {
	return rapid.Map(rapid.IntRange(1, n), func(i int) bool { return i == n })
}

// amounts generates mostly ties and the limits of int64, which are prone to overflow.
func amounts() *rapid.Generator[int64] {
	return rapid.OneOf(rapid.Int64Range(-1, 4), rapid.Int64Range(0, 1<<40),
		rapid.SampledFrom([]int64{math.MinInt64, Missing, math.MaxInt64 - 1, math.MaxInt64}))
}

// instants generates times near 0 and at the limits of int64.
func instants() *rapid.Generator[int64] {
	return rapid.OneOf(rapid.Int64Range(-20, 20),
		rapid.SampledFrom([]int64{math.MinInt64, math.MinInt64 + 1, 1e18, math.MaxInt64 - 1, math.MaxInt64}))
}

// selectorOf returns a selector of labels or claims in the syntax of kubectl.
func selectorOf(text string) labels.Selector {
	selector, err := labels.Parse(text)
	if err != nil {
		panic(err)
	}
	return selector
}

// labelSelectors generates selectors of labels or claims, and nil.
func labelSelectors() *rapid.Generator[labels.Selector] {
	return rapid.Custom(func(t *rapid.T) labels.Selector {
		var requirements []string
		for range rapid.IntRange(0, 2).Draw(t, "requirements") {
			requirements = append(requirements, fmt.Sprintf(rapid.SampledFrom([]string{
				"%[1]s in (%[2]s,%[3]s)", "%[1]s notin (%[2]s)", "%[1]s", "!%[1]s",
			}).Draw(t, "operator"), keys.Draw(t, "key"), values.Draw(t, "value"), values.Draw(t, "another")))
		}
		if len(requirements) == 0 {
			return nil
		}
		return selectorOf(strings.Join(requirements, ","))
	})
}

func selectors() *rapid.Generator[Selector] {
	return rapid.Custom(func(t *rapid.T) Selector {
		return Selector{labelSelectors().Draw(t, "labels"), labelSelectors().Draw(t, "claims")}
	})
}

// effects generates the effects of taints, and further ones.
func effects(further ...clusterv1.TaintEffect) *rapid.Generator[clusterv1.TaintEffect] {
	return rapid.SampledFrom(append(further,
		clusterv1.TaintEffectNoSelect, clusterv1.TaintEffectPreferNoSelect, clusterv1.TaintEffectNoSelectIfNew))
}

func clusters() *rapid.Generator[*Cluster] {
	taints := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) clusterv1.Taint {
		return taintOf(keys.Draw(t, "key"), values.Draw(t, "value"), effects().Draw(t, "effect"), instants().Draw(t, "added"))
	}), 0, 2)
	return rapid.Custom(func(t *rapid.T) *Cluster {
		c := &Cluster{
			Labels: rapid.MapOfN(keys, values, 1, 3).Draw(t, "labels"),
			Claims: rapid.MapOfN(keys, values, 1, 3).Draw(t, "claims"),
			Scores: map[string]*AddOnScores{},
		}
		for _, resource := range rapid.SliceOfN(addOns, 0, 2).Draw(t, "scored") {
			c.Scores[resource] = &AddOnScores{
				map[string]int32{"cpu": rapid.OneOf(rapid.Int32Range(-102, 102), rapid.Int32()).Draw(t, "score")},
				instants().Draw(t, "until"),
			}
		}
		if oneIn(4).Draw(t, "tainted") {
			c.Taints = taints.Draw(t, "taints")
		}
		for k := range 2 {
			c.Allocatable[k], c.Capacity[k] = amounts().Draw(t, "allocatable"), amounts().Draw(t, "capacity")
		}
		return c
	})
}

// subsets generates ascending subsets of the indexes below n.
func subsets(n int) *rapid.Generator[[]int32] {
	return rapid.Map(rapid.SliceOfN(rapid.IntRange(0, 3), n, n), func(left []int) []int32 {
		return slices.DeleteFunc(Indexes(n), func(i int32) bool { return left[i] == 0 })
	})
}

func prioritizers() *rapid.Generator[Prioritizer] {
	return rapid.Custom(func(t *rapid.T) Prioritizer {
		p := Prioritizer{
			Kind: rapid.SampledFrom([]v1beta1.Prioritizer{
				v1beta1.Balance, v1beta1.Steady, v1beta1.ResourceRatioCPU, v1beta1.ResourceRatioMemory,
				v1beta1.ResourceAllocatableCPU, v1beta1.ResourceAllocatableMemory, KindAddOn,
			}).Draw(t, "kind"),
			Weight: rapid.OneOf(rapid.Int32Range(-10, 10), rapid.Int32()).Draw(t, "weight"),
		}
		if p.Kind == KindAddOn {
			p.Coordinate = v1beta1.AddOnScore{
				ResourceName: addOns.Draw(t, "resource"), ScoreName: rapid.SampledFrom([]string{"cpu", "missing"}).Draw(t, "name"),
			}
		}
		return p
	})
}

func tolerations() *rapid.Generator[clusterv1beta1.Toleration] {
	return rapid.Custom(func(t *rapid.T) clusterv1beta1.Toleration {
		toleration := clusterv1beta1.Toleration{
			Key: rapid.OneOf(keys, rapid.Just("")).Draw(t, "key"),
			Operator: rapid.SampledFrom(
				[]clusterv1beta1.TolerationOperator{"", clusterv1beta1.TolerationOpEqual, clusterv1beta1.TolerationOpExists},
			).Draw(t, "operator"),
			Value:  values.Draw(t, "value"),
			Effect: effects("").Draw(t, "effect"),
		}
		if rapid.Bool().Draw(t, "limited") {
			seconds := instants().Draw(t, "seconds")
			toleration.TolerationSeconds = &seconds
		}
		return toleration
	})
}

func requests() *rapid.Generator[*Request] {
	return rapid.Custom(func(t *rapid.T) *Request {
		n := rapid.IntRange(0, 12).Draw(t, "clusters")
		r := &Request{Fleet: rapid.SliceOfN(clusters(), n, n).Draw(t, "fleet")}
		for i := range r.Fleet {
			r.Fleet[i].Name = fmt.Sprintf("cluster-%02d", i)
		}
		r.Members, r.Chosen = subsets(n).Draw(t, "members"), subsets(n).Draw(t, "chosen")
		r.Counts = rapid.SliceOfN(rapid.OneOf(rapid.Int32Range(-1, 5), rapid.Int32()), 0, n).Draw(t, "counts")
		if oneIn(3).Draw(t, "selective") {
			matches := map[string]bool{}
			for _, i := range subsets(n).Draw(t, "matches") {
				matches[r.Fleet[i].Name] = true
			}
			r.Match = func(_ int, c *Cluster) bool { return matches[c.Name] }
			r.Predicates = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Predicate {
				return Predicate{selectors().Draw(t, "selector"), rapid.Bool().Draw(t, "expression")}
			}), 1, 3).Draw(t, "predicates")
		}
		r.Tolerations = rapid.SliceOfN(tolerations(), 0, 3).Draw(t, "tolerations")
		r.Prioritizers = rapid.SliceOfN(prioritizers(), 0, 4).Draw(t, "prioritizers")
		r.Number = rapid.OneOf(rapid.Int64Range(-1, 12), rapid.Just(All)).Draw(t, "number")
		r.Spread = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) clusterv1beta1.SpreadConstraintsTerm {
			return spreadConstraint(keys.Draw(t, "key"), rapid.Bool().Draw(t, "claim"),
				rapid.OneOf(rapid.Int32Range(-1, 3), rapid.Just(int32(math.MaxInt32))).Draw(t, "skew"), rapid.Bool().Draw(t, "required"))
		}), 0, 3).Draw(t, "spread")
		r.Groups = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) NamedGroup {
			return NamedGroup{rapid.SampledFrom([]string{"canary", "rest"}).Draw(t, "name"), selectors().Draw(t, "selector")}
		}), 0, 2).Draw(t, "groups")
		r.GroupSize = intstr.FromInt32(rapid.Int32Range(0, 5).Draw(t, "group size"))
		if rapid.Bool().Draw(t, "in percent") {
			r.GroupSize = intstr.FromString(fmt.Sprint(rapid.IntRange(1, 100).Draw(t, "percent"), "%"))
		}
		r.SortByScore = rapid.Bool().Draw(t, "by score")
		r.Now = instants().Draw(t, "now")
		return r
	})
}

// taintOf returns a taint that was added at a Unix time in seconds.
func taintOf(key, value string, effect clusterv1.TaintEffect, added int64) clusterv1.Taint {
	return clusterv1.Taint{Key: key, Value: value, Effect: effect, TimeAdded: metav1.Unix(added, 0)}
}

// usageScore returns a score of add-on usage until a time.
func usageScore(score int32, until int64) map[string]*AddOnScores {
	return map[string]*AddOnScores{"usage": {map[string]int32{"cpu": score}, until}}
}

// spreadRequests generates requests with many feasible clusters of different scores, in
// which only spread constraints prevent a choice.
func spreadRequests() *rapid.Generator[*Request] {
	return rapid.Custom(func(t *rapid.T) *Request {
		n := rapid.IntRange(4, 16).Draw(t, "clusters")
		r := &Request{Members: Indexes(n), Number: rapid.Int64Range(1, int64(n)).Draw(t, "number")}
		zones := rapid.SampledFrom([]string{"a", "b", "c"})
		for i := range n {
			c := &Cluster{
				Name:   fmt.Sprintf("cluster-%02d", i),
				Labels: map[string]string{"zone": zones.Draw(t, "zone"), "region": zones.Draw(t, "region")},
			}
			if oneIn(10).Draw(t, "keyless") {
				delete(c.Labels, "region")
			}
			if oneIn(10).Draw(t, "avoided") {
				c.Taints = []clusterv1.Taint{{Effect: clusterv1.TaintEffectPreferNoSelect}}
			}
			r.Fleet = append(r.Fleet, c)
			c.Scores = usageScore(rapid.Int32Range(-100, 100).Draw(t, "score"), Forever)
		}
		r.Prioritizers = []Prioritizer{addOn("usage", "cpu", 1)}
		for _, key := range rapid.Permutation([]string{"zone", "region"}).Draw(t, "keys") {
			skew, required := rapid.Int32Range(1, 2).Draw(t, "skew"), rapid.Bool().Draw(t, "required")
			r.Spread = append(r.Spread, spreadConstraint(key, false, skew, required))
		}
		r.Spread = r.Spread[:rapid.IntRange(1, 2).Draw(t, "constraints")]
		return r
	})
}
