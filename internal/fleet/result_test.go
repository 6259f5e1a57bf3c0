package fleet

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
)

const (
	nowhere = `predicates: [{requiredClusterSelector: {labelSelector: {matchLabels: {zone: typo}}}}]`
	inZone1 = `predicates: [{requiredClusterSelector: {labelSelector: {matchLabels: {zone: "1"}}}}]`
)

// reasonOf returns the reason of the condition that matters: that it is
// misconfigured, or else whether it is satisfied.
func reasonOf(t testing.TB, v *Result) (reason, message string) {
	t.Helper()
	for _, c := range v.Conditions {
		if c.ObservedGeneration != v.Generation {
			t.Errorf("%+v is of another generation than %d", c, v.Generation)
		}
	}
	switch {
	case v.KeepDecisions && len(v.Conditions) == 1 && v.Conditions[0].Type == clusterv1beta1.PlacementConditionMisconfigured && v.Conditions[0].Status == metav1.ConditionTrue:
		return v.Conditions[0].Reason, v.Conditions[0].Message
	case !v.KeepDecisions && len(v.Conditions) == 2 && v.Conditions[0].Reason == reasonConfigured && v.Conditions[0].Status == metav1.ConditionFalse:
		c := v.Conditions[1]
		if satisfied := c.Reason == reasonAllScheduled; (c.Status == metav1.ConditionTrue) != satisfied {
			t.Errorf("%+v", c)
		}
		return c.Reason, c.Message
	}
	t.Fatalf("keeps %t, conditions %+v", v.KeepDecisions, v.Conditions)
	return "", ""
}

// The fleet is a and b in zone 1 and c in zone 2, in the set web, which is bound;
// the set empty is bound, too, and the set away is not.
func verdictHub() *State {
	s := hub()
	for name, zone := range map[string]string{"a": "1", "b": "1", "c": "2"} {
		s.SetCluster(managed(name, "set=web zone="+zone))
	}
	s.SetClusterSet(bySet("empty"))
	s.SetBinding(binding("ns", "empty"))
	s.SetClusterSet(bySet("away"))
	return s
}

