package fleet

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"pgregory.net/rapid"

	capacityv1alpha1 "github.com/plimsoll-k8s/plimsoll/api/capacity/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/api/placement/v1beta1"
)

// limited returns a cluster with a limit on the hub.
func limited(name, limit string) *clusterv1.ManagedCluster {
	object := managed(name, "set=web")
	object.Annotations = map[string]string{capacityv1alpha1.AnnotationLimit: limit}
	return object
}

// reasons returns the reasons of a preview by cluster.
func reasons(t *testing.T, s *State, name string) map[string]string {
	t.Helper()
	r, _ := s.Preview(keyOf(name), now)
	out := map[string]string{}
	for _, c := range r.Ranking() {
		out[c.Name] = c.Reason
	}
	return out
}

// TestLimits checks that a cluster that promises everything gets what its limit leaves: of 10 CPUs, 2 replicas of 3 CPUs leave 4, which
// is one replica of 3 or 4 CPUs; also an hour later, when the promise has ended.
func TestLimits(t *testing.T) {
	s := hub("a")
	s.SetCluster(limited("a", `{"cpu": "10", "memory": "1Gi", "pods": 100}`))
	s.SetCapacity(capacityOf(t, "a", now, 1_000_000, nil))
	add(s, withWorkload(t, "first", 3, 2, "{}"))
	if got := clustersOf(decideNow(t, s, "first")); got != "a" {
		t.Fatalf("selected %q", got)
	}
	for _, at := range []time.Time{now, now.Add(time.Hour)} {
		s.SetCapacity(capacityOf(t, "a", at, 1_000_000, nil))
		add(s, withWorkload(t, "second", 4, 1, "{}"))
		add(s, withWorkload(t, "third", 3, 2, "{}"))
		if r, _ := s.Preview(keyOf("second"), at); clustersOf(r) != "a" {
			t.Errorf("second: selected %q", clustersOf(r))
		}
		r, _ := s.Decide(keyOf("third"), at)
		if _, message := reasonOf(t, r); clustersOf(r) != "" ||
			!strings.Contains(message, "a: 1 replica fits of 2: the limit of a on the hub leaves 1 replica") {
			t.Errorf("third: selected %q: %s", clustersOf(r), message)
		}
	}
	s.SetCapacity(capacityOf(t, "a", now, 1_000_000, nil))
	// A limit is lowered: the decision is kept, with a warning.
	for _, text := range []string{`{"cpu": "6"}`, `{"cpu": "5"}`} {
		if keys := s.SetCluster(limited("a", text)); len(keys) != 3 {
			t.Errorf("%s: %d placements are decided again", text, len(keys))
		}
		if keys := s.SetCluster(limited("a", text)); len(keys) != 0 {
			t.Errorf("%s: %d placements are decided again without a change", text, len(keys))
		}
	}
	r := decideNow(t, s, "first")
	if len(r.Warnings) != 1 || r.Warnings[0] != "a: selected for 2 replicas: the limit of a on the hub leaves 1 replica" {
		t.Errorf("selected %q, warnings %q", clustersOf(r), r.Warnings)
	}
	for _, share := range []string{"0%", "101%"} { // the warning has the present text
		s.SetCluster(limited("a", `{"cpu": "5", "namespaceShare": "`+share+`"}`))
		if r := decideNow(t, s, "first"); len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], "invalid value "+share) {
			t.Errorf("namespaceShare %s: warnings %q", share, r.Warnings)
		}
	}
	s.SetCluster(limited("a", `{"cpu": "5"}`))
	// A workload that is no longer valid counts as before: 5 - 2 x 3 CPUs.
	p := withWorkload(t, "first", 3, 2, "{}")
	p.Annotations[v1beta1.AnnotationWorkload] = "{"
	s.SetWorkload(p, nil, nil)
	decideNow(t, s, "first")
	if got := reasons(t, s, "second")["a"]; got != "0 replicas fit of 1: the limit of a on the hub leaves 0 replicas" {
		t.Errorf("got %q", got)
	}
	s.DeletePlacement(keyOf("first"))
	if got := reasons(t, s, "second")["a"]; got != "" {
		t.Errorf("after the deletion: %q", got)
	}
}

// TestRaisedReplicas checks that more replicas in a selected cluster are promised only within its limit: of 10 CPUs, 5 replicas of 2 CPUs.
// A lower limit takes nothing back.
func TestRaisedReplicas(t *testing.T) {
	s := hub("a")
	for _, step := range []struct {
		limit, replicas int
		shares, warning string
	}{
		{10, 2, "a:2", ""},
		{10, 8, "a:5", "a: selected for 8 replicas: the limit of a on the hub leaves 5 replicas"},
		{10, 4, "a:4", ""},
		{4, 4, "a:4", "a: selected for 4 replicas: the limit of a on the hub leaves 2 replicas"},
		{4, 6, "a:4", "a: selected for 6 replicas: the limit of a on the hub leaves 2 replicas"},
		{20, 8, "a:8", ""},
	} {
		s.SetCluster(limited("a", fmt.Sprintf(`{"cpu": "%d"}`, step.limit)))
		s.SetCapacity(capacityOf(t, "a", now, 1_000_000, nil))
		add(s, withWorkload(t, "web", 2, step.replicas, "{}"))
		r := decideNow(t, s, "web")
		if got := strings.Join(r.Warnings, "; "); sharesOf(r) != step.shares || got != step.warning {
			t.Errorf("%+v: got %s with warnings %q", step, sharesOf(r), got)
		}
	}
}

