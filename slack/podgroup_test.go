package slack

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// coscheduled returns PodGroup ml/train of the coscheduling plugin in YAML, with the annotation.
func coscheduled(minMember string) string {
	return "apiVersion: scheduling.x-k8s.io/v1alpha1\nkind: PodGroup\n" + gangMeta + "spec: {minMember: " + minMember + "}"
}

// scheduled returns PodGroup ml/train of Kubernetes in YAML, with the annotation.
func scheduled(policy string) string {
	return "apiVersion: scheduling.k8s.io/v1beta1\nkind: PodGroup\n" + gangMeta + "spec: {schedulingPolicy: " + policy + "}"
}

// memberOf returns a pod of PodGroup ml/train of the coscheduling plugin.
func memberOf(name, cpu string, changes ...func(*v1.Pod)) *v1.Pod {
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: name, Labels: map[string]string{PodGroupLabel: "train"}}}
	pod.Spec.Containers = []v1.Container{{Name: "main", Resources: v1.ResourceRequirements{Requests: list(cpu, "1Gi")}}}
	for _, change := range changes {
		change(pod)
	}
	return pod
}

// workers returns pods of 2 CPU with an index, as those of an Indexed Job.
func workers(n int, changes ...func(*v1.Pod)) (pods []*v1.Pod) {
	for i := range n {
		pod := memberOf(fmt.Sprint("worker-", i), "2", changes...)
		pod.Labels[batchv1.JobCompletionIndexAnnotation] = fmt.Sprint(i)
		pods = append(pods, pod)
	}
	return pods
}

// isInGroup makes a pod a member of PodGroup ml/train of Kubernetes.
func isInGroup(pod *v1.Pod) {
	pod.Labels = map[string]string{}
	pod.Spec.SchedulingGroup = &v1.PodSchedulingGroup{PodGroupName: new("train")}
}

// finished and deleted are changes of a pod.
func finished(pod *v1.Pod) { pod.Status.Phase = v1.PodSucceeded }
func deleted(pod *v1.Pod)  { pod.DeletionTimestamp = &metav1.Time{Time: noon} }

// controlledBy returns a change that sets the controller of a pod, and further labels.
func controlledBy(kind, name string, labels map[string]string) func(*v1.Pod) {
	return func(pod *v1.Pod) {
		pod.OwnerReferences = []metav1.OwnerReference{{Kind: kind, Name: name, Controller: new(true)}}
		maps.Copy(pod.Labels, labels)
	}
}

// described returns the error of a workload, or PODS x CPU of each shape, sorted.
func described(w Workload) string {
	if _, err := w.Groups(); err != nil {
		return err.Error()
	}
	if err := w.checkShapes(); err != nil {
		return err.Error()
	}
	var shapes []string
	for _, shape := range w.Shapes {
		requests := resources.RequestsOfTemplate(&shape.Template.Spec)
		shapes = append(shapes, fmt.Sprintf("%d x %s", shape.Pods, requests.Cpu()))
	}
	slices.Sort(shapes)
	return strings.Join(shapes, ", ")
}

