package placement

import (
	"maps"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestProperties(t *testing.T) {
	properties := map[string]func(*rapid.T, *Request, *Decision){
		"the same again": repeats,
		"only feasible clusters, and not too many": feasibleAndNotTooMany,
		"no better cluster is left out":            noBetterLeftOut,
		"hard constraints hold":                    hardConstraintsHold,
		"groups hold all decisions once":           groupsHoldAll,
		"what does not matter does not matter":     irrelevantInput,
		"nothing changes before it is said to":     nothingChangesBefore,
		"enough Steady pins":                       steadyPins,
	}
	for name, holds := range properties {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				r := requests().Draw(t, "request")
				holds(t, r, Decide(r))
			})
		})
	}
}

func repeats(t *rapid.T, r *Request, d *Decision) {
	if again := Decide(r); !reflect.DeepEqual(d, again) {
		t.Fatalf("%+v, and then %+v", d, again)
	}
}

func feasibleAndNotTooMany(t *rapid.T, r *Request, d *Decision) {
	if int64(len(d.Chosen)) > max(r.Number, 0) || len(d.Chosen) > d.Feasible || d.Feasible > d.Matched || d.Matched > d.Members {
		t.Fatalf("%d members, %d matched, %d feasible, %d chosen of %d", d.Members, d.Matched, d.Feasible, len(d.Chosen), r.Number)
	}
	if r.Number == All && d.Shortfall != 0 || r.Number != All && d.Shortfall != max(r.Number, 0)-int64(len(d.Chosen)) {
		t.Fatalf("%d short", d.Shortfall)
	}
	for _, i := range d.Chosen {
		if !slices.Contains(r.Members, i) || d.Clusters[i].Outcome != Chosen {
			t.Fatalf("cluster %d is chosen and %s", i, d.Clusters[i].Outcome)
		}
	}
}

func noBetterLeftOut(t *rapid.T, r *Request, d *Decision) {
	if len(r.Spread) > 0 {
		return
	}
	for i, result := range d.Clusters {
		for _, chosen := range d.Chosen {
			if result.Outcome == Outranked && d.Compare(int32(i), chosen) < 0 {
				t.Fatalf("cluster %d is left out, and is better than %d", i, chosen)
			}
		}
	}
}

func hardConstraintsHold(t *rapid.T, r *Request, d *Decision) {
	for _, s := range r.Spread {
		counts := map[string]int{}
		for i, result := range d.Clusters {
			value, found := s.topology(r.Fleet[i])
			switch {
			case !found && s.DoNotSchedule && result.Outcome == Chosen:
				t.Fatalf("cluster %d is chosen without a value of %s", i, s.Key)
			case !found || !s.DoNotSchedule || !result.Outcome.Feasible() || result.Outcome == NoTopology:
			case result.Outcome == Chosen:
				counts[value]++
			default:
				counts[value] += 0
			}
		}
		all := slices.Collect(maps.Values(counts))
		if len(all) > 0 && slices.Max(all)-slices.Min(all) > int(max(s.MaxSkew, 1)) {
			t.Fatalf("skew over %s in %v is more than %d", s.Key, counts, s.MaxSkew)
		}
	}
}

func groupsHoldAll(t *rapid.T, r *Request, d *Decision) {
	var all []int32
	for _, g := range d.Groups {
		if len(g.Clusters) > r.GroupSize.limit(len(d.Chosen)) || len(g.Clusters) == 0 && len(d.Groups) > 1 {
			t.Fatalf("a group of %d", len(g.Clusters))
		}
		all = append(all, g.Clusters...)
	}
	if slices.Sort(all); !slices.Equal(all, d.Chosen) {
		t.Fatalf("groups hold %v of %v", all, d.Chosen)
	}
}

// A label that nobody asks for, clusters that are not members, the order of
// tolerations, prioritizers, requirements and values.
func irrelevantInput(t *rapid.T, r *Request, d *Decision) {
	other := *r
	other.Fleet = nil
	for i, c := range r.Fleet {
		changed := *c
		changed.Labels = maps.Clone(c.Labels)
		changed.Labels["irrelevant"] = values.Draw(t, "label")
		if !slices.Contains(r.Members, int32(i)) {
			changed.Allocatable[CPU] = amounts().Draw(t, "allocatable of others")
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

// At every instant before ChangesAt the answer is the same, but for which of
// several taints rules a cluster out.
func nothingChangesBefore(t *rapid.T, r *Request, d *Decision) {
	if r.Now == Forever {
		return // nothing comes after
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

// With a weight over what all others add up to at most, what was chosen stays
// before what was not.
func steadyPins(t *rapid.T, r *Request, _ *Decision) {
	pinned := *r
	pinned.Spread = nil
	pinned.Prioritizers = slices.DeleteFunc(slices.Clone(r.Prioritizers), func(p Prioritizer) bool {
		return p.Kind == Steady || p.Weight < -10 || p.Weight > 10
	})
	// Others differ by at most 2 x 100 x 10 each: 20 times Steady's 100.
	pinned.Prioritizers = append(pinned.Prioritizers, Prioritizer{Kind: Steady, Weight: int32(20 * len(pinned.Prioritizers))})
	d := Decide(&pinned)
	for i, result := range d.Clusters {
		for _, j := range d.Chosen {
			if result.Outcome == Outranked && result.WasChosen && !result.Avoided && !d.Clusters[j].WasChosen {
				t.Fatalf("cluster %d loses its place to %d", i, j)
			}
		}
	}
}
