package fleet

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	"pgregory.net/rapid"

	capacityv1alpha1 "github.com/plimsoll-k8s/plimsoll/api/capacity/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/api/placement/v1beta1"
	"github.com/plimsoll-k8s/plimsoll/internal/fleet/decide"
	"github.com/plimsoll-k8s/plimsoll/internal/fleet/fit"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// capacityOf returns the capacity of a cluster with one node that has cores free, and recent pods of workloads.
func capacityOf(t testing.TB, cluster string, at time.Time, cores int64, recent map[string]int32) *ClusterCapacity {
	t.Helper()
	object := capacityv1alpha1.ClusterCapacity{
		ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: capacityv1alpha1.Name},
		Status: capacityv1alpha1.ClusterCapacityStatus{
			Cluster:    cluster,
			ObservedAt: metav1.NewTime(at),
			Classes:    []capacityv1alpha1.NodeClass{{Labels: map[string]string{"zone": "1"}}},
			Groups: []capacityv1alpha1.NodeGroup{{Nodes: 1, Free: v1.ResourceList{
				v1.ResourceCPU: *resource.NewQuantity(cores, resource.DecimalSI), v1.ResourcePods: resource.MustParse("1000"),
			}}},
		},
	}
	for name, pods := range recent {
		object.Status.Recent = append(object.Status.Recent, capacityv1alpha1.RecentWorkload{Namespace: "ns", Name: name, Pods: pods})
	}
	raw, err := json.Marshal(object)
	must.Succeed(t, err)
	out := &ClusterCapacity{}
	if err := json.Unmarshal(raw, out); err != nil || out.Err != nil {
		t.Fatal(err, out.Err)
	}
	return out
}

// withWorkload returns a placement with a workload of replicas of 1 CPU, which excludes clusters that it does not fit.
func withWorkload(t testing.TB, name string, cpu, replicas int, spec string) *v1beta1.Placement {
	p := newPlacement(t, name, spec)
	p.Annotations = map[string]string{v1beta1.AnnotationWorkload: fmt.Sprintf(`{"requireFit": true, "replicas": %d, "template":
		{"kind": "Deployment", "metadata": {"namespace": "default", "name": %q}, "spec": {"template": {"spec": {"containers":
		[{"name": "c", "resources": {"requests": {"cpu": "%d"}}}]}}}}}`, replicas, name, cpu)}
	return p
}

// add adds a placement with its workload.
func add(s *State, p *v1beta1.Placement) {
	s.SetWorkload(p, nil, nil)
	s.AddPlacement(p, nil)
}

// TestRequireFit checks that a workload that only one cluster fits by shape is decided onto it, and the reasons for the others.
func TestRequireFit(t *testing.T) {
	s := hub("cluster1", "cluster2", "cluster3", "cluster4", "cluster5", "cluster6")
	s.SetCapacity(capacityOf(t, "cluster1", now, 24, nil))
	s.SetCapacity(capacityOf(t, "cluster2", now, 36, nil))
	s.SetCapacity(capacityOf(t, "cluster4", now.Add(-time.Hour), 100, nil))
	s.SetCapacity(capacityOf(t, "cluster5", now.Add(time.Hour), 100, nil))
	s.SetCapacity(&ClusterCapacity{ObjectMeta: metav1.ObjectMeta{Namespace: "cluster6"}, Err: errors.New("too large")})
	add(s, withWorkload(t, "web", 30, 1, "{numberOfClusters: 2}"))
	r, _ := s.Preview(keyOf("web"), now)
	if got := clustersOf(r); got != "cluster2" {
		t.Errorf("selected %s", got)
	}
	reasons := map[string]string{}
	for _, c := range r.Ranking() {
		reasons[c.Name] = c.Reason
	}
	for cluster, want := range map[string]string{
		"cluster1": "0 replicas fit of 1: needs 30 CPU on one node; the largest free node of cluster1 has 24",
		"cluster3": "has no ClusterCapacity", "cluster4": "has a ClusterCapacity that is 60m old: must be at most 15m",
		"cluster5": "has a ClusterCapacity that is 60m in the future: must be at most 2m",
		"cluster6": "has a ClusterCapacity that is not valid: too large",
	} {
		if reasons[cluster] != want {
			t.Errorf("%s: got %q, want %q", cluster, reasons[cluster], want)
		}
	}
	if _, message := reasonOf(t, r); !strings.Contains(message,
		"the workload does not fit 5 clusters (cluster1: 0 replicas fit of 1: needs 30 CPU") {
		t.Errorf("got %s", message)
	}
}

