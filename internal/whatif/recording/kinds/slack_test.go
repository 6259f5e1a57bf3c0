package kinds

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/slack"
)

// TestGangsAreKept checks that a snapshot with pseudonyms has the groups of pods of JobSets and LeaderWorkerSets.
func TestGangsAreKept(t *testing.T) {
	const pod = `{"metadata":{"labels":{"app":"secret"}},"spec":{"containers":[` +
		`{"name":"c","image":"secret","resources":{"requests":{"cpu":"2"}}}]}}`
	const meta = `"metadata":{"name":"secret","namespace":"secret","annotations":{"plimsoll.dev/slack":"1","secret":"secret"}}`
	for text, want := range map[string][]int64{
		`{"apiVersion":"jobset.x-k8s.io/v1alpha2","kind":"JobSet",` + meta + `,"spec":{"replicatedJobs":[` +
			`{"name":"secret-a","template":{"spec":{"template":` + pod + `}}},` +
			`{"name":"secret-b","replicas":2,"template":{"spec":{"parallelism":4,"template":` + pod + `}}}]}}`: {1, 8},
		`{"apiVersion":"leaderworkerset.x-k8s.io/v1","kind":"LeaderWorkerSet",` + meta + `,"spec":{"replicas":2,"leaderWorkerTemplate":` +
			`{"size":3,"leaderTemplate":` + pod + `,"workerTemplate":` + pod + `}}}`: {1, 2},
	} {
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON([]byte(text)); err != nil {
			t.Fatal(err)
		}
		kept, _ := Of(object.GroupVersionKind().Group, object.GetKind()).rule.rule(object.Object, NewRedactor([]byte("k")).p)
		object.Object = kept.(map[string]any)
		raw, err := object.MarshalJSON()
		if err != nil || strings.Contains(string(raw), `secret"`) || strings.Contains(string(raw), "secret-a") {
			t.Errorf("%v, kept %s", err, raw)
		}
		w, ok := slack.WorkloadOf(object)
		var pods []int64
		for i := range w.Shapes {
			pods = append(pods, w.Shapes[i].Pods)
			if cpu := w.Shapes[i].Template.Spec.Containers[0].Resources.Requests.Cpu(); cpu.Value() != 2 {
				t.Errorf("%s: requests %s", w, cpu)
			}
		}
		if groups, err := w.Groups(); !ok || err != nil || groups != 1 || !slices.Equal(pods, want) {
			t.Errorf("%s: %v, %d groups of %v pods, want 1 of %v", w, err, groups, pods, want)
		}
	}
}