// TestUnmanagedPromises checks that the promises of a placement that another controller decides count while it selects the cluster.
func TestUnmanagedPromises(t *testing.T) {
	s := hub("a")
	s.SetCluster(limited("a", `{"cpu": "10"}`))
	s.SetCapacity(capacityOf(t, "a", now, 100, nil))
	add(s, withWorkload(t, "first", 1, 8, "{}"))
	add(s, withWorkload(t, "second", 1, 8, "{}"))
	decideNow(t, s, "first")
	for _, step := range []struct {
		clusters []string
		reason   string
	}{{[]string{"a"}, "2 replicas fit of 8: the limit of a on the hub leaves 2 replicas"}, {nil, ""}} {
		s.SetUnmanaged(keyOf("first"), step.clusters)
		if got := reasons(t, s, "second")["a"]; got != step.reason {
			t.Errorf("first in %q: got %q, want %q", step.clusters, got, step.reason)
		}
	}
}

// TestBadLimits checks that a cluster whose limit is not valid fits nothing, with a reason that names the resource.
func TestBadLimits(t *testing.T) {
	for text, want := range map[string]string{
		``: "must be an object such as {\"cpu\": \"100\"}: unexpected end of JSON input", `[]`: "must be an object such as", `{}`: "must have an amount", `null`: "must have an amount",
		`{"cpu": "many"}`: "cpu: invalid value \"many\": must be a quantity", `{"cpu": "-1"}`: "cpu: invalid value -1: must be at least 0",
		`{"namespaceShare": "0%"}`: "namespaceShare: invalid value 0%: must be from 1% to 100%", `{"namespaceShare": 50}`: "must be from 1% to 100%",
		`{"memory": "1e2147483647"}`: "the exponent must be from -30 to 30",
		`{"CPU": "1"}`:               "CPU: must be cpu, memory, ephemeral-storage, pods, namespaceShare, or the name of an extended resource",
	} {
		s := hub("a")
		s.SetCluster(limited("a", text))
		s.SetCapacity(capacityOf(t, "a", now, 100, nil))
		add(s, withWorkload(t, "web", 1, 1, "{}"))
		got := reasons(t, s, "web")["a"]
		if !strings.HasPrefix(got, "0 replicas fit of 1: annotation plimsoll.dev/capacity-limit of ManagedCluster a is not valid: ") ||
			!strings.Contains(got, want) {
			t.Errorf("%s: got %q, want %s", text, got, want)
		}
	}
}

var replicasField = regexp.MustCompile(`"replicas": \d+`)

// TestLimitsHold checks with generated placements over two clusters that promise everything that the requests of all decisions are within
// the limits, whatever is decided, raised, deleted or forgotten, and that a placement is only refused if its replicas exceed both.
func TestLimitsHold(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		limits := map[string]int64{"a": 20, "b": 35}
		s := hub("a", "b")
		at := now
		for cluster, cores := range limits {
			s.SetCluster(limited(cluster, fmt.Sprintf(`{"cpu": "%d"}`, cores)))
		}
		cpu, placed, placements := map[string]int64{}, map[string]map[string]podPromise{}, map[string]*v1beta1.Placement{}
		check := func(rt *rapid.T) {
			for cluster, cores := range limits {
				for name, promises := range placed {
					cores -= cpu[name] * promises[cluster].Replicas
				}
				if cores < 0 {
					rt.Fatalf("the limit of %s is exceeded by %d CPU", cluster, -cores)
				}
			}
		}
		left := func(cluster string) int64 {
			n := limits[cluster]
			for name, promises := range placed {
				n -= cpu[name] * promises[cluster].Replicas
			}
			return n
		}
		rt.Repeat(map[string]func(*rapid.T){
			"decide": func(rt *rapid.T) {
				at = at.Add(time.Duration(rapid.IntRange(0, 900).Draw(rt, "seconds")) * time.Second)
				for cluster := range limits {
					s.SetCapacity(capacityOf(t, cluster, at, 1_000_000, nil))
				}
				name := fmt.Sprintf("p%d", len(cpu))
				each, replicas := rapid.Int64Range(1, 5).Draw(rt, "cpu"), rapid.Int64Range(0, 8).Draw(rt, "replicas")
				divides := rapid.Bool().Draw(rt, "divide")
				number := rapid.IntRange(1, 2).Draw(rt, "clusters")
				p := withWorkload(t, name, int(each), int(replicas), fmt.Sprintf("{numberOfClusters: %d}", number))
				text := p.Annotations[v1beta1.AnnotationWorkload]
				text = strings.Replace(text, `"requireFit": true`, fmt.Sprintf(`"divide": %t, "requireFit": %t`, divides,
					rapid.Bool().Draw(rt, "requireFit")), 1)
				p.Annotations[v1beta1.AnnotationWorkload] = text
				needed := replicas
				if divides {
					needed = min(needed, 1)
				}
				fits := left("a") >= each*needed || left("b") >= each*needed
				add(s, p)
				r, _ := s.Decide(keyOf(name), at)
				if (clustersOf(r) != "") != fits {
					rt.Fatalf("%d x %d CPU: selected %q with %d and %d left", replicas, each, clustersOf(r), left("a"), left("b"))
				}
				cpu[name], placed[name], placements[name] = each, r.Promises, p
				check(rt)
			},
			"raise": func(rt *rapid.T) {
				for _, name := range slices.Sorted(maps.Keys(placements)) {
					text := placements[name].Annotations[v1beta1.AnnotationWorkload]
					raised := fmt.Sprintf(`"replicas": %d`, rapid.IntRange(0, 30).Draw(rt, "replicas"))
					placements[name].Annotations[v1beta1.AnnotationWorkload] = replicasField.ReplaceAllString(text, raised)
					s.SetWorkload(placements[name], nil, nil)
					r, _ := s.Decide(keyOf(name), at)
					placed[name] = r.Promises
					check(rt)
				}
			},
			"delete": func(rt *rapid.T) {
				if len(cpu) > 0 {
					name := fmt.Sprintf("p%d", rapid.IntRange(0, len(cpu)-1).Draw(rt, "placement"))
					s.DeletePlacement(keyOf(name))
					delete(placed, name)
					delete(placements, name)
				}
			},
		})
	})
}

