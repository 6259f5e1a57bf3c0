package slack

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// parse returns the object in a document.
func parse(t *testing.T, document string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
		t.Fatal(err)
	}
	return object
}

// gangMeta is the metadata of JobSet or LeaderWorkerSet ml/train with the annotation.
const gangMeta = `metadata: {name: train, namespace: ml, annotations: {plimsoll.dev/slack: "2"}}
`

// jobs returns a JobSet with replicated jobs in YAML flow style.
func jobs(spec string) string {
	return "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\n" + gangMeta + "spec: " + spec
}

// leaders returns a LeaderWorkerSet.
func leaders(spec string) string {
	return "apiVersion: leaderworkerset.x-k8s.io/v1\nkind: LeaderWorkerSet\n" + gangMeta + "spec: " + spec
}

// pod returns a pod template of one container with requests of CPU.
func pod(cpu string) string {
	return "{spec: {containers: [{name: main, resources: {requests: {cpu: " + cpu + ", memory: 1Gi}}}]}}"
}

func TestWorkloadOfGangs(t *testing.T) {
	const driver = "{name: driver, template: {spec: {template: "
	for name, tc := range map[string]struct {
		object string
		// want has the replicas and NAME x PODS x CPU of each shape, "none" for objects that are not mirrored, or the error.
		want string
	}{
		// 1 driver, and 2 jobs x 4 pods; one group.
		"JobSet": {
			jobs(`{replicatedJobs: [` + driver + pod("1") + `}}}, {name: workers, replicas: 2, ` +
				`template: {spec: {parallelism: 4, template: ` + pod("2") + `}}}]}`), "1: driver x1 1, workers x8 2",
		},
		// Of 4 pods, 3 run at the same time.
		"JobSet, fewer completions": {
			jobs(`{replicatedJobs: [{name: workers, replicas: 2, template: {spec: {parallelism: 4, completions: 3, template: ` +
				pod("2") + `}}}]}`), "1: workers x6 2",
		},
		"JobSet, suspended": {jobs(`{suspend: true, replicatedJobs: [` + driver + pod("1") + `}}}]}`), "none"},
		"JobSet, completed": {jobs(`{replicatedJobs: []}`) + "\nstatus: {conditions: [{type: Completed, status: 'True'}]}", "none"},
		"JobSet, in progress": {
			jobs(`{replicatedJobs: [`+driver+pod("1")+`}}}]}`) + "\nstatus: {conditions: [{type: Completed, status: 'False'}]}",
			"1: driver x1 1",
		},
		"JobSet, no job of a pod": {
			jobs(`{replicatedJobs: [{name: a, replicas: 0, template: {spec: {template: ` + pod("1") + `}}}]}`),
			"JobSet ml/train: spec: found a group of 0 pods: must be at least 1",
		},
		"JobSet, not a list": {jobs(`{replicatedJobs: many}`), "JobSet ml/train: "},
		"JobSet, bad name": {
			jobs(`{replicatedJobs: [{name: A/b, template: {spec: {template: ` + pod("1") + `}}}]}`),
			`JobSet ml/train: spec.replicatedJobs.name: Invalid value: "A/b": `,
		},
		"JobSet, negative requests": {
			jobs(`{replicatedJobs: [` + driver + pod("-1") + `}}}]}`),
			"JobSet ml/train: driver: requests of the pods: found -1 of cpu: must be at least 0",
		},
		"JobSet of another version": {strings.Replace(jobs(`{}`), "v1alpha2", "v1", 1), "none"},
		"LeaderWorkerSet": {
			leaders(`{replicas: 3, leaderWorkerTemplate: {size: 4, leaderTemplate: ` + pod("1") + `, workerTemplate: ` + pod("2") + `}}`),
			"3: leader x1 1, workers x3 2",
		},
		"LeaderWorkerSet, one template": {leaders(`{leaderWorkerTemplate: {size: 4, workerTemplate: ` + pod("2") + `}}`), "1: workers x4 2"},
		"LeaderWorkerSet, leader only": {
			leaders(`{leaderWorkerTemplate: {leaderTemplate: ` + pod("1") + `, workerTemplate: ` + pod("2") + `}}`), "1: leader x1 1",
		},
		"another kind": {"apiVersion: example.com/v1\nkind: Example\n" + gangMeta, "none"},
	} {
		w, ok := WorkloadOf(parse(t, tc.object))
		var shapes []string
		for _, shape := range w.Shapes {
			requests := resources.RequestsOfTemplate(&shape.Template.Spec)
			shapes = append(shapes, fmt.Sprintf("%s x%d %s", shape.Name, shape.Pods, requests.Cpu()))
		}
		got := fmt.Sprintf("%d: %s", w.Replicas, strings.Join(shapes, ", "))
		if _, err := w.Groups(); err != nil {
			got = err.Error()
		} else if err := w.checkShapes(); err != nil {
			got = err.Error()
		}
		if !ok {
			got = "none"
		}
		if got != tc.want && (!strings.HasSuffix(tc.want, ": ") || !strings.HasPrefix(got, tc.want)) {
			t.Errorf("%s: found %s, want %s", name, got, tc.want)
		}
	}
}