// TestFitPrioritizers checks that the room decides, in proportion to twice the replicas: 4 of 8 fit cluster1, 6 of 8 cluster2, and 20
// cluster3.
func TestFitPrioritizers(t *testing.T) {
	s := hub("cluster1", "cluster2", "cluster3")
	for i, cores := range []int64{4, 6, 20} {
		s.SetCapacity(capacityOf(t, fmt.Sprintf("cluster%d", i+1), now, cores, nil))
	}
	add(s, withWorkload(t, "web", 1, 4, `{numberOfClusters: 1, prioritizerPolicy: {mode: Exact, configurations: [
		{name: FitReplicas}, {name: FitWait}, {name: FitCost}]}}`))
	r, _ := s.Preview(keyOf("web"), now)
	want := map[string]int64{"cluster1": 0, "cluster2": 50, "cluster3": 100}
	for _, c := range r.Ranking() {
		// FitWait and FitCost are 100: all replicas fit now.
		if c.Scores["FitReplicas"].Score != want[c.Name] || c.Scores["FitWait"].Score != 100 || c.Scores["FitCost"].Score != 100 {
			t.Errorf("%s: %+v", c.Name, c.Scores)
		}
	}
	if got := clustersOf(r); got != "cluster3" {
		t.Errorf("selected %s", got)
	}
}

// TestBadWorkloads checks that the decisions are kept, with a condition that names the field.
func TestBadWorkloads(t *testing.T) {
	for text, want := range map[string]string{
		`{"replicas": 1}`: "must have exactly one of template and ref",
		`{"ref": {"kind": "Secret", "name": "a"}}`: "" +
			`ref.kind: Unsupported value: "Secret": supported values: "PodTemplate", "Deployment", "ManifestWork"`,
		`{"ref": {"kind": "Deployment", "name": "../a"}}`: "" +
			`ref.name: Invalid value: "../a": may not contain '/'`,
		`replicas: 2`: "metadata.annotations[plimsoll.dev/workload]: invalid character 'r' looking",
		`{"template": {"spec": {}}}`: "" +
			"metadata.annotations[plimsoll.dev/workload]: template.spec.containers: required",
		`{"template": {"kind": "Job", "spec": {}}}`: "" +
			"metadata.annotations[plimsoll.dev/workload].template: spec.template: required",
		`{"template": {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": -1}}}]}}}`: "" +
			"template.spec.containers[0].resources: found -1 cpu: must be at least 0",
		`{"replicas": "2", "template": {"spec": {"containers": [{}]}}}`: "" +
			`replicas: json: cannot unmarshal string into Go struct field WorkloadSpec.replicas of type int64`,
		`{"template": {"spec": {"containers": [{"resources": {"requests": {"cpu": "1e-2147483647"}}}]}}}`: "" +
			"the exponent must be from -30 to 30",
		`{"replicas": -1, "template": {"spec": {"containers": [{}]}}}`: "" +
			"replicas: Invalid value: -1: must be in [0, 1000000000]",
		`{"requiresFit": true}`:      `unknown field "requiresFit"; did you mean requireFit?`,
		strings.Repeat(" ", 200_000): "found 200000 bytes, at most 100000 are allowed",
	} {
		s := hub("cluster1")
		add(s, newPlacement(t, "web", "{}"))
		decideNow(t, s, "web")
		bad := newPlacement(t, "web", "{}")
		bad.Annotations = map[string]string{v1beta1.AnnotationWorkload: text}
		s.SetWorkload(bad, nil, nil)
		r := decideNow(t, s, "web")
		if !r.KeepDecisions {
			t.Errorf("%.50s: decisions are not kept", text)
		}
		for _, c := range r.Conditions {
			if c.Type == clusterv1beta1.PlacementConditionMisconfigured &&
				(c.Status != metav1.ConditionTrue || !strings.Contains(c.Message, want)) {
				t.Errorf("%.50s: got %s, want %s", text, c.Message, want)
			}
		}
	}
	for _, replicas := range []int{0, fit.MaxReplicas} {
		s := hub("cluster1")
		s.SetCapacity(capacityOf(t, "cluster1", now, 10, nil))
		add(s, withWorkload(t, "web", 1, replicas, "{}"))
		if got := clustersOf(decideNow(t, s, "web")); (got == "cluster1") != (replicas == 0) {
			t.Errorf("%d replicas: selected %q", replicas, got)
		}
	}
}