func TestVerdicts(t *testing.T) {
	unbind := func(s *State) { s.DeleteBinding("ns", "web"); s.DeleteBinding("ns", "empty") }
	for name, tc := range map[string]struct {
		spec                    string
		change                  func(*State)
		chosen, reason, message string
	}{
		"all":                      {`{}`, nil, "a b c", reasonAllScheduled, "selected 3 clusters (clusters in the sets: 3, matching the predicates: 3, with tolerated taints: 3)"},
		"some":                     {`numberOfClusters: 2`, nil, "a b", reasonAllScheduled, "selected 2 clusters"},
		"none wanted":              {`numberOfClusters: 0`, nil, "", reasonAllScheduled, "selected 0 clusters"},
		"more than there are":      {`numberOfClusters: 5`, nil, "a b c", reasonNotAllScheduled, "selected 3 of 5 clusters"},
		"some match":               {inZone1, nil, "a b", reasonAllScheduled, "in the sets: 3, matching the predicates: 2"},
		"none match":               {nowhere, nil, "", reasonNoneMatched, "matching the predicates: 0"},
		"an empty set":             {`clusterSets: [empty]`, nil, "", reasonSetsEmpty, "the cluster sets have no clusters"},
		"a set that is not bound":  {`clusterSets: [away]`, nil, "", reasonNoIntersection, "spec.clusterSets: away: not bound"},
		"a set that is none":       {`clusterSets: [typo]`, nil, "", reasonNoIntersection, "typo"},
		"one that is, one is not":  {`clusterSets: [web, typo]`, nil, "a b c", reasonAllScheduled, "sets not bound to the namespace: typo"},
		"the same set twice":       {`clusterSets: [web, web]`, nil, "a b c", reasonAllScheduled, "in the sets: 3"},
		"no bindings":              {`{}`, unbind, "", reasonNoBindings, "no cluster set is bound to namespace ns"},
		"no bindings, named":       {`clusterSets: [web]`, unbind, "", reasonNoBindings, "web"},
		"bindings of no sets":      {`{}`, func(s *State) { s.DeleteClusterSet("web"); s.DeleteClusterSet("empty") }, "", reasonNoBindings, "no cluster set is bound"},
		"all are tainted":          {inZone1, func(s *State) { taint(s, "NoSelect", "a", "b") }, "", reasonNoneMatched, "matching the predicates: 2, with tolerated taints: 0"},
		"one is tainted":           {inZone1, func(s *State) { taint(s, "NoSelect", "b") }, "a", reasonAllScheduled, "with tolerated taints: 1"},
		"one is tainted if new":    {inZone1, func(s *State) { taint(s, "NoSelectIfNew", "b") }, "a", reasonAllScheduled, "selected 1 clusters"},
		"one is better not chosen": {`numberOfClusters: 1`, func(s *State) { taint(s, "PreferNoSelect", "a") }, "b", reasonAllScheduled, "selected 1 clusters"},
		// Two zones: a (or b) and c make a skew of 0, a second in zone 1 one of 1; of 3
		// with maxSkew 1 all are chosen, as 2 - 1 = 1.
		"spread": {`{numberOfClusters: 2, spreadPolicy: {spreadConstraints: [{topologyKey: zone, topologyKeyType: Label, maxSkew: 1, whenUnsatisfiable: DoNotSchedule}]}}`, nil, "a c", reasonAllScheduled, "selected 2 clusters"},
	} {
		t.Run(name, func(t *testing.T) {
			s := verdictHub()
			if tc.change != nil {
				tc.change(s)
			}
			s.SetPlacement(asks(t, "p", tc.spec))
			v := decide(t, s, "p")
			reason, message := reasonOf(t, v)
			if got := clustersOf(v); got != tc.chosen || reason != tc.reason || !strings.Contains(message, tc.message) {
				t.Errorf("chosen %q, %s: %s; want %q, %s: %s", got, reason, message, tc.chosen, tc.reason, tc.message)
			}
			if len(v.Groups) == 0 {
				t.Error("there is no group, not even an empty one")
			}
		})
	}
}

// taint gives clusters of the fleet another taint.
func taint(s *State, effect string, names ...string) {
	for _, name := range names {
		object := s.entries[name].object.DeepCopy()
		object.Spec.Taints = append(object.Spec.Taints, clusterv1.Taint{Key: "k", Effect: clusterv1.TaintEffect(effect), TimeAdded: metav1.NewTime(now.Add(-time.Minute))})
		s.SetCluster(object)
	}
}