// gang returns a workload whose groups have shapes of some numbers of pods, each of 1 CPU and 1 GiB.
func gang(namespace, name, slack string, replicas int64, pods ...int64) Workload {
	w := Workload{Kind: "JobSet", Namespace: namespace, Name: name, Slack: slack, Replicas: replicas}
	for i, n := range pods {
		shape := Shape{Name: fmt.Sprint("s", i), Pods: n}
		shape.Template.Spec.Containers = []v1.Container{{Name: "main", Resources: v1.ResourceRequirements{Requests: list("1", "1Gi")}}}
		w.Shapes = append(w.Shapes, shape)
	}
	return w
}

// countsOf returns the groups of a plan as NAMESPACE/NAME=COUNT+COUNT.
func countsOf(plan Plan) string {
	var out []string
	for i, group := range plan.Groups {
		if i > 0 && plan.Groups[i-1].Mirror == group.Mirror {
			out[len(out)-1] += fmt.Sprint("+", group.Count)
			continue
		}
		out = append(out, fmt.Sprintf("%s/%s=%d", group.Mirror.Namespace, group.Mirror.Name, group.Count))
	}
	return strings.Join(out, " ")
}

func limits(perWorkload, perNamespace, all int32) func(*v1alpha1.ResourceSlackSpec) {
	return func(s *v1alpha1.ResourceSlackSpec) {
		s.MaxPlaceholders, s.Mirrors.MaxPerWorkload, s.Mirrors.MaxPerNamespace = &all, &perWorkload, &perNamespace
	}
}

// TestGangLimits checks that limits permit whole groups only.
func TestGangLimits(t *testing.T) {
	for name, tc := range map[string]struct {
		limits    func(*v1alpha1.ResourceSlackSpec)
		workloads []Workload
		want      string
		reasons   string
	}{
		// 2 x (1 + 8).
		"enough": {limits(100, 200, 1000), []Workload{gang("a", "x", "2", 1, 1, 8)}, "a/x=2+16", ""},
		// 50% of 3 groups, rounded up, are 2.
		"percentage": {limits(100, 200, 1000), []Workload{gang("a", "x", "50%", 3, 1, 3)}, "a/x=2+6", ""},
		// 100 / 9 = 11 groups, 99 placeholders.
		"per workload": {
			limits(100, 200, 1000),
			[]Workload{gang("a", "x", "20", 1, 1, 8)},
			"a/x=11+88",
			"JobSet a/x requires 20 groups of 9 placeholders, spec.mirrors.maxPerWorkload permits 100",
		},
		"a group is larger than the limit": {
			limits(8, 200, 1000),
			[]Workload{gang("a", "x", "1", 1, 1, 8)},
			"",
			"JobSet a/x requires 1 group of 9 placeholders, spec.mirrors.maxPerWorkload permits 8",
		},
		// x has 9 of 12: y of 9 does not fit, and z of 3 does.
		"per namespace": {
			limits(100, 12, 1000),
			[]Workload{gang("a", "x", "1", 1, 9), gang("a", "y", "1", 1, 9), gang("a", "z", "1", 1, 3)},
			"a/x=9 a/z=3",
			"JobSet a/y requires 1 group of 9 placeholders, spec.mirrors.maxPerNamespace permits 3 more in namespace a",
		},
		// The shares of 10 are 5 and 5, which no group of 8 fits: what they leave goes to the first.
		"all": {
			limits(100, 200, 10),
			[]Workload{gang("a", "x", "1", 1, 8), gang("b", "y", "1", 1, 8)},
			"a/x=8",
			"JobSet b/y requires 1 group of 8 placeholders, maxPlaceholders permits 5 more in namespace b",
		},
		// The shares of 10 are 5 and 5: x leaves 5, which y uses.
		"all, with single pods": {
			limits(100, 200, 10),
			[]Workload{gang("a", "x", "1", 1, 8), workloadIn("b", "y", "10", 1)},
			"b/y=10",
			"JobSet a/x requires 1 group of 8 placeholders, maxPlaceholders permits 5 more in namespace a",
		},
	} {
		plan := mirrorsOf(t, newPolicy("0", tc.limits), tc.workloads...)
		if got := countsOf(plan); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
		if got := strings.Join(plan.MirrorReasons, "; "); got != tc.reasons || plan.MirrorsFeasible != (tc.reasons == "") {
			t.Errorf("%s: feasible %t, reasons %q, want %q", name, plan.MirrorsFeasible, got, tc.reasons)
		}
	}
}