// simulated is a fleet whose pods of 1 CPU run some time after they were placed.
type simulated struct {
	cores map[string]int64
	// placed are the replicas of each placement by cluster, and running how many of them run.
	placed, running map[string]map[string]int64
	placements      []*v1beta1.Placement
	promises        map[string]map[string]podPromise
	now             time.Time
}

// publish sets the capacity of a cluster as it is.
func (f *simulated) publish(t testing.TB, s *State, cluster string) {
	free, recent := f.cores[cluster], map[string]int32{}
	for name, replicas := range f.running[cluster] {
		free -= replicas
		recent[name] = int32(replicas)
	}
	s.SetCapacity(capacityOf(t, cluster, f.now, free, recent))
}

// left returns the cores of a cluster that no placement has been given.
func (f *simulated) left(cluster string) int64 {
	left := f.cores[cluster]
	for _, replicas := range f.placed[cluster] {
		left -= replicas
	}
	return left
}

// TestPromises checks with a simple model that no room is promised twice, and none is lost: a placement is decided onto a cluster if
// and only if the replicas of all placements so far leave room for it, whenever pods start, summaries arrive, and the controller
// restarts.
func TestPromises(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		f := &simulated{
			cores: map[string]int64{"a": 10, "b": 20}, placed: map[string]map[string]int64{"a": {}, "b": {}},
			running: map[string]map[string]int64{"a": {}, "b": {}}, promises: map[string]map[string]podPromise{}, now: now,
		}
		s := hub("a", "b")
		clusters := []string{"a", "b"}
		for _, c := range clusters {
			f.publish(t, s, c)
		}
		rt.Repeat(map[string]func(*rapid.T){
			"decide": func(rt *rapid.T) {
				name, replicas := fmt.Sprintf("p%d", len(f.placements)), int64(rapid.IntRange(1, 8).Draw(rt, "replicas"))
				p := withWorkload(t, name, 1, int(replicas), "{numberOfClusters: 1}")
				add(s, p)
				r, _ := s.Decide(keyOf(name), f.now)
				f.placements, f.promises[name] = append(f.placements, p), r.Promises
				got, fits := clustersOf(r), f.left("a") >= replicas || f.left("b") >= replicas
				if (got != "") != fits {
					rt.Fatalf("%d replicas: selected %q, a has %d left, b has %d", replicas, got, f.left("a"), f.left("b"))
				}
				if got != "" {
					if f.left(got) < replicas {
						rt.Fatalf("%d replicas are promised in %s, which has %d left", replicas, got, f.left(got))
					}
					f.placed[got][name] = replicas
				}
			},
			"start": func(rt *rapid.T) { // some of the pods of a cluster
				cluster := rapid.SampledFrom(clusters).Draw(rt, "cluster")
				for name, replicas := range f.placed[cluster] {
					f.running[cluster][name] += rapid.Int64Range(0, replicas-f.running[cluster][name]).Draw(rt, "pods")
				}
			},
			"publish": func(rt *rapid.T) {
				f.now = f.now.Add(time.Second)
				f.publish(t, s, rapid.SampledFrom(clusters).Draw(rt, "cluster"))
			},
			"restart": func(*rapid.T) {
				old := s
				s = hub("a", "b")
				for _, p := range f.placements {
					s.SetWorkload(p, nil, nil)
					s.RestorePromises(keyOf(p.Name), f.promises[p.Name])
					var selected []string
					for c := range f.promises[p.Name] {
						selected = append(selected, c)
					}
					s.AddPlacement(p, selected)
				}
				for _, c := range clusters { // the summaries are on the hub
					s.SetCapacity(old.entries[c].capacity)
				}
			},
		})
	})
}