// The placement has a and b, as its first spec said. Then the spec changes, or
// what is around it. What a user can have mistyped takes nothing away; what is
// meant does.
func TestWhatHurts(t *testing.T) {
	const two = `numberOfClusters: 2`
	relabel := func(s *State) {
		for _, name := range []string{"a", "b"} {
			s.SetCluster(managed(name, "set=web zone=3"))
		}
	}
	for name, tc := range map[string]struct {
		before, after  string // after: as before if left out
		change         func(*State)
		chosen, reason string // chosen: what the placement has in the end
	}{
		"predicates that match nothing":        {before: two, after: nowhere, chosen: "a b", reason: reasonMatchesNothing},
		"a set that is not bound":              {before: two, after: `clusterSets: [away]`, chosen: "a b", reason: reasonMatchesNothing},
		"a set that is none":                   {before: two, after: `clusterSets: [wbe]`, chosen: "a b", reason: reasonMatchesNothing},
		"an expression that is never true":     {before: two, after: `predicates: [{requiredClusterSelector: {celSelector: {celExpressions: ["managedCluster.metadata.label.zone == '1'"]}}}]`, chosen: "a b", reason: reasonMatchesNothing},
		"predicates that match something":      {before: two, after: `predicates: [{requiredClusterSelector: {labelSelector: {matchLabels: {zone: "2"}}}}]`, chosen: "c", reason: reasonAllScheduled},
		"none are wanted":                      {before: two, after: `numberOfClusters: 0`, chosen: "", reason: reasonAllScheduled},
		"none are wanted, and nothing matches": {before: two, after: "numberOfClusters: 0\n" + nowhere, chosen: "", reason: reasonAllScheduled},
		"none are wanted of a set not bound":   {before: two, after: `{numberOfClusters: 0, clusterSets: [away]}`, chosen: "", reason: reasonNoIntersection},
		"clusters lose their labels":           {before: inZone1, change: relabel, chosen: "", reason: reasonNoneMatched},
		"clusters leave the set":               {before: inZone1, change: func(s *State) { s.SetCluster(managed("a", "zone=1")); s.SetCluster(managed("b", "zone=1")) }, chosen: "", reason: reasonNoneMatched},
		"clusters go":                          {before: inZone1, change: func(s *State) { s.DeleteCluster("a"); s.DeleteCluster("b") }, chosen: "", reason: reasonNoneMatched},
		"a cluster is being deleted": {before: inZone1, change: func(s *State) {
			object := managed("b", "set=web zone=1")
			object.DeletionTimestamp = &metav1.Time{Time: now}
			s.SetCluster(object)
		}, chosen: "a", reason: reasonAllScheduled},
		"the binding is removed":         {before: two, change: func(s *State) { s.DeleteBinding("ns", "web") }, chosen: "", reason: reasonSetsEmpty},
		"the binding of its set":         {before: `clusterSets: [web]`, change: func(s *State) { s.DeleteBinding("ns", "web") }, chosen: "", reason: reasonNoIntersection},
		"the set is removed":             {before: two, change: func(s *State) { s.DeleteClusterSet("web") }, chosen: "", reason: reasonSetsEmpty},
		"taints":                         {before: inZone1, change: func(s *State) { taint(s, "NoSelect", "a", "b") }, chosen: "", reason: reasonNoneMatched},
		"taints for new ones":            {before: inZone1, change: func(s *State) { taint(s, "NoSelectIfNew", "a", "b") }, chosen: "a b", reason: reasonAllScheduled},
		"a spec that keeps, then labels": {before: inZone1, after: nowhere, change: relabel, chosen: "a b", reason: reasonMatchesNothing},
		"nothing was chosen":             {before: nowhere, after: `predicates: [{requiredClusterSelector: {labelSelector: {matchLabels: {zone: typo2}}}}]`, chosen: "", reason: reasonNoneMatched},
	} {
		t.Run(name, func(t *testing.T) {
			s := verdictHub()
			s.SetPlacement(asks(t, "p", tc.before))
			decide(t, s, "p")
			if tc.after != "" {
				changed := asks(t, "p", tc.after)
				changed.Generation = 2
				s.SetPlacement(changed)
			}
			if tc.change != nil {
				tc.change(s)
			}
			for range 3 { // asked again, it says the same
				v := decide(t, s, "p")
				reason, _ := reasonOf(t, v)
				if has := strings.Join(s.placements[keyOf("p")].selected, " "); has != tc.chosen || reason != tc.reason {
					t.Fatalf("it has %q, %s; want %q, %s", has, reason, tc.chosen, tc.reason)
				}
			}
		})
	}
}

// Who starts knows of the decisions there are and by which spec they came about.
func TestResume(t *testing.T) {
	for name, tc := range map[string]struct {
		generation int64
		keeps      bool
	}{
		"by an earlier spec":   {1, true},
		"by the spec as it is": {2, false},
		"nobody knows":         {0, false},
	} {
		s := verdictHub()
		p := asks(t, "p", nowhere)
		p.Generation = 2
		s.SetPlacement(p)
		s.Restore(keyOf("p"), []string{"b", "gone", "b"}, tc.generation)
		if v := decide(t, s, "p"); v.KeepDecisions != tc.keeps {
			t.Errorf("%s: keeps %t, want %t", name, v.KeepDecisions, tc.keeps)
		}
	}
	// What is decided here counts more than what is resumed.
	s := verdictHub()
	s.SetPlacement(asks(t, "p", `{}`))
	decide(t, s, "p")
	s.Restore(keyOf("p"), []string{"c"}, 1)
	if got := s.placements[keyOf("p")].selected; len(got) != 3 {
		t.Errorf("it has %v", got)
	}
}