// limited is a second implementation of the limits for whole groups, which adds one group after the other. It returns the number
// of groups by workload, and the number that the limits per workload and namespace permit.
func limited(workloads []Workload, perWorkload, perNamespace, all int64) (groups, permitted map[string]int64) {
	workloads = slices.SortedFunc(slices.Values(workloads), Workload.compare)
	permitted, used := map[string]int64{}, map[string]int64{}
	for _, w := range workloads {
		wanted, _ := w.Groups()
		for own := w.pods(); permitted[w.Name] < wanted && own <= perWorkload && used[w.Namespace]+w.pods() <= perNamespace; own += w.pods() {
			permitted[w.Name]++
			used[w.Namespace] += w.pods()
		}
	}
	groups = map[string]int64{}
	shares, left := fairShares(used, all), all
	add := func(inShare bool) {
		for _, w := range workloads {
			for groups[w.Name] < permitted[w.Name] && w.pods() <= left && (!inShare || w.pods() <= shares[w.Namespace]) {
				groups[w.Name]++
				left -= w.pods()
				shares[w.Namespace] -= w.pods()
			}
		}
	}
	add(true)
	add(false)
	return groups, permitted
}

// TestGangLimitsMatchOracle checks for random workloads and limits that each workload has the number of whole groups of the second
// implementation, that no limit is exceeded, and that no group that
// maxPlaceholders permits is missing.
func TestGangLimitsMatchOracle(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		small := func(name string, least, most int) int64 { return int64(rapid.IntRange(least, most).Draw(rt, name)) }
		perWorkload, perNamespace, all := small("per workload", 1, 20), small("per namespace", 1, 30), small("all", 1, 60)
		var workloads []Workload
		for i := range small("workloads", 0, 6) {
			var pods []int64
			for range small("shapes", 1, 3) {
				pods = append(pods, small("pods", 1, 5))
			}
			namespace := string(rune('a' + small("namespace", 0, 2)))
			workloads = append(workloads, gang(namespace, fmt.Sprint("w", i), fmt.Sprint(small("groups", 0, 6)), 1, pods...))
		}
		plan := mirrorsOf(t, newPolicy("0", limits(int32(perWorkload), int32(perNamespace), int32(all))), workloads...)
		want, permitted := limited(workloads, perWorkload, perNamespace, all)
		got, used := map[string]int64{}, map[string]int64{}
		for _, group := range plan.Groups {
			shape := group.Mirror.Shapes[group.Shape]
			if group.Count%shape.Pods != 0 {
				rt.Fatalf("%s: %d placeholders of %d pods", group.MirrorOf(), group.Count, shape.Pods)
			}
			if groups, seen := got[group.Mirror.Name]; seen && groups != group.Count/shape.Pods {
				rt.Fatalf("%s: %d groups of the shape, %d of another shape", group.MirrorOf(), group.Count/shape.Pods, groups)
			}
			got[group.Mirror.Name] = group.Count / shape.Pods
			used[group.Mirror.Namespace] += group.Count
		}
		for _, w := range workloads {
			if got[w.Name] != want[w.Name] {
				rt.Fatalf("%s has %d groups, want %d", w.Name, got[w.Name], want[w.Name])
			}
			if n := got[w.Name]; n < permitted[w.Name] && plan.placeholders()+w.pods() <= all {
				rt.Fatalf("%s has %d of %d groups: maxPlaceholders permits one more", w.Name, n, permitted[w.Name])
			}
		}
		if plan.placeholders() > all ||
			slices.ContainsFunc([]string{"a", "b", "c"}, func(n string) bool { return used[n] > perNamespace }) {
			rt.Fatalf("%d of %d placeholders, by namespace %v of %d", plan.placeholders(), all, used, perNamespace)
		}
	})
}

