package fleet

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"

	"github.com/plimsoll-k8s/plimsoll/api/placement/v1beta1"
	"github.com/plimsoll-k8s/plimsoll/internal/fleet/fit"
)

// checkFit checks that a fit is credible: each number includes the one before, and none is out of range.
func checkFit(t *testing.T, got fit.Fit) {
	t.Helper()
	if got.Now < 0 || got.WithSlack < got.Now || got.ScaledUp < got.WithSlack || got.ScaledUp > fit.MaxReplicas ||
		got.Wait < fit.Unknown || got.Cost < fit.Unknown || got.NewNodes < 0 {
		t.Errorf("got %+v", got)
	}
}

// FuzzClusterCapacity decodes ClusterCapacities of any member. A bad object has an error and fits nothing, and any other one has credible
// fits for workloads with all kinds of constraints.
func FuzzClusterCapacity(f *testing.F) {
	for _, status := range []string{
		`{"cluster":"a","observedAt":"2026-11-21T05:44:46Z","nodes":3,"classes":[{"labels":{"topology.kubernetes.io/zone":"z"},
			"variousLabels":["pool"],"taints":[{"key":"gpu","effect":"NoSchedule"}]},{}],"groups":[{"class":0,"nodes":2,"free":{"cpu":"4",
			"memory":"8Gi","pods":"100"}},{"class":1,"nodes":1,"free":{"cpu":"16","memory":"64Gi","pods":"10","example.com/gpu":"8"},
			"slack":{"cpu":"2"}}],"hostPorts":[{"port":80,"protocol":"TCP","nodes":1}],"slack":{"cpu":"2"},
			"scaleUp":[{"pool":"p","source":"Karpenter","class":1,"free":{"cpu":"16","memory":"64Gi","pods":"100"},"maxNodes":4,
			"bootSeconds":60,"pricePerHour":"0.2"}],"quotas":[{"namespace":"shop","left":{"pods":"5"}}],
			"recent":[{"namespace":"shop","name":"web","pods":3}]}`,
		// A member that promises more than any cluster has, or less than nothing.
		`{"cluster":"a","observedAt":"2026-11-21T05:44:46Z","classes":[{}],"groups":[{"class":0,"nodes":100000,"free":{"cpu":"9E","memory":"9E",
			"pods":"9E"},"slack":{"cpu":"9E","memory":"9E","pods":"9E"}},{"class":0,"nodes":100000,"free":{"cpu":"9E","memory":"9E","pods":"9E"}}],
			"scaleUp":[{"pool":"p","class":0,"free":{"cpu":"9E","memory":"9E","pods":"9E"},"maxNodes":100000,"pricePerHour":"1000000"}]}`,
		`{"cluster":"a","observedAt":"2026-11-21T05:44:46Z","classes":[{}],"groups":[{"class":0,"nodes":2048,"free":{"cpu":"9E",
			"pods":"2251799813685248"},"slack":{"pods":"2251799813685248"}}]}`,
		`{"cluster":"a","observedAt":"2026-11-21T05:44:46Z","nodes":-1,"classes":[{}],"groups":[{"class":0,"nodes":1,"free":{"cpu":"4",
			"memory":"8Gi","pods":"9"},"slack":{"cpu":"-9","memory":"-1","pods":"-3"}}],"hostPorts":[{"port":80,"protocol":"TCP","nodes":-9}],
			"quotas":[{"namespace":"default","left":{"cpu":"-1"}}],"recent":[{"namespace":"default","name":"w","pods":-3}]}`,
		`{"cluster":"b","observedAt":"2026-11-21T05:44:46Z"}`, `{"cluster":"a"}`, `{"cluster":"a","observedAt":"yesterday"}`, `[]`,
		`{"cluster":"a","observedAt":"9999-12-31T23:59:59Z","classes":[{}],"groups":[{"class":0,"nodes":1,"free":{"cpu":"1e-2147483647"}}]}`,
		`{"cluster":"a","observedAt":"2026-11-21T05:44:46Z","classes":[{"labels":{"a\u0000":"\u0001"}}]}`,
	} {
		f.Add([]byte(`{"metadata":{"namespace":"a","name":"plimsoll"},"status":` + status + `}`))
	}
	f.Add([]byte(`{"metadata":7}`))
	f.Add([]byte(`{`))
	f.Fuzz(func(t *testing.T, text []byte) {
		object := &ClusterCapacity{}
		if err := json.Unmarshal(text, object); err != nil {
			return
		}
		if (object.Err == nil) == (object.Summary == nil) {
			t.Fatalf("summary %v, error %v", object.Summary, object.Err)
		}
		s := hub("a")
		object.Namespace = "a"
		s.SetCapacity(object)
		for _, template := range workloadSeeds {
			p := newPlacement(t, "p", "{}")
			p.Annotations = map[string]string{
				v1beta1.AnnotationWorkload: `{"requireFit":true,"replicas":1000000000,"template":` + template + `}`,
			}
			add(s, p)
			r := decideNow(t, s, "p")
			if object.Err != nil && clustersOf(r) != "" {
				t.Errorf("selected %s", clustersOf(r))
			}
			w := s.placements[keyOf("p")].workload.workload
			if object.Summary == nil || w == nil {
				continue
			}
			for _, promised := range [][]fit.Part{nil, {{Template: w.Parts[0].Template, Pods: fit.MaxReplicas}}} {
				checkFit(t, w.CountFit(object.Summary, w.Replicas, promised, 3))
				if limit := w.DescribeLimit(object.Summary, promised, 3); limit == "" {
					t.Error("no limit")
				}
			}
		}
	})
}