// fitsOf returns the fits of a placement in all clusters, and where its workload does not fit.
func fitsOf(s *State, name string, at time.Time) ([]fit.Fit, []bool) {
	r := &decide.Request{Fleet: s.fleet, Members: decide.Indexes(len(s.fleet)), Number: 2}
	s.workloadDecisionFor(s.placements[keyOf(name)], at.Unix()).addFits(r)
	return r.Fits, r.Unfit
}

// TestKnownFits checks with random changes of all that fits depend on, and of time, that the fits of a state equal the fits of a new state
// with the same objects and promises.
func TestKnownFits(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s, at, placements := hub("a", "b", "c"), now, map[string]*v1beta1.Placement{}
		name := func(rt *rapid.T) string { return rapid.SampledFrom([]string{"p", "q", "r"}).Draw(rt, "placement") }
		cluster := func(rt *rapid.T) string { return rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "cluster") }
		upTo := func(rt *rapid.T, most int) int { return rapid.IntRange(0, most).Draw(rt, "number") }
		rt.Repeat(map[string]func(*rapid.T){
			"workload": func(rt *rapid.T) {
				p := withWorkload(t, name(rt), 1+upTo(rt, 2), upTo(rt, 6), "{numberOfClusters: 2}")
				divide := fmt.Sprintf(`{"divide": %t, `, rapid.Bool().Draw(rt, "divide"))
				p.Annotations[v1beta1.AnnotationWorkload] = strings.Replace(p.Annotations[v1beta1.AnnotationWorkload], "{", divide, 1)
				add(s, p)
				placements[p.Name] = p
			},
			"decide": func(rt *rapid.T) { s.Decide(keyOf(name(rt)), at) },
			"delete": func(rt *rapid.T) {
				deleted := name(rt)
				s.DeletePlacement(keyOf(deleted))
				delete(placements, deleted)
			},
			"capacity": func(rt *rapid.T) {
				recent := map[string]int32{name(rt): int32(upTo(rt, 6))}
				s.SetCapacity(capacityOf(t, cluster(rt), at, int64(upTo(rt, 20)), recent))
			},
			"no capacity": func(rt *rapid.T) { s.DeleteCapacity(cluster(rt)) },
			"limit":       func(rt *rapid.T) { s.SetCluster(limited(cluster(rt), fmt.Sprintf(`{"cpu": "%d"}`, upTo(rt, 9)))) },
			"no limit":    func(rt *rapid.T) { s.SetCluster(managed(cluster(rt), "set=web")) },
			"no cluster":  func(rt *rapid.T) { s.DeleteCluster(cluster(rt)) },
			"time":        func(rt *rapid.T) { at = at.Add(time.Duration(upTo(rt, 400)) * time.Second) },
			"": func(rt *rapid.T) {
				fresh := hub()
				for cluster, e := range s.entries {
					if e.object != nil {
						fresh.SetCluster(e.object)
					}
					if e.capacity != nil {
						fresh.SetCapacity(e.capacity)
					}
					if e.object == nil && e.capacity == nil && len(e.scores) == 0 && len(e.promised) == 0 {
						rt.Fatalf("the entry of %s is empty", cluster)
					}
				}
				for name, p := range placements {
					fresh.SetWorkload(p, nil, nil)
					fresh.RestorePromises(keyOf(name), s.placements[keyOf(name)].workload.promises)
				}
				for name := range placements {
					fits, unfit := fitsOf(s, name, at)
					wantFits, wantUnfit := fitsOf(fresh, name, at)
					if !slices.Equal(fits, wantFits) || !slices.Equal(unfit, wantUnfit) {
						rt.Fatalf("%s: got %+v %v, want %+v %v", name, fits, unfit, wantFits, wantUnfit)
					}
				}
			},
		})
	})
}

