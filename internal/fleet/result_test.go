package fleet

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
)

const (
	nowhere = `predicates: [{requiredClusterSelector: {labelSelector: {matchLabels: {zone: typo}}}}]`
	inZone1 = `predicates: [{requiredClusterSelector: {labelSelector: {matchLabels: {zone: "1"}}}}]`
	// spreadZones requires an even spread over zones.
	spreadZones = "spreadPolicy: {spreadConstraints: [" +
		"{topologyKey: zone, topologyKeyType: Label, maxSkew: 1, whenUnsatisfiable: DoNotSchedule}]}"
)

// reasonOf returns the reason and the message of condition PlacementMisconfigured if it is
// True, else of PlacementSatisfied. It checks that the conditions agree with each other.
func reasonOf(t testing.TB, v *Result) (reason, message string) {
	t.Helper()
	if len(v.Conditions) != 2 || v.Conditions[0].Type != clusterv1beta1.PlacementConditionMisconfigured ||
		v.Conditions[1].Type != clusterv1beta1.PlacementConditionSatisfied {
		t.Fatalf("conditions %+v", v.Conditions)
	}
	invalid, satisfied := v.Conditions[0], v.Conditions[1]
	if invalid.ObservedGeneration != v.Generation || !v.KeepDecisions && satisfied.ObservedGeneration != v.Generation {
		t.Errorf("%+v: observedGeneration, want %d", v.Conditions, v.Generation)
	}
	if (satisfied.Status == metav1.ConditionTrue) != (satisfied.Reason == reasonAllScheduled) {
		t.Errorf("%+v", satisfied)
	}
	if invalid.Status == metav1.ConditionTrue {
		if satisfied.Reason != invalid.Reason || strings.Contains(satisfied.Message, "kept") != v.KeepDecisions {
			t.Errorf("%+v, keeps %t", satisfied, v.KeepDecisions)
		}
		return invalid.Reason, invalid.Message
	}
	if v.KeepDecisions || invalid.Reason != reasonConfigured {
		t.Errorf("%+v, keeps %t", invalid, v.KeepDecisions)
	}
	return satisfied.Reason, satisfied.Message
}

// zonedHub returns a State with clusters a and b in zone 1 and c in zone 2, all in set web.
// Sets web and empty are bound; set away is not.
func zonedHub() *State {
	s := hub()
	for name, zone := range map[string]string{"a": "1", "b": "1", "c": "2"} {
		s.SetCluster(managed(name, "set=web zone="+zone))
	}
	s.SetClusterSet(bySet("empty"))
	s.SetBinding(binding("ns", "empty"))
	s.SetClusterSet(bySet("away"))
	return s
}

