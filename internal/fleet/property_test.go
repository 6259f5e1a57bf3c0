package fleet

import (
	"maps"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/plimsoll-k8s/plimsoll/api/placement/v1beta1"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

func TestProperties(t *testing.T) {
	properties := map[string]func(*rapid.T, *Request, *Decision){
		"deterministic":                        isDeterministic,
		"feasible and at most Number":          choosesFeasible,
		"highest ranked are chosen":            choosesHighestRanked,
		"required spread constraints are met":  meetsRequiredSpread,
		"groups partition the chosen clusters": groupsPartitionChosen,
		"irrelevant input is ignored":          ignoresIrrelevantInput,
		"constant until ChangesAt":             isConstantUntilChangesAt,
		"high weight of Steady keeps clusters": highSteadyKeepsClusters,
	}
	for name, check := range properties {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				r := requests().Draw(t, "request")
				check(t, r, Decide(r))
			})
		})
	}
}

func isDeterministic(t *rapid.T, r *Request, d *Decision) {
	if second := Decide(r); !reflect.DeepEqual(d, second) {
		t.Fatalf("second decision %+v, want %+v", second, d)
	}
}

func choosesFeasible(t *rapid.T, r *Request, d *Decision) {
	if int64(len(d.Chosen)) > max(r.Number, 0) || len(d.Chosen) > d.Feasible || d.Feasible > d.Matched || d.Matched > d.Members {
		t.Fatalf("%d members, %d matched, %d feasible, %d chosen of %d", d.Members, d.Matched, d.Feasible, len(d.Chosen), r.Number)
	}
	if r.Number == All && d.Shortfall != 0 || r.Number != All && d.Shortfall != max(r.Number, 0)-int64(len(d.Chosen)) {
		t.Fatalf("%d short", d.Shortfall)
	}
	for _, i := range d.Chosen {
		if !slices.Contains(r.Members, i) || d.Clusters[i].Outcome != Chosen {
			t.Fatalf("chosen cluster %d is no member or has outcome %s", i, d.Clusters[i].Outcome)
		}
	}
}

func choosesHighestRanked(t *rapid.T, r *Request, d *Decision) {
	if len(r.Spread) > 0 {
		return
	}
	for i, result := range d.Clusters {
		for _, chosen := range d.Chosen {
			if result.Outcome == Outranked && d.Compare(int32(i), chosen) < 0 {
				t.Fatalf("cluster %d is not chosen, but ranks before chosen cluster %d", i, chosen)
			}
		}
	}
}

func meetsRequiredSpread(t *rapid.T, r *Request, d *Decision) {
	for _, s := range r.Spread {
		counts := map[string]int{}
		for i, result := range d.Clusters {
			value, found := topologyOf(&s, r.Fleet[i])
			switch {
			case !found && isRequired(&s) && result.Outcome == Chosen:
				t.Fatalf("cluster %d is chosen, but has no value of %s", i, s.TopologyKey)
			case !found || !isRequired(&s) || !result.Outcome.Feasible() || result.Outcome == NoTopology:
			case result.Outcome == Chosen:
				counts[value]++
			default:
				counts[value] += 0
			}
		}
		all := slices.Collect(maps.Values(counts))
		if len(all) > 0 && slices.Max(all)-slices.Min(all) > int(max(s.MaxSkew, 1)) {
			t.Fatalf("skew over %s in %v is more than %d", s.TopologyKey, counts, s.MaxSkew)
		}
	}
}

func groupsPartitionChosen(t *rapid.T, r *Request, d *Decision) {
	var all, chosen []string
	for _, i := range d.Chosen {
		chosen = append(chosen, r.Fleet[i].Name)
	}
	for _, g := range d.Groups {
		if len(g.Clusters) > groupLimit(r.GroupSize, len(d.Chosen)) || len(g.Clusters) == 0 && len(d.Groups) > 1 {
			t.Fatalf("group of %d clusters", len(g.Clusters))
		}
		for _, c := range g.Clusters {
			all = append(all, c.ClusterName)
		}
	}
	if slices.Sort(all); !slices.Equal(all, chosen) {
		t.Fatalf("groups contain %v, want %v", all, chosen)
	}
}

// ignoresIrrelevantInput changes an unused label, clusters that are not members, and the
// order of tolerations, predicates and prioritizers.
func ignoresIrrelevantInput(t *rapid.T, r *Request, d *Decision) {
	other := *r
	other.Fleet = nil
	for i, c := range r.Fleet {
		changed := *c
		changed.Labels = maps.Clone(c.Labels)
		changed.Labels["irrelevant"] = values.Draw(t, "label")
		if !slices.Contains(r.Members, int32(i)) {
			changed.Allocatable[resources.CPU] = amounts().Draw(t, "allocatable of others")
		}
		other.Fleet = append(other.Fleet, &changed)
	}
	other.Tolerations = rapid.Permutation(r.Tolerations).Draw(t, "tolerations")
	other.Predicates = rapid.Permutation(r.Predicates).Draw(t, "predicates")
	other.Prioritizers = rapid.Permutation(r.Prioritizers).Draw(t, "prioritizers")
	got := Decide(&other)
	if !reflect.DeepEqual(d.Clusters, got.Clusters) || !reflect.DeepEqual(d.Groups, got.Groups) || d.ChangesAt != got.ChangesAt {
		t.Fatalf("%+v, want %+v", got, d)
	}
}

// isConstantUntilChangesAt checks that the decision is the same at each time before
// ChangesAt, except for which of several taints excludes a cluster.
func isConstantUntilChangesAt(t *rapid.T, r *Request, d *Decision) {
	if r.Now == Forever {
		return // there is no later time
	}
	if d.ChangesAt <= r.Now {
		t.Fatalf("changes at %d, which has passed at %d", d.ChangesAt, r.Now)
	}
	later, d := *r, withoutTaints(d)
	for _, now := range []int64{d.ChangesAt - 1, rapid.Int64Range(r.Now, d.ChangesAt-1).Draw(t, "later")} {
		later.Now = now
		if got := withoutTaints(Decide(&later)); !reflect.DeepEqual(d, got) {
			t.Fatalf("at %d %+v, want %+v", now, got, d)
		}
	}
}

func withoutTaints(d *Decision) *Decision {
	for i := range d.Clusters {
		if d.Clusters[i].Outcome == Tainted {
			d.Clusters[i].Detail = 0
		}
	}
	return d
}

// highSteadyKeepsClusters gives Steady a weight above the sum of all other weights, so
// that clusters that were chosen before rank first.
func highSteadyKeepsClusters(t *rapid.T, r *Request, _ *Decision) {
	pinned := *r
	pinned.Spread = nil
	pinned.Prioritizers = slices.DeleteFunc(slices.Clone(r.Prioritizers), func(p Prioritizer) bool {
		return p.Kind == v1beta1.Steady || p.Weight < -10 || p.Weight > 10
	})
	// Each other prioritizer contributes a difference of at most 2 x 100 x 10, which is 20
	// times the score 100 of Steady.
	pinned.Prioritizers = append(pinned.Prioritizers, Prioritizer{Kind: v1beta1.Steady, Weight: int32(20 * len(pinned.Prioritizers))})
	d := Decide(&pinned)
	for i, result := range d.Clusters {
		for _, j := range d.Chosen {
			if result.Outcome == Outranked && result.WasChosen && !result.Avoided && !d.Clusters[j].WasChosen {
				t.Fatalf("cluster %d was chosen before, but is replaced by %d", i, j)
			}
		}
	}
}