// TestPromiseEnds checks that a promise without pods ends after its time, and at once if the clock was set back by more than that.
func TestPromiseEnds(t *testing.T) {
	for _, fromTheFuture := range []bool{false, true} {
		s := hub("a")
		s.SetCapacity(capacityOf(t, "a", now, 10, nil))
		add(s, withWorkload(t, "first", 1, 8, "{}"))
		add(s, withWorkload(t, "second", 1, 8, "{}"))
		if fromTheFuture {
			s.RestorePromises(keyOf("first"), map[string]podPromise{"a": {Replicas: 8, Since: now.Add(time.Hour).Unix()}})
		} else {
			decideNow(t, s, "first")
		}
		if got := clustersOf(decideNow(t, s, "second")); (got == "a") != fromTheFuture {
			t.Errorf("promise from the future %t: selected %q at once", fromTheFuture, got)
		}
		later := now.Add((promiseTime + 1) * time.Second)
		s.SetCapacity(capacityOf(t, "a", later, 10, nil))
		if r, _ := s.Decide(keyOf("second"), later); clustersOf(r) != "a" {
			t.Error("not selected after the promise has ended")
		}
	}
}

// TestPromiseOfSeveralTemplates checks that pods of any template that ran before a promise are not taken for its pods: a replica of web and
// db has 2 CPUs, and 3 replicas leave 4 of 10, although 4 pods of db were bound a while ago.
func TestPromiseOfSeveralTemplates(t *testing.T) {
	s, recent := hub("a"), map[string]int32{"db": 4}
	s.SetCapacity(capacityOf(t, "a", now, 10, recent))
	const deployment = `{"kind": "Deployment", "metadata": {"namespace": "default", "name": %q}, "spec": {"template": {"spec":
		{"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}}}}`
	p := newPlacement(t, "first", "{}")
	p.Annotations = map[string]string{v1beta1.AnnotationWorkload: fmt.Sprintf(`{"replicas": 3, "template": {"kind": "ManifestWork",
		"spec": {"workload": {"manifests": [`+deployment+","+deployment+"]}}}}", "web", "db")}
	add(s, p)
	add(s, withWorkload(t, "second", 1, 5, "{}"))
	if r := decideNow(t, s, "first"); sharesOf(r) != "a:3" {
		t.Fatalf("got %s: %v", sharesOf(r), r.Conditions)
	}
	later := now.Add(time.Second)
	s.SetCapacity(capacityOf(t, "a", later, 10, recent))
	if r, _ := s.Decide(keyOf("second"), later); clustersOf(r) != "" {
		t.Error("the CPUs of db are promised twice")
	}
}

// TestNamesOfTemplates checks by which namespace and name the pods of a template in a placement are known.
func TestNamesOfTemplates(t *testing.T) {
	const containers = `"spec": {"containers": [{"name": "c"}]}`
	for template, want := range map[string]string{
		`{` + containers + `}`:                                                                  "ns/",
		`{"metadata": {"name": "web"}, ` + containers + `}`:                                     "ns/web",
		`{"kind": "Pod", "metadata": {"name": "web"}, ` + containers + `}`:                      "ns/web",
		`{"kind": "Pod", "metadata": {"name": "web", "namespace": "shop"}, ` + containers + `}`: "ns/web",
	} {
		s, p := hub("a"), newPlacement(t, "web", "{}")
		p.Annotations = map[string]string{v1beta1.AnnotationWorkload: `{"template": ` + template + "}"}
		add(s, p)
		if got := s.placements[keyOf("web")].workload.workload.Parts[0].Workload.String(); got != want {
			t.Errorf("%s: got %s, want %s", template, got, want)
		}
	}
}