func TestResults(t *testing.T) {
	unbind := func(s *State) { s.DeleteBinding("ns", "web"); s.DeleteBinding("ns", "empty") }
	for name, tc := range map[string]struct {
		spec                    string
		change                  func(*State)
		chosen, reason, message string
	}{
		"all": {
			`{}`, nil, "a b c", reasonAllScheduled,
			"selected 3 clusters (clusters in the sets: 3, matching the predicates: 3, with tolerated taints: 3)",
		},
		"zero clusters":      {`numberOfClusters: 0`, nil, "", reasonNoneMatched, "spec.numberOfClusters is 0: no cluster is selected"},
		"more than feasible": {`numberOfClusters: 5`, nil, "a b c", reasonNotAllScheduled, "selected 3 of 5 clusters"},
		"none matched":       {nowhere, nil, "", reasonNoneMatched, "matching the predicates: 0"},
		"empty set":          {`clusterSets: [empty]`, nil, "", reasonSetsEmpty, "the cluster sets have no clusters"},
		"unbound set":        {`clusterSets: [away]`, nil, "", reasonNoIntersection, "spec.clusterSets: away: not bound"},
		"unknown set":        {`clusterSets: [typo]`, nil, "", reasonNoIntersection, "spec.clusterSets: typo: not bound to namespace ns"},
		"unbound and deleted sets": {
			`clusterSets: [empty, away, typo]`, func(s *State) { s.DeleteClusterSet("empty") }, "", reasonNoIntersection,
			"spec.clusterSets: empty: no such ManagedClusterSet; spec.clusterSets: away, typo: not bound to namespace ns",
		},
		"known and unknown set": {
			`clusterSets: [web, typo]`, nil, "a b c", reasonAllScheduled, "sets that do not exist or are not bound to the namespace: typo",
		},
		"no bindings":             {`{}`, unbind, "", reasonNoBindings, "no cluster set is bound to namespace ns"},
		"no bindings, set listed": {`clusterSets: [web]`, unbind, "", reasonNoBindings, "web"},
		"bindings of deleted sets": {
			`{}`, func(s *State) { s.DeleteClusterSet("web"); s.DeleteClusterSet("empty") }, "", reasonNoBindings,
			"the cluster sets that are bound to namespace ns do not exist: empty, web",
		},
		"all tainted": {
			inZone1, func(s *State) { taint(s, "NoSelect", "a", "b") }, "", reasonNoneMatched,
			"matching the predicates: 2, with tolerated taints: 0",
		},
		"one tainted with NoSelectIfNew": {
			inZone1, func(s *State) { taint(s, "NoSelectIfNew", "b") }, "a", reasonAllScheduled, "selected 1 cluster (",
		},
		"one tainted with PreferNoSelect": {
			`numberOfClusters: 1`, func(s *State) { taint(s, "PreferNoSelect", "a") }, "b", reasonAllScheduled, "selected 1 cluster (",
		},
		// Without the constraint a and b are selected: 2 clusters in zone 1, none in zone
		// 2, a skew of 2. a and c have a skew of 0.
		"spread": {"numberOfClusters: 2\n" + spreadZones, nil, "a c", reasonAllScheduled, "selected 2 clusters"},
	} {
		t.Run(name, func(t *testing.T) {
			s := zonedHub()
			if tc.change != nil {
				tc.change(s)
			}
			s.SetPlacement(newPlacement(t, "p", tc.spec))
			v := decideNow(t, s, "p")
			reason, message := reasonOf(t, v)
			if got := clustersOf(v); got != tc.chosen || reason != tc.reason || !strings.Contains(message, tc.message) {
				t.Errorf("chosen %q, %s: %s; want %q, %s: %s", got, reason, message, tc.chosen, tc.reason, tc.message)
			}
			for _, c := range v.Ranking() {
				if c.Chosen != (c.Reason == "") {
					t.Errorf("%s is selected: %t, reason %q", c.Name, c.Chosen, c.Reason)
				}
			}
			if len(v.Groups) == 0 {
				t.Error("no groups, want at least an empty one")
			}
		})
	}
}

// taint adds a taint, which is a minute old, to clusters.
func taint(s *State, effect string, names ...string) {
	for _, name := range names {
		object := s.entries[name].object.DeepCopy()
		object.Spec.Taints = append(object.Spec.Taints,
			clusterv1.Taint{Key: "k", Effect: clusterv1.TaintEffect(effect), TimeAdded: metav1.NewTime(now.Add(-time.Minute))})
		s.SetCluster(object)
	}
}