// TestPlaceableGangs checks that a group counts only if all of its placeholders fit at the same time.
func TestPlaceableGangs(t *testing.T) {
	sized := func(slack string, leader, worker v1.ResourceList, workers int64) Workload {
		w := gang("a", "x", slack, 1, 1, workers)
		w.Shapes[0].Template.Spec.Containers[0].Resources.Requests = leader
		w.Shapes[1].Template.Spec.Containers[0].Resources.Requests = worker
		return w
	}
	for name, tc := range map[string]struct {
		workloads []Workload
		want      int64
	}{
		// 4 nodes of 4 CPUs.
		"all":                      {[]Workload{gang("a", "x", "2", 1, 1, 7)}, 16},
		"one of two":               {[]Workload{gang("a", "x", "2", 1, 1, 8)}, 9},
		"none: a pod is too large": {[]Workload{sized("1", list("1", "1Gi"), list("5", "1Gi"), 1)}, 0},
		"none: one pod too many":   {[]Workload{gang("a", "x", "1", 1, 1, 16)}, 0},
		// The workers need all CPUs of three nodes, the leader fits the fourth.
		"large pods first": {[]Workload{sized("1", list("1", "1Gi"), list("4", "1Gi"), 3)}, 4},
		// A group that does not fit leaves its capacity to other workloads.
		"the others fit": {[]Workload{gang("a", "x", "1", 1, 17), gang("b", "y", "1", 1, 10), workloadIn("c", "z", "6", 1)}, 16 - 0},
	} {
		tracker, err := NewTracker(newPolicy("0"))
		if err != nil {
			t.Fatal(err)
		}
		for _, node := range nodesOf(4, "n", "4", "16Gi") {
			tracker.SetNode(node, noon)
		}
		tracker.SetWorkloads(tc.workloads)
		plan := tracker.Next(noon)
		if got := tracker.Capacity().Placeable(plan, nil); got != tc.want {
			t.Errorf("%s: %d of %d placeholders fit, want %d", name, got, plan.placeholders(), tc.want)
		}
	}
}

// TestPlaceGroupsAgainstExhaustiveSearch checks that whole groups are placed, never more than fit, and for groups of equal pods the
// highest number.
func TestPlaceGroupsAgainstExhaustiveSearch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		small := func(name string) resources.Amounts {
			return resources.Amounts{CPU: rapid.Int64Range(0, 6).Draw(t, name+" cpu"), Memory: rapid.Int64Range(0, 6).Draw(t, name+" memory")}
		}
		var free []resources.Amounts
		for range rapid.IntRange(0, 3).Draw(t, "nodes") {
			free = append(free, small("free"))
		}
		var group []demand
		pods := int64(0)
		for range rapid.IntRange(1, 2).Draw(t, "shapes") {
			count := rapid.Int64Range(1, 2).Draw(t, "pods")
			group, pods = append(group, demandOf(small("pod"), count)), pods+count
		}
		ledger, most := ledgerWithFree(4, free...), rapid.Int64Range(0, 3).Draw(t, "groups")
		placed := placeAll(ledger.Capacities(true), []demand{{sizeGroup: sizeGroup{Count: most}, Group: group}})
		fit := func(groups int64) bool {
			var all []demand
			for _, d := range group {
				d.Count *= groups
				all = append(all, d)
			}
			return placeExhaustively(ledger.Capacities(true), all) == groups*pods
		}
		if placed%pods != 0 || placed > most*pods || !fit(placed/pods) {
			t.Fatalf("%v on %v: %d placed", group, free, placed)
		}
		if len(group) == 1 && placed < most*pods && fit(placed/pods+1) {
			t.Fatalf("%v on %v: %d placed, one group more fits", group, free, placed)
		}
	})
}