// workloadSeeds are templates with all constraints that a fit evaluates, and malformed ones.
var workloadSeeds = []string{
	`{"spec":{"containers":[{}]}}`,
	`{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"resources":{"requests":{"cpu":"1","memory":"1Gi","example.com/gpu":"1"}},
		"ports":[{"hostPort":80,"containerPort":80}]}],"tolerations":[{"operator":"Exists"}],"nodeSelector":{"pool":"a"},
		"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[
		{"key":"topology.kubernetes.io/zone","operator":"In","values":["z"]}]}]}},"podAntiAffinity":{
		"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"kubernetes.io/hostname",
		"labelSelector":{"matchLabels":{"app":"web"}}}]}}}}`,
	`{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"resources":{"limits":{"cpu":"1m"}}}],"topologySpreadConstraints":[
		{"maxSkew":1,"topologyKey":"topology.kubernetes.io/zone","whenUnsatisfiable":"DoNotSchedule","minDomains":3,
		"labelSelector":{"matchLabels":{"app":"web"}}},{"maxSkew":-1,"topologyKey":"kubernetes.io/hostname",
		"whenUnsatisfiable":"DoNotSchedule","labelSelector":{"matchLabels":{"app":"web"}}}]}}`,
	`{"kind":"Deployment","metadata":{"namespace":"shop","name":"web"},"spec":{"replicas":3,"template":{"spec":{"containers":[
		{"resources":{"requests":{"cpu":"9E","memory":"9E"}}}]}}}}`,
	`{"kind":"ManifestWork","spec":{"workload":{"manifests":[{"kind":"Pod","spec":{"containers":[{"resources":{"requests":{"cpu":"-1"}}}]}},
		{"kind":"Job","spec":{"parallelism":1000000000,"template":{"spec":{"containers":[{"resources":{"requests":{"cpu":"1m"}}}]}}}},
		{"kind":"StatefulSet","spec":{"replicas":0,"template":{"spec":{"containers":[{}]}}}},{"kind":"Secret"}]}}}`,
	`{"kind":"Deployment"}`, `{"kind":"Pod","spec":7}`, `{"kind":"PodTemplate","template":null}`,
	`{"kind":"ManifestWork","spec":{"workload":{"manifests":[7]}}}`,
	`null`, `7`, `"` + strings.Repeat("a", 100) + `"`,
}