// TestStays checks that a placement stays on a cluster also if another one has more room now.
func TestStays(t *testing.T) {
	s := hub("a", "b")
	s.SetCapacity(capacityOf(t, "a", now, 4, nil))
	s.SetCapacity(capacityOf(t, "b", now, 2, nil))
	add(s, withWorkload(t, "web", 1, 4, "{numberOfClusters: 1, prioritizerPolicy: {mode: Exact, configurations: [{name: FitReplicas}]}}"))
	decideNow(t, s, "web")
	later := now.Add(time.Minute)
	s.SetCapacity(capacityOf(t, "a", later, 0, map[string]int32{"web": 4}))
	s.SetCapacity(capacityOf(t, "b", later, 20, nil))
	if r, _ := s.Decide(keyOf("web"), later); clustersOf(r) != "a" {
		t.Errorf("moved to %s", clustersOf(r))
	}
}

// TestRunningReplicas checks that replicas with a topology spread constraint fit in addition to the ones that run: 10 of 1 CPU fit the
// only zone of a cluster, and of the 4 that are promised 3 run. With these, at least 7 + 3 fit; 10 - 4 fit further.
func TestRunningReplicas(t *testing.T) {
	s := hub("a")
	s.SetCapacity(capacityOf(t, "a", now, 11, nil))
	p := withWorkload(t, "web", 1, 4, "{}")
	p.Annotations[v1beta1.AnnotationWorkload] = strings.Replace(p.Annotations[v1beta1.AnnotationWorkload], `"spec": {"containers"`,
		`"metadata": {"labels": {"app": "web"}}, "spec": {"topologySpreadConstraints": [{"topologyKey": "zone", "maxSkew": 10,
		"whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": {"app": "web"}}}], "containers"`, 1)
	add(s, p)
	decideNow(t, s, "web")
	later := now.Add(time.Minute)
	s.SetCapacity(capacityOf(t, "a", later, 10, map[string]int32{"web": 3}))
	fits, _ := fitsOf(s, "web", later)
	if fits[0].Now != 7+3 {
		t.Errorf("got %d, want 7 and the 3 that run", fits[0].Now)
	}
	w := s.placements[keyOf("web")].workload.workload
	if fit, limit := s.FitOf(w, "a", later); fit.Now != 6 || !strings.Contains(limit, "3 replicas of the workload run already; pods of") {
		t.Errorf("got %d further ones, limited by %q", fit.Now, limit) // 3 run and one is promised
	}
	later = now.Add(time.Hour) // the pods are no longer recent, but 4 were promised
	s.SetCapacity(capacityOf(t, "a", later, 10, nil))
	if fit, limit := s.FitOf(w, "a", later); fit.Now != 6 {
		t.Errorf("got %d further ones (%s), want 6", fit.Now, limit)
	}
}

// TestWorkloadField checks that the field has the meaning of the annotation, and that only one of them may be set.
func TestWorkloadField(t *testing.T) {
	const spec = `{workload: {replicas: 2, template: {spec: {containers: [{name: c, resources: {requests: {cpu: "3"}}}]}}}}`
	s := hub("a")
	s.SetCapacity(capacityOf(t, "a", now, 10, nil))
	p := newPlacement(t, "web", spec)
	if !s.SetWorkload(p, nil, nil) || s.SetWorkload(newPlacement(t, "web", spec), nil, nil) {
		t.Error("an equal workload is new, or a new one is not")
	}
	s.AddPlacement(p, nil)
	if r := decideNow(t, s, "web"); sharesOf(r) != "a:2" {
		t.Errorf("got %s", sharesOf(r))
	}
	p.Annotations = map[string]string{v1beta1.AnnotationWorkload: `{"replicas": 3}`}
	s.SetWorkload(p, nil, nil)
	r := decideNow(t, s, "web")
	if want := "spec.workload: annotation plimsoll.dev/workload is set, too: only one of them is allowed"; !r.KeepDecisions ||
		r.Conditions[0].Message != want {
		t.Errorf("got %s, want %s", r.Conditions[0].Message, want)
	}
}