// TestGangCoolDown checks that groups are held whole during a cool-down and after a restart.
func TestGangCoolDown(t *testing.T) {
	next := func(tracker *Tracker, replicas int64, at time.Duration) Plan {
		tracker.SetWorkloads([]Workload{gang("a", "x", "50%", replicas, 1, 3)})
		return tracker.Next(noon.Add(at))
	}
	tracker, err := NewTracker(newPolicy("0"))
	if err != nil {
		t.Fatal(err)
	}
	if got := countsOf(next(tracker, 6, 0)); got != "a/x=3+9" {
		t.Errorf("at first: %s", got)
	}
	held := next(tracker, 2, time.Second)
	if got, want := strings.Join(held.MirrorReasons, "; "), "JobSet a/x requires 1 group of 4 placeholders, 3 are held until "+
		"2026-03-01T12:10:01Z"; countsOf(held) != "a/x=3+9" || got != want {
		t.Errorf("during the cool-down: %s, reasons %q, want %q", countsOf(held), got, want)
	}
	restarted, err := NewTracker(newPolicy("0"))
	if err != nil {
		t.Fatal(err)
	}
	restarted.Resume(held.Groups)
	if diff := cmp.Diff(countsOf(next(restarted, 2, 2*time.Second)), "a/x=3+9"); diff != "" {
		t.Errorf("after a restart: %s", diff)
	}
	if got := countsOf(next(tracker, 2, 20*time.Minute)); got != "a/x=1+3" {
		t.Errorf("after the cool-down: %s", got)
	}
}

// TestGangNames checks that the groups of all shapes of long names have different valid names.
func TestGangNames(t *testing.T) {
	seen := map[string]bool{}
	for _, kind := range []string{"JobSet", "LeaderWorkerSet", "PodGroup"} {
		w := gang("a", strings.Repeat("long.", 10), "1", 1, 1, 1, 1)
		w.Kind = kind
		for i := range w.Shapes {
			name := w.groupName(i)
			if seen[name] || !IsMirrorName(name) || len(validation.IsDNS1123Label(name)) > 0 {
				t.Errorf("%s is not a unique valid name", name)
			}
			seen[name] = true
		}
	}
}

// TestGangPlaceholders checks that the placeholders of each shape have the requests and constraints of its pods, in objects and in
// the loop of an autoscaler.
func TestGangPlaceholders(t *testing.T) {
	w := gang("a", "x", "1", 1, 1, 2)
	w.Shapes[1].Template.Spec.NodeSelector = map[string]string{"accelerator": "true"}
	w.Shapes[1].Template.Spec.Containers[0].Resources.Requests["nvidia.com/gpu"] = list("8", "0")["cpu"]
	policy := newPolicy("0")
	plan := mirrorsOf(t, policy, w)
	templates, buffers := capacityBuffers(policy, plan, "slack")
	if len(buffers) != 2 || len(templates[0].Template.Spec.NodeSelector) > 0 ||
		templates[1].Template.Spec.NodeSelector["accelerator"] == "" {
		t.Fatalf("%d buffers, templates %+v", len(buffers), templates)
	}
	container := templates[1].Template.Spec.Containers[0]
	if limit := container.Resources.Limits["nvidia.com/gpu"]; limit.Value() != 8 || len(container.Resources.Limits) != 1 {
		t.Errorf("limits %v", container.Resources.Limits)
	}
	loop, err := NewLoop(policy, "slack")
	if err != nil {
		t.Fatal(err)
	}
	loop.SetWorkloads([]Workload{w})
	pods, _ := loop.Next(nodesOf(1, "n", "4", "16Gi"), nil, nil, noon)
	var names []string
	for _, pod := range pods {
		names = append(names, pod.Namespace+"/"+pod.Name[:len("x-s0")]+" "+pod.Spec.NodeSelector["accelerator"])
	}
	if diff := cmp.Diff([]string{"a/x-s0 ", "a/x-s1 true", "a/x-s1 true"}, names); diff != "" {
		t.Errorf("placeholders: -want +got:\n%s", diff)
	}
}