// TestFitOnHub checks the fit of a workload that no placement names: 100 CPUs less the 10 that were promised a second ago, and the limit
// of b; c has no ClusterCapacity.
func TestFitOnHub(t *testing.T) {
	s := hub("a", "b", "c")
	s.SetCluster(limited("b", `{"cpu": "30"}`))
	for _, cluster := range []string{"a", "b"} {
		s.SetCapacity(capacityOf(t, cluster, now, 100, nil))
	}
	add(s, withWorkload(t, "web", 1, 10, "{}"))
	decideNow(t, s, "web")
	w := s.placements[keyOf("web")].workload.workload
	for cluster, want := range map[string]string{
		"a": "90 limited by CPU; pods of other placements are not in the summary yet", "b": "20 the limit of b on the hub leaves 20 replicas",
		"c": "-1 has no ClusterCapacity",
	} {
		if fit, limit := s.FitOf(w, cluster, now); fmt.Sprint(fit.Now, " ", limit) != want {
			t.Errorf("%s: got %d %s, want %s", cluster, fit.Now, limit, want)
		}
	}
}

// TestNotes checks the warnings about a selected cluster: its capacity is taken by pods that no placement has placed, and its pods are
// never seen. Each has one text, although the numbers change.
func TestNotes(t *testing.T) {
	s := hub("a")
	add(s, withWorkload(t, "web", 1, 5, "{}"))
	step := func(after time.Duration, free int64, recent int32, want string) {
		t.Helper()
		at := now.Add(after)
		s.SetCapacity(capacityOf(t, "a", at, free, map[string]int32{"web": recent}))
		r, _ := s.Decide(keyOf("web"), at)
		if got := strings.Join(r.Warnings, ", "); got != want {
			t.Errorf("after %s: got %q, want %q", after, got, want)
		}
	}
	const noLonger = "a: no longer fits: 4 replicas fit of 5: limited by CPU"
	step(0, 8, 0, "")
	step(time.Minute, 4, 0, noLonger)
	step(2*time.Minute, 3, 0, noLonger)
	step(3*time.Minute, 4, 1, "") // one runs
	step(4*time.Minute, 5, 0, "")
	step(11*time.Minute, 5, 0, "a: no pod of 5 replicas was seen within 10 minutes")
	step(12*time.Minute, 1, 2, "")
	step(16*time.Minute, 1, 0, "") // pods of the last 15 minutes are recent: they may have run
}

// FuzzLimit checks that any annotation is read in a short time, as amounts of at least 0 or with an error.
func FuzzLimit(f *testing.F) {
	for _, text := range []string{
		`{"cpu": "10", "memory": "4Ti", "pods": 5000}`, `{"cpu": "1e2147483647"}`, `{"a.b/c": "-1"}`, `[`, `{"cpu": null}`,
		`{"namespaceShare": "30%"}`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		amounts, share, err := parseLimit(text)
		if share < 0 || share > 100 || err != nil && share != 0 {
			t.Errorf("amounts %v, share %d, error %v", amounts, share, err)
		}
		for name, quantity := range amounts {
			if quantity.Sign() < 0 {
				t.Errorf("%s: %s", name, quantity.String())
			}
		}
	})
}