// TestUnknownFields checks that a field that a template does not have, which no API server checks, is a warning: without its request, the
// pod would fit anywhere. So is a selector that does not match the template, which an API server refuses only later.
func TestUnknownFields(t *testing.T) {
	s := hub("cluster1")
	s.SetCapacity(capacityOf(t, "cluster1", now, 10, nil))
	for template, want := range map[string]string{
		`{"spec": {"containers": [{"resource": {"requests": {"cpu": "1"}}}]}}`: `unknown field "spec.containers[0].resource"; did you mean resources?`,
		`{"kind": "Deployment", "spec": {"selector": {}, "template": {"spec": {"containers": [{"cpu": 1}]}}}}`: "" +
			`unknown field "spec.containers[0].cpu"`,
		`{"kind": "Deployment", "spec": {"selector": {}, "template": {"spec": {"containers": [{}]}}}}`: "",
		`{"kind": "Deployment", "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {"spec": {"containers": [{}]}}}}`: "" +
			"metadata.labels: must have the labels of the selector, a=b",
		`{"kind": "Deployment", "spec": {"selector": {"matchExpressions": [{"key": "a", "operator": "Has"}]}, "template": {"spec": {"containers": [{}]}}}}`: "" +
			`spec.selector: "Has" is not a valid label selector operator`,
	} {
		p := newPlacement(t, "web", "{}")
		p.Annotations = map[string]string{v1beta1.AnnotationWorkload: `{"template": ` + template + "}"}
		add(s, p)
		if want != "" {
			want = "the template of the workload: " + want
		}
		if got := strings.Join(decideNow(t, s, "web").Warnings, "; "); got != want {
			t.Errorf("%s: got warnings %q, want %q", template, got, want)
		}
	}
}

// TestReferences checks that a workload is read from an object among the objects of a hub, and the error if it is missing.
func TestReferences(t *testing.T) {
	deployment := &unstructured.Unstructured{Object: *read[map[string]any](t, `{apiVersion: apps/v1, kind: Deployment,
		metadata: {namespace: ns, name: web}, spec: {replicas: 4, template: {spec: {containers: [{name: c}]}}}}`)}
	objects := Objects{
		Clusters: []*clusterv1.ManagedCluster{managed("a", "set=web")}, Sets: []*clusterv1beta2.ManagedClusterSet{bySet("web")},
		Bindings:   []*clusterv1beta2.ManagedClusterSetBinding{binding("ns", "web")},
		Placements: []*v1beta1.Placement{newPlacement(t, "web", "{workload: {ref: {kind: Deployment, name: web}}}")},
	}
	r, _ := objects.State().Preview(keyOf("web"), now)
	if want := "spec.workload.ref: there is no Deployment web in namespace ns"; r.Conditions[0].Message != want {
		t.Errorf("got %s, want %s", r.Conditions[0].Message, want)
	}
	objects.Workloads = append(objects.Workloads, deployment)
	if r, _ := objects.State().Preview(keyOf("web"), now); sharesOf(r) != "a:4" {
		t.Errorf("got %s", sharesOf(r))
	}
	s := objects.State()
	changed := deployment.DeepCopy()
	changed.Object["status"] = map[string]any{"replicas": int64(4)}
	if s.SetWorkload(objects.Placements[0], changed, nil) {
		t.Error("the status of the object matters")
	}
}