// A placement has clusters a and b. Then its spec or the fleet changes. A spec that could
// be a typo keeps the decisions; any other change is applied.
func TestWouldEvictAll(t *testing.T) {
	const two = `numberOfClusters: 2`
	relabel := func(s *State) {
		for _, name := range []string{"a", "b"} {
			s.SetCluster(managed(name, "set=web zone=3"))
		}
	}
	for name, tc := range map[string]struct {
		before, after  string // after is optional
		change         func(*State)
		chosen, reason string // after the change
	}{
		"predicates match nothing": {before: two, after: nowhere, chosen: "a b", reason: reasonMatchesNothing},
		"unbound set":              {before: two, after: `clusterSets: [away]`, chosen: "a b", reason: reasonMatchesNothing},
		"expression is never true": {
			before: two,
			after:  celPredicate("managedCluster.metadata.label.zone == '1'"),
			chosen: "a b", reason: reasonMatchesNothing,
		},
		"predicates match something": {
			before: two,
			after:  `predicates: [{requiredClusterSelector: {labelSelector: {matchLabels: {zone: "2"}}}}]`,
			chosen: "c", reason: reasonAllScheduled,
		},
		"zero clusters": {before: two, after: `numberOfClusters: 0`, chosen: "", reason: reasonNoneMatched},
		"zero clusters of an unbound set": {
			before: two, after: `{numberOfClusters: 0, clusterSets: [away]}`, chosen: "", reason: reasonNoIntersection,
		},
		"clusters lose their labels": {before: inZone1, change: relabel, chosen: "", reason: reasonNoneMatched},
		"clusters leave the set": {
			before: inZone1,
			change: func(s *State) { s.SetCluster(managed("a", "zone=1")); s.SetCluster(managed("b", "zone=1")) },
			chosen: "", reason: reasonNoneMatched,
		},
		"cluster is being deleted": {before: inZone1, change: func(s *State) {
			object := managed("b", "set=web zone=1")
			object.DeletionTimestamp = &metav1.Time{Time: now}
			s.SetCluster(object)
		}, chosen: "a", reason: reasonAllScheduled},
		"all bindings but that of an empty set are deleted": {
			before: two, change: func(s *State) { s.DeleteBinding("ns", "web") }, chosen: "", reason: reasonSetsEmpty,
		},
		"binding of the listed set is deleted": {
			before: `clusterSets: [web]`, change: func(s *State) { s.DeleteBinding("ns", "web") }, chosen: "", reason: reasonNoIntersection,
		},
		"clusters are tainted": {
			before: inZone1, change: func(s *State) { taint(s, "NoSelect", "a", "b") }, chosen: "", reason: reasonNoneMatched,
		},
		"clusters are tainted with NoSelectIfNew": {
			before: inZone1, change: func(s *State) { taint(s, "NoSelectIfNew", "a", "b") }, chosen: "a b", reason: reasonAllScheduled,
		},
		"predicates match nothing, then labels change": {
			before: inZone1, after: nowhere, change: relabel, chosen: "a b", reason: reasonMatchesNothing,
		},
		"no clusters before": {
			before: nowhere,
			after:  `predicates: [{requiredClusterSelector: {labelSelector: {matchLabels: {zone: typo2}}}}]`,
			chosen: "", reason: reasonNoneMatched,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := zonedHub()
			s.SetPlacement(newPlacement(t, "p", tc.before))
			decideNow(t, s, "p")
			if tc.after != "" {
				changed := newPlacement(t, "p", tc.after)
				changed.Generation = 2
				s.SetPlacement(changed)
			}
			if tc.change != nil {
				tc.change(s)
			}
			for range 3 { // repeated decisions give the same result
				v := decideNow(t, s, "p")
				reason, message := reasonOf(t, v)
				if reason == reasonMatchesNothing && !strings.Contains(message, "spec.predicates") &&
					!strings.Contains(message, "spec.clusterSets: away") {
					t.Errorf("message %q names no field", message)
				}
				if selected := strings.Join(s.placements[keyOf("p")].selected, " "); selected != tc.chosen || reason != tc.reason {
					t.Fatalf("selected %q, %s; want %q, %s", selected, reason, tc.chosen, tc.reason)
				}
			}
		})
	}
}

// A new placement that is misconfigured has both conditions and no clusters. If it becomes
// misconfigured later, it keeps its clusters and PlacementSatisfied has the generation of
// the spec that selected them.
func TestMisconfigured(t *testing.T) {
	s := zonedHub()
	s.SetPlacement(newPlacement(t, "p", `numberOfClusters: -1`))
	for range 2 {
		r := decideNow(t, s, "p")
		if reason, _ := reasonOf(t, r); reason != reasonMisconfigured || r.KeepDecisions || len(r.Groups) != 1 || clustersOf(r) != "" {
			t.Errorf("%s, keeps %t, groups %v", reason, r.KeepDecisions, r.Groups)
		}
	}
	for generation, spec := range []string{0: `numberOfClusters: -1`, 1: `{}`, 2: `numberOfClusters: -2`, 3: `numberOfClusters: -3`} {
		changed := newPlacement(t, "p", spec)
		changed.Generation = int64(10 + generation)
		s.SetPlacement(changed)
		r := decideNow(t, s, "p")
		reasonOf(t, r)
		if satisfied := r.Conditions[1]; generation >= 1 && satisfied.ObservedGeneration != 11 {
			t.Errorf("generation %d: observedGeneration %d, want 11", 10+generation, satisfied.ObservedGeneration)
		}
	}
}

// AddPlacement sets the selected clusters and the generation of the spec that selected them.
func TestAddPlacement(t *testing.T) {
	for name, tc := range map[string]struct {
		generation int64
		keeps      bool
	}{
		"earlier generation": {1, true},
		"current generation": {2, false},
		"unknown generation": {0, false},
	} {
		s := zonedHub()
		p := newPlacement(t, "p", nowhere)
		p.Generation = 2
		addDecided(s, p, tc.generation, "b", "gone", "b")
		if v := decideNow(t, s, "p"); v.KeepDecisions != tc.keeps {
			t.Errorf("%s: keeps %t, want %t", name, v.KeepDecisions, tc.keeps)
		}
	}
	// A decision takes precedence over restored clusters.
	s := zonedHub()
	s.SetPlacement(newPlacement(t, "p", `{}`))
	decideNow(t, s, "p")
	p := newPlacement(t, "p", `{}`)
	p.Generation = 2
	addDecided(s, p, 1, "c")
	if got := s.placements[keyOf("p")].selected; len(got) != 3 {
		t.Errorf("selected clusters %v, want 3", got)
	}
}