// TestPodGroupsAreKept checks that a snapshot with pseudonyms has the pods of PodGroups: a group of two pods of either API.
func TestPodGroupsAreKept(t *testing.T) {
	const meta = `"metadata":{"name":"secret","namespace":"secret","annotations":{"plimsoll.dev/slack":"1"}}`
	for text, in := range map[string]string{
		`{"apiVersion":"scheduling.x-k8s.io/v1alpha1","kind":"PodGroup",` + meta + `,"spec":{"minMember":2}}`: `"metadata":{"name":%q,` +
			`"namespace":"secret","labels":{"scheduling.x-k8s.io/pod-group":"secret","jobset.sigs.k8s.io/jobset-name":"secret",` +
			`"leaderworkerset.sigs.k8s.io/name":"secret"}},"spec":{}`,
		`{"apiVersion":"scheduling.k8s.io/v1beta1","kind":"PodGroup",` + meta + `,"spec":{"schedulingPolicy":{"gang":{"minCount":2}}}}`: `` +
			`"metadata":{"name":%q,"namespace":"secret"},"spec":{"schedulingGroup":{"podGroupName":"secret"}}`,
	} {
		p := NewRedactor([]byte("k")).p
		kept := func(text string, into any) {
			object := &unstructured.Unstructured{}
			if err := object.UnmarshalJSON([]byte(text)); err != nil {
				t.Fatal(err)
			}
			kept, _ := Of(object.GroupVersionKind().Group, object.GetKind()).rule.rule(object.Object, p)
			if raw := fmt.Sprint(kept); strings.Contains(raw, "secret") {
				t.Errorf("kept %s", raw)
			}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(kept.(map[string]any), into); err != nil {
				t.Fatal(err)
			}
		}
		group := map[string]any{}
		kept(text, &group)
		var pods []*v1.Pod
		for _, name := range []string{"secret-a", "secret-b"} {
			pod := &v1.Pod{}
			kept(fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod",`+in+`}`, name), pod)
			pods = append(pods, pod)
		}
		all := slack.WorkloadsOf([]runtime.Object{&unstructured.Unstructured{Object: group}}, slack.MembersOf(pods, nil))
		if len(all) != 1 || len(all[0].Shapes) != 1 || all[0].Shapes[0].Pods != 2 {
			t.Errorf("%s: workloads %+v", text, all)
		} else if groups, err := all[0].Groups(); err != nil || groups != 1 {
			t.Errorf("%s: %d groups, %v", text, groups, err)
		}
		if p.labelValue(slack.JobSetLabel, "a") != p.name("jobset", "a") ||
			p.labelValue(slack.LeaderWorkerSetLabel, "a") != p.name("leaderworkerset", "a") {
			t.Error("labels of pods do not have the pseudonyms of their owners")
		}
	}
}

// TestSlackSpecIsKept checks that a snapshot has all fields of the spec of a ResourceSlack.
func TestSlackSpecIsKept(t *testing.T) {
	spec := v1alpha1.ResourceSlackSpec{
		MinRate: "300%", AllowHighRate: true, Base: v1alpha1.BaseRequested, Granularity: new(int32(7)), CoverBiggestPod: new(true),
		Pool: v1alpha1.Pool{
			NodeSelector: map[string]string{"pool": "web"},
			Tolerations:  []v1.Toleration{{Key: "dedicated", Operator: v1.TolerationOpExists, Effect: v1.TaintEffectNoSchedule}},
			Devices:      []string{"nvidia.com/gpu"},
		},
		MaxPlaceholders: new(int32(50)),
		Mirrors: v1alpha1.Mirrors{
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "web"}},
			MaxPerWorkload:    new(int32(3)), MaxPerNamespace: new(int32(9)),
		},
		Backend: v1alpha1.BackendCapacityBuffer, PriorityClassName: "slack",
		Minimum: &v1alpha1.Amount{CPU: new(resource.MustParse("8")), Memory: new(resource.MustParse("32Gi")), Placeholders: new(int32(2))},
		Maximum: &v1alpha1.Amount{CPU: new(resource.MustParse("80"))},
		Schedules: []v1alpha1.Schedule{{
			Days: "Mon-Fri", From: "07:30", To: "19:00", TimeZone: "Europe/Berlin", MinRate: "20%",
			Minimum: &v1alpha1.Amount{CPU: new(resource.MustParse("16"))},
		}},
		Spread:               &v1alpha1.Spread{TopologyKey: "topology.kubernetes.io/zone", MinPerDomain: new(int32(1))},
		ProvisioningStrategy: "buffer.x-k8s.io/active-capacity",
		Recommend:            &v1alpha1.Recommend{Wait: "p99=5s", BootSeconds: new(int32(90))},
	}
	for i, value := 0, reflect.ValueOf(spec); i < value.NumField(); i++ {
		if value.Field(i).IsZero() {
			t.Errorf("the test does not set %s", value.Type().Field(i).Name)
		}
	}
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&v1alpha1.ResourceSlack{Spec: spec})
	if err != nil {
		t.Fatal(err)
	}
	kept, _ := slackRule.rule(object, nil)
	var got v1alpha1.ResourceSlack
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(kept.(map[string]any), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(spec, got.Spec); diff != "" {
		t.Error(diff)
	}
}