// Another placement of the same name starts anew.
func TestAnotherOfTheSameName(t *testing.T) {
	s := verdictHub()
	s.SetPlacement(asks(t, "p", `{}`))
	decide(t, s, "p")
	other := asks(t, "p", nowhere)
	other.UID, other.Generation = "other", 3
	if !s.SetPlacement(other) {
		t.Fatal("it is taken for the first")
	}
	s.Restore(keyOf("p"), nil, 0)
	if v := decide(t, s, "p"); v.KeepDecisions {
		t.Errorf("%+v", v.Conditions)
	}
	if s.counts[0] != 0 {
		t.Errorf("counts %v", s.counts)
	}
}

// a is tolerated for 100 s from a minute ago: 40 s more. A score of b holds for
// an hour; and 100 years are far, but not never.
func TestRequeueAt(t *testing.T) {
	addOn := `prioritizerPolicy: {configurations: [{scoreCoordinate: {type: AddOn, addOn: {resourceName: usage, scoreName: cpu}}}]}`
	for name, tc := range map[string]struct {
		spec string
		want time.Duration // 0: never
	}{
		"nothing ends":           {`tolerations: [{key: k, operator: Exists}]`, 0},
		"a toleration":           {`tolerations: [{key: k, operator: Exists, tolerationSeconds: 100}]`, 40 * time.Second},
		"a toleration is over":   {`tolerations: [{key: k, operator: Exists, tolerationSeconds: 10}]`, 0},
		"a hundred years":        {`tolerations: [{key: k, operator: Exists, tolerationSeconds: 3153600000}]`, 3153600000*time.Second - time.Minute},
		"a score":                {addOn, time.Hour + time.Second},
		"a score and toleration": {addOn + "\n" + `tolerations: [{key: k, operator: Exists, tolerationSeconds: 100}]`, 40 * time.Second},
	} {
		s := hub("a", "b")
		taint(s, "NoSelect", "a")
		score := scored("b", "usage", map[string]int32{"cpu": 5})
		score.Status.ValidUntil = &metav1.Time{Time: now.Add(time.Hour)}
		s.SetScores(score)
		s.SetPlacement(asks(t, "p", tc.spec))
		v := decide(t, s, "p")
		if tc.want == 0 && !v.RequeueAt.IsZero() || tc.want != 0 && v.RequeueAt.Sub(now) != tc.want {
			t.Errorf("%s: at %s, want in %s", name, v.RequeueAt, tc.want)
		}
	}
}

func TestNoSuchPlacement(t *testing.T) {
	s := hub("a")
	s.SetUnmanaged(keyOf("foreign"), []string{"a"})
	for _, name := range []string{"none", "foreign"} {
		if _, ok := s.Decide(keyOf(name), now); ok {
			t.Errorf("%s is decided", name)
		}
		if _, ok := s.Preview(keyOf(name), now); ok {
			t.Errorf("%s is previewed", name)
		}
	}
}

// Three placements of one cluster each, of three: Balance gives each its own, as
// a has 1 of at most 1 decision, which is 2 x trunc(100 x (0.5 - 1/1)) = -100, and
// the others 100. A placement that is decided elsewhere has c.
func TestBalance(t *testing.T) {
	s := hub("a", "b", "c")
	s.SetUnmanaged(keyOf("foreign"), []string{"c", "c", "gone"})
	for i, want := range []string{"a", "b", "a"} {
		name := fmt.Sprint("p", i)
		s.SetPlacement(asks(t, name, `numberOfClusters: 1`))
		if got := clustersOf(decide(t, s, name)); got != want {
			t.Errorf("%s gets %s, want %s", name, got, want)
		}
	}
	s.SetUnmanaged(keyOf("foreign"), nil)
	s.DeletePlacement(keyOf("p0"))
	s.DeletePlacement(keyOf("p0"))
	if got := fmt.Sprint(s.counts); got != "[1 1 0]" {
		t.Errorf("counts %s", got)
	}
}