func TestPodGroups(t *testing.T) {
	annotated := metav1.ObjectMeta{Namespace: "ml", Name: "jobs", Annotations: map[string]string{v1alpha1.AnnotationSlack: "1"}}
	jobPods := workers(2, controlledBy("Job", "jobs", nil))
	for name, tc := range map[string]struct {
		group string
		pods  []*v1.Pod
		// want has PODS x CPU of each shape, "none" for a group that is not mirrored, or the error.
		want string
		// others are further objects.
		others []runtime.Object
	}{
		// 4 pods of 2 CPU with different indexes.
		"equal pods": {group: coscheduled("4"), pods: workers(4), want: "4 x 2"},
		// A leader of 1 CPU and 3 workers of 2.
		"two shapes":            {group: coscheduled("4"), pods: append(workers(3), memberOf("leader", "1")), want: "1 x 1, 3 x 2"},
		"more than the minimum": {group: coscheduled("4"), pods: workers(6), want: "6 x 2"},
		"a pod too few":         {group: coscheduled("4"), pods: workers(3), want: "found 3 pods: must be at least 4, its minMember"},
		"no pods yet":           {group: coscheduled("4"), want: "PodGroup ml/train: found 0 pods: must be at least 4, its minMember"},
		"no pods, no minimum":   {group: coscheduled("0"), want: "PodGroup ml/train: spec: found a group of 0 pods: must be at least 1"},
		"finished or deleted": {
			group: coscheduled("2"), pods: append(workers(2), memberOf("a", "1", finished), memberOf("b", "1", deleted)), want: "2 x 2",
		},
		"one has finished": {
			group: coscheduled("2"), pods: append(workers(1), memberOf("a", "2", finished)),
			want: "found 1 pod: must be at least 2, its minMember",
		},
		"all finished or deleted": {group: coscheduled("2"), pods: append(workers(2, finished), memberOf("a", "1", deleted)), want: "none"},
		"not a number":            {group: coscheduled("many"), pods: workers(4), want: "PodGroup ml/train: "},
		"negative requests": {
			group: coscheduled("1"), pods: []*v1.Pod{memberOf("a", "-1")},
			want: "requests of the pods: found -1 of cpu: must be at least 0",
		},
		"pods of others": {
			group: coscheduled("2"), want: "2 x 2", pods: append(workers(2),
				memberOf("a", "1", func(p *v1.Pod) { p.Namespace = "default" }),
				memberOf("b", "1", func(p *v1.Pod) { p.Labels[PodGroupLabel] = "serve" }),
				memberOf("c", "1", func(p *v1.Pod) { p.Labels = nil }), memberOf("d", "1", isInGroup),
				memberOf("e", "1", func(p *v1.Pod) { p.Labels[PlaceholderLabel] = "web" })),
		},
		"gang of Kubernetes": {group: scheduled("{gang: {minCount: 2}}"), pods: workers(2, isInGroup), want: "2 x 2"},
		"gang with a pod too few": {
			group: scheduled("{gang: {minCount: 3}}"), pods: workers(2, isInGroup), want: "found 2 pods: must be at least 3, its minCount",
		},
		"not a gang": {group: scheduled("{basic: {}}"), pods: workers(1, isInGroup), want: "1 x 2"},
		"another version": {
			group: strings.Replace(scheduled("{basic: {}}"), "v1beta1", "v1alpha3", 1), pods: workers(1, isInGroup), want: "none",
		},
		"a Job without annotation": {group: coscheduled("2"), pods: jobPods, want: "2 x 2"},
		"another kind is annotated": {
			group: coscheduled("2"), pods: jobPods, want: "2 x 2", others: []runtime.Object{&appsv1.Deployment{ObjectMeta: annotated}},
		},
		"an annotated Job": {
			group: coscheduled("2"), pods: jobPods, want: "none", others: []runtime.Object{&batchv1.Job{ObjectMeta: annotated}},
		},
		"an annotated suspended Job": {
			group: coscheduled("2"), pods: jobPods, want: "none",
			others: []runtime.Object{&batchv1.Job{ObjectMeta: annotated, Spec: batchv1.JobSpec{Suspend: new(true)}}},
		},
		"an annotated Deployment": {
			group: coscheduled("2"), want: "none",
			pods:   workers(2, controlledBy("ReplicaSet", "jobs-5f", map[string]string{"pod-template-hash": "5f"})),
			others: []runtime.Object{&appsv1.Deployment{ObjectMeta: annotated}},
		},
		"an annotated JobSet": {
			group: coscheduled("2"), pods: workers(2, controlledBy("Job", "train-0", map[string]string{JobSetLabel: "train"})), want: "none",
			others: []runtime.Object{parse(t, jobs("{replicatedJobs: []}"))},
		},
		"an annotated LeaderWorkerSet": {
			group: coscheduled("2"), want: "none",
			pods:   workers(2, controlledBy("StatefulSet", "train-0", map[string]string{LeaderWorkerSetLabel: "train"})),
			others: []runtime.Object{parse(t, leaders("{}"))},
		},
		"the group of an annotated Job": {
			group: strings.Replace(scheduled("{gang: {minCount: 1}}"), "{name: train,",
				"{name: train, ownerReferences: [{kind: Job, name: jobs, controller: true}],", 1),
			want: "none", others: []runtime.Object{&batchv1.Job{ObjectMeta: annotated}},
		},
	} {
		got := "none"
		for _, w := range WorkloadsOf(append(tc.others, parse(t, tc.group)), MembersOf(tc.pods, nil)) {
			if w.Kind == "PodGroup" {
				got = described(w)
			}
		}
		isPart := strings.HasSuffix(tc.want, ": ") && strings.HasPrefix(got, tc.want) || strings.HasSuffix(got, ": "+tc.want)
		if got != tc.want && !isPart {
			t.Errorf("%s: found %s, want %s", name, got, tc.want)
		}
	}
}