// A new placement with the name of a deleted one does not inherit its decisions.
func TestRecreatedPlacement(t *testing.T) {
	s := zonedHub()
	s.SetPlacement(newPlacement(t, "p", `{}`))
	decideNow(t, s, "p")
	other := newPlacement(t, "p", nowhere)
	other.UID, other.Generation = "other", 3
	s.AddPlacement(other, nil)
	if v := decideNow(t, s, "p"); v.KeepDecisions {
		t.Errorf("%+v", v.Conditions)
	}
	if s.counts[0] != 0 {
		t.Errorf("decisions per cluster %v, want none on a", s.counts)
	}
}

// The taint of a is 60 s old and tolerated for 100 s, that is for another 40 s. The score
// of b is valid for an hour.
func TestRequeueAt(t *testing.T) {
	addOn := `prioritizerPolicy: {configurations: [{scoreCoordinate: {type: AddOn, addOn: {resourceName: usage, scoreName: cpu}}}]}`
	for name, tc := range map[string]struct {
		spec string
		want time.Duration // 0: never
	}{
		"toleration without limit": {`tolerations: [{key: k, operator: Exists}]`, 0},
		"toleration":               {`tolerations: [{key: k, operator: Exists, tolerationSeconds: 100}]`, 40 * time.Second},
		"expired toleration":       {`tolerations: [{key: k, operator: Exists, tolerationSeconds: 10}]`, 0},
		"100 years": {
			`tolerations: [{key: k, operator: Exists, tolerationSeconds: 3153600000}]`, 3153600000*time.Second - time.Minute,
		},
		"score":                {addOn, time.Hour + time.Second},
		"score and toleration": {addOn + "\n" + `tolerations: [{key: k, operator: Exists, tolerationSeconds: 100}]`, 40 * time.Second},
	} {
		s := hub("a", "b")
		taint(s, "NoSelect", "a")
		score := scored("b", "usage", map[string]int32{"cpu": 5})
		score.Status.ValidUntil = &metav1.Time{Time: now.Add(time.Hour)}
		s.SetScores(score)
		s.SetPlacement(newPlacement(t, "p", tc.spec))
		v := decideNow(t, s, "p")
		if tc.want == 0 && !v.RequeueAt.IsZero() || tc.want != 0 && v.RequeueAt.Sub(now) != tc.want {
			t.Errorf("%s: RequeueAt %s, want now + %s", name, v.RequeueAt, tc.want)
		}
	}
}

// Three placements select one of three clusters each. An unmanaged placement has c, so that
// Balance scores c with 2 x trunc(100 x (0.5 - 1/1)) = -100 and a and b with 100: p0
// selects a, then p1 selects b. Then all clusters have one decision: p2 selects a by name.
func TestBalance(t *testing.T) {
	s := hub("a", "b", "c")
	s.SetUnmanaged(keyOf("foreign"), []string{"c", "c", "gone"})
	for i, want := range []string{"a", "b", "a"} {
		name := fmt.Sprint("p", i)
		s.SetPlacement(newPlacement(t, name, `numberOfClusters: 1`))
		if got := clustersOf(decideNow(t, s, name)); got != want {
			t.Errorf("%s selects %s, want %s", name, got, want)
		}
	}
	s.SetUnmanaged(keyOf("foreign"), nil)
	s.DeletePlacement(keyOf("p0"))
	s.DeletePlacement(keyOf("p0"))
	if got := fmt.Sprint(s.counts); got != "[1 1 0]" {
		t.Errorf("decisions per cluster %s, want [1 1 0]", got)
	}
}

// Messages with long values of a spec are shortened, so that the hub accepts the conditions.
func TestLongMessages(t *testing.T) {
	long := strings.Repeat("é", 100_000)
	for name, spec := range map[string]string{
		"sets":            `clusterSets: [web, "` + long + `"]`,
		"no known set":    `clusterSets: ["` + long + `"]`,
		"invalid values":  `predicates: [{requiredClusterSelector: {labelSelector: {matchLabels: {a: "` + long + `"}}}}]`,
		"invalid pattern": `tolerations: [{key: "` + long + `"}]`,
	} {
		s := zonedHub()
		s.SetPlacement(newPlacement(t, "p", spec))
		for _, condition := range decideNow(t, s, "p").Conditions {
			if n := len(condition.Message); n > maxConditionLength || !utf8.ValidString(condition.Message) {
				t.Errorf("%s: condition %s has a message of %d bytes", name, condition.Type, n)
			}
		}
	}
}