// FuzzWorkload sets workloads of any text. If the text is not valid, the decisions are kept and the condition says so; otherwise, fits and
// decisions are credible.
func FuzzWorkload(f *testing.F) {
	for _, template := range workloadSeeds {
		f.Add(`{"requireFit":true,"template":`+template+`}`, "{}")
		f.Add(`{"ref":{"kind":"Deployment","name":"web"},"replicas":1000000000}`, template)
	}
	f.Add(`{"ref":{"kind":"Secret","name":"web"}}`, "")
	f.Add(`{"replicas":-1,"template":{}}`, "")
	f.Fuzz(func(t *testing.T, text, object string) {
		s := hub("a", "b")
		s.SetCapacity(capacityOf(t, "a", now, 10, map[string]int32{"web": 2}))
		p := newPlacement(t, "p", "{numberOfClusters: 1}")
		add(s, p)
		before := clustersOf(decideNow(t, s, "p"))
		p.Annotations = map[string]string{v1beta1.AnnotationWorkload: text}
		var ref *unstructured.Unstructured
		if content := map[string]any(nil); json.Unmarshal([]byte(object), &content) == nil && content != nil {
			ref = &unstructured.Unstructured{Object: content}
		}
		s.SetWorkload(p, ref, nil)
		r := decideNow(t, s, "p")
		w := s.placements[keyOf("p")].workload
		if w.err != nil {
			misconfigured := false
			for _, c := range r.Conditions {
				misconfigured = misconfigured ||
					c.Type == clusterv1beta1.PlacementConditionMisconfigured && c.Status == metav1.ConditionTrue
			}
			if !r.KeepDecisions || !misconfigured || before != "a" {
				t.Errorf("%v: decisions are kept: %v, misconfigured: %v", w.err, r.KeepDecisions, misconfigured)
			}
			return
		}
		if len(w.workload.Parts) == 0 || w.workload.Replicas < 0 || w.workload.Replicas > fit.MaxReplicas {
			t.Fatalf("got %+v", w.workload)
		}
		checkFit(t, w.workload.CountFit(s.entries["a"].capacity.Summary, 1, nil, 0))
		// The one node of a has room for 1,000 pods.
		if got := w.workload.CountFit(s.entries["a"].capacity.Summary, 1, nil, 0); got.ScaledUp > 1000 {
			t.Errorf("got %+v", got)
		}
		w.workload.DescribeLimit(s.entries["a"].capacity.Summary, nil, 0)
	})
}

// FuzzPromises reads promises of any text: no amount of them gives others more than the capacity, nor takes long.
func FuzzPromises(f *testing.F) {
	for _, text := range []string{
		`{"a": {"replicas": 8, "since": 1795239886}}`, `{"a": {"replicas": 1000000000, "waiting": 999999999, "since": 9223372036854775807}}`,
		`{"a": {"replicas": -1}}`, `{"a": {"replicas": 1, "waiting": 2, "before": -2147483648}}`, `[`, `{"a": null}`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		decision := decisionOf("p", "p-decision-1", "a")
		decision.Annotations = map[string]string{v1beta1.AnnotationReplicas: text}
		objects := &Objects{
			Clusters: []*clusterv1.ManagedCluster{managed("a", "set=web")}, Sets: []*clusterv1beta2.ManagedClusterSet{bySet("web")},
			Bindings:   []*clusterv1beta2.ManagedClusterSetBinding{binding("ns", "web"), binding("other", "web")},
			Placements: []*v1beta1.Placement{withWorkload(t, "p", 1, 1, "{}")}, Decisions: []*clusterv1beta1.PlacementDecision{decision},
			Capacities: []*ClusterCapacity{capacityOf(t, "a", now, 10, map[string]int32{"p": 2})},
		}
		s := objects.State()
		decideNow(t, s, "p")
		w := s.placements[keyOf("p")].workload
		for cluster, promise := range w.promises {
			if promise.Replicas < 0 || promise.Waiting < 0 || promise.Waiting > promise.Replicas {
				t.Errorf("%s: %+v", cluster, promise)
			}
		}
		checkFit(t, w.workload.CountFit(s.entries["a"].capacity.Summary, 1, nil, 0))
		if got, _ := s.FitOf(w.workload, "a", now); got.ScaledUp > 10 {
			t.Errorf("%d replicas fit 10 CPUs", got.ScaledUp)
		}
	})
}