// TestShapesOfPodGroups checks that pods have the same shape unless their placeholders differ, and that the shape has the labels that all
// of its pods have.
func TestShapesOfPodGroups(t *testing.T) {
	apart := func(key string) func(*v1.Pod) {
		return func(p *v1.Pod) {
			p.Spec.Affinity = &v1.Affinity{PodAntiAffinity: &v1.PodAntiAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{{
					TopologyKey: v1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{key: "a"}},
				}},
			}}
		}
	}
	label := func(key, value string) func(*v1.Pod) { return func(p *v1.Pod) { p.Labels[key] = value } }
	for name, tc := range map[string]struct {
		first, second []func(*v1.Pod)
		want          int
	}{
		"node":                   {nil, []func(*v1.Pod){func(p *v1.Pod) { p.Spec.NodeName = "a" }}, 1},
		"image":                  {nil, []func(*v1.Pod){func(p *v1.Pod) { p.Spec.Containers[0].Image = "a" }}, 1},
		"volumes":                {nil, []func(*v1.Pod){func(p *v1.Pod) { p.Spec.Volumes = []v1.Volume{{Name: "data"}} }}, 1},
		"labels":                 {[]func(*v1.Pod){label("role", "a")}, []func(*v1.Pod){label("role", "b")}, 1},
		"labels of the affinity": {[]func(*v1.Pod){apart("role"), label("role", "a")}, []func(*v1.Pod){apart("role"), label("role", "b")}, 2},
		"no label of it":         {[]func(*v1.Pod){apart("role"), label("role", "a")}, []func(*v1.Pod){apart("role")}, 2},
		"labels of other things": {[]func(*v1.Pod){apart("role"), label("x", "a")}, []func(*v1.Pod){apart("role"), label("x", "b")}, 1},
		"affinity":               {nil, []func(*v1.Pod){apart("role")}, 2},
		"node selector":          {nil, []func(*v1.Pod){func(p *v1.Pod) { p.Spec.NodeSelector = map[string]string{"gpu": "true"} }}, 2},
		"tolerations":            {nil, []func(*v1.Pod){func(p *v1.Pod) { p.Spec.Tolerations = []v1.Toleration{{Key: "gpu"}} }}, 2},
		"host ports":             {nil, []func(*v1.Pod){func(p *v1.Pod) { p.Spec.Containers[0].Ports = []v1.ContainerPort{{HostPort: 80}} }}, 2},
		"topology spread": {nil, []func(*v1.Pod){func(p *v1.Pod) {
			p.Spec.TopologySpreadConstraints = []v1.TopologySpreadConstraint{{}}
		}}, 2},
		"priority class": {nil, []func(*v1.Pod){func(p *v1.Pod) { p.Spec.PriorityClassName = "high" }}, 2},
		"limits without requests": {nil, []func(*v1.Pod){func(p *v1.Pod) {
			r := &p.Spec.Containers[0].Resources
			r.Limits, r.Requests = r.Requests, nil
		}}, 1},
	} {
		pods := []*v1.Pod{memberOf("a", "2", tc.first...), memberOf("b", "2", tc.second...)}
		all := WorkloadsOf([]runtime.Object{parse(t, coscheduled("2"))}, MembersOf(pods, nil))
		if len(all) != 1 || len(all[0].Shapes) != tc.want {
			t.Errorf("%s: workloads %+v, want %d shapes", name, all, tc.want)
		}
	}
	w := WorkloadsOf([]runtime.Object{parse(t, coscheduled("2"))}, MembersOf(workers(2, label("app", "a")), nil))[0]
	if diff := cmp.Diff(map[string]string{"app": "a", PodGroupLabel: "train"}, w.Shapes[0].Template.Labels); diff != "" {
		t.Errorf("labels of a shape: -want +got:\n%s", diff)
	}
	// Without the PodGroup's label, which would make placeholder pods members.
	objects := deploymentBackend.objects(newPolicy("0"), mirrorsOf(t, newPolicy("0"), w), "slack")
	if labels := objects[1].(*appsv1.Deployment).Spec.Template.Labels; labels[PodGroupLabel] != "" || labels["app"] != "a" {
		t.Errorf("labels of placeholder pods: %v", labels)
	}
	// PodGroups of both APIs with the same name have different placeholders.
	both := WorkloadsOf([]runtime.Object{parse(t, coscheduled("1")), parse(t, scheduled("{basic: {}}"))},
		MembersOf(append(workers(1), memberOf("a", "2", isInGroup)), nil))
	if len(both) != 2 || both[0].groupName(0) == both[1].groupName(0) {
		t.Errorf("workloads of both APIs: %+v", both)
	}
}

// TestPodGroupsHoldAllOrNone checks after each of random changes of pods that a plan has whole groups of all pods that are neither
// finished nor being deleted, or no placeholders if they are fewer than the minimum; that names, objects and their order depend on the
// present pods only, as after a restart; and that Replace reports each change of the pods that count.
func TestPodGroupsHoldAllOrNone(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		minimum := rapid.IntRange(0, 4).Draw(rt, "minimum")
		objects := []runtime.Object{parse(t, coscheduled(fmt.Sprint(minimum)))}
		policy := newPolicy("0", limits(int32(rapid.IntRange(1, 20).Draw(rt, "per workload")), 100, 100))
		members, current, known := Members{}, map[string]*v1.Pod{}, Members{}
		counted := func() (n int64) {
			for _, pod := range current {
				if isMirrored(pod) {
					n++
				}
			}
			return n
		}
		for range rapid.IntRange(1, 12).Draw(rt, "changes") {
			name, before := fmt.Sprint("p", rapid.IntRange(0, 5).Draw(rt, "pod")), counted()
			old := current[name]
			var pod *v1.Pod
			if rapid.IntRange(0, 4).Draw(rt, "delete") > 0 {
				change := rapid.SampledFrom([]func(*v1.Pod){func(*v1.Pod) {}, func(*v1.Pod) {}, finished, deleted}).Draw(rt, "change")
				pod = memberOf(name, rapid.SampledFrom([]string{"1", "2"}).Draw(rt, "cpu"), change)
				current[name] = pod
			} else {
				delete(current, name)
			}
			changed := members.Replace(old, pod)
			if counted() != before && len(changed) == 0 {
				rt.Fatalf("%s: Replace returns no PodGroup: %d pods count, %d before", name, counted(), before)
			}
			var pods []*v1.Pod
			for _, pod := range current {
				pods = append(pods, pod)
			}
			known = MembersOf(pods, known)
			plan := mirrorsOf(t, policy, WorkloadsOf(objects, members)...)
			again := mirrorsOf(t, policy, WorkloadsOf(objects, known)...)
			first, _ := BackendOf(policy).Objects(policy, plan, "slack")
			second, _ := BackendOf(policy).Objects(policy, again, "slack")
			if diff := cmp.Diff(first, second); diff != "" {
				rt.Fatalf("objects after a restart: -before +after:\n%s", diff)
			}
			want := counted()
			if want < int64(minimum) || want == 0 {
				want = 0
			} else {
				want *= min(2, int64(*policy.Spec.Mirrors.MaxPerWorkload)/want)
			}
			if got := plan.placeholders(); got != want {
				rt.Fatalf("%d placeholders for %d pods of at least %d, want %d", got, counted(), minimum, want)
			}
		}
	})
}
