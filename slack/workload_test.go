package slack

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
)

// annotatedMeta returns the metadata of an object with the annotation.
func annotatedMeta(slack string, owners ...metav1.OwnerReference) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: "web", Namespace: "shop", OwnerReferences: owners,
		Annotations: map[string]string{v1alpha1.AnnotationSlack: slack},
	}
}

// newWorkload returns Deployment shop/web of ten pods of (1, 4).
func newWorkload(slack string, changes ...func(*v1.PodSpec)) Workload {
	w := Workload{Kind: "Deployment", Namespace: "shop", Name: "web", Slack: slack, Replicas: 10}
	w.Template.Labels = map[string]string{"app": "web"}
	w.Template.Spec.Containers = []v1.Container{{
		Name: "main", Image: "web:1", Command: []string{"serve"},
		Resources: v1.ResourceRequirements{Requests: list("1", "4Gi")},
	}}
	for _, change := range changes {
		change(&w.Template.Spec)
	}
	return w
}

func TestWorkloadOf(t *testing.T) {
	by := func(kind string) metav1.OwnerReference {
		return metav1.OwnerReference{Kind: kind, Name: "web", Controller: new(true)}
	}
	finished := batchv1.JobStatus{Conditions: []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: v1.ConditionTrue}}}
	for name, tc := range map[string]struct {
		object   runtime.Object
		want     string // empty if not mirrored
		replicas int64
	}{
		"deployment": {
			&appsv1.Deployment{ObjectMeta: annotatedMeta("2"), Spec: appsv1.DeploymentSpec{Replicas: new(int32(7))}},
			"Deployment shop/web", 7,
		},
		"default replicas": {&appsv1.Deployment{ObjectMeta: annotatedMeta("2")}, "Deployment shop/web", 1},
		"scaled to zero": {&appsv1.StatefulSet{
			ObjectMeta: annotatedMeta("2"),
			Spec: appsv1.StatefulSetSpec{Replicas: new(int32(0)), VolumeClaimTemplates: []v1.PersistentVolumeClaim{
				{ObjectMeta: metav1.ObjectMeta{Name: "www"}},
			}},
		}, "StatefulSet shop/web", 0},
		"replica set without owner": {
			&appsv1.ReplicaSet{ObjectMeta: annotatedMeta("2"), Spec: appsv1.ReplicaSetSpec{Replicas: new(int32(3))}},
			"ReplicaSet shop/web", 3,
		},
		"replica set of a rollout":    {&appsv1.ReplicaSet{ObjectMeta: annotatedMeta("2", by("Rollout"))}, "ReplicaSet shop/web", 1},
		"replica set of a deployment": {&appsv1.ReplicaSet{ObjectMeta: annotatedMeta("2", by("Deployment"))}, "", 0},
		"job": {
			&batchv1.Job{ObjectMeta: annotatedMeta("2"), Spec: batchv1.JobSpec{Parallelism: new(int32(4))}},
			"Job shop/web", 4,
		},
		"job of fewer pods": {
			&batchv1.Job{ObjectMeta: annotatedMeta("2"), Spec: batchv1.JobSpec{Parallelism: new(int32(4)), Completions: new(int32(3))}},
			"Job shop/web", 3,
		},
		"suspended job": {&batchv1.Job{ObjectMeta: annotatedMeta("2"), Spec: batchv1.JobSpec{Suspend: new(true)}}, "", 0},
		"finished job":  {&batchv1.Job{ObjectMeta: annotatedMeta("2"), Status: finished}, "", 0},
		"not annotated": {&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web"}}, "", 0},
		"being deleted": {&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
			Annotations: map[string]string{v1alpha1.AnnotationSlack: "2"}, DeletionTimestamp: &metav1.Time{},
		}}, "", 0},
		"another kind": {&appsv1.DaemonSet{ObjectMeta: annotatedMeta("2")}, "", 0},
		"negative replicas": {
			&appsv1.ReplicaSet{ObjectMeta: annotatedMeta("2"), Spec: appsv1.ReplicaSetSpec{Replicas: new(int32(-3))}},
			"ReplicaSet shop/web", 0,
		},
	} {
		w, ok := WorkloadOf(tc.object)
		if volumes := strings.Join(w.VolumeClaimTemplates, " "); (volumes == "www") != (w.Kind == "StatefulSet") {
			t.Errorf("%s: volume claim templates %q", name, volumes)
		}
		if ok != (tc.want != "") || ok && (w.String() != tc.want || w.Replicas != tc.replicas || w.Slack != "2") {
			t.Errorf("%s: %s of %d, %t; want %q of %d", name, w, w.Replicas, ok, tc.want, tc.replicas)
		}
	}
}

func TestPlaceholdersOfAWorkload(t *testing.T) {
	for _, tc := range []struct {
		slack    string
		replicas int64
		want     int64
	}{
		{"0", 10, 0},
		{"2", 10, 2},
		{"2", 0, 2},
		{"9999", 1, 9999},
		{"20%", 10, 2},
		{"20%", 0, 0},
		// 20% of 11 is 2.2; 28% of 25 is exactly 7, which floats would round up to 8.
		{"20%", 11, 3},
		{"28%", 25, 7},
		{"0.5%", 10, 1},
		{"150%", 10, 15},
		{"200%", 10, 20},
	} {
		got, err := Workload{Slack: tc.slack, Replicas: tc.replicas}.Placeholders()
		if err != nil || got != tc.want {
			t.Errorf("%s of %d: %d, %v; want %d", tc.slack, tc.replicas, got, err, tc.want)
		}
	}
	for _, bad := range []string{"", "-1", "two", "1.5", "10000", "NaN", "-5%", "%", "1e3", "20 %", "99999%", "200.0001%", "9999%", "0x2"} {
		if n, err := newWorkload(bad).Placeholders(); err == nil || !strings.Contains(err.Error(),
			"Deployment shop/web: annotation plimsoll.dev/slack: invalid value ") {
			t.Errorf("%q: %d, error %v; want an error that names the workload and the annotation", bad, n, err)
		}
	}
}

func TestGoverningPolicy(t *testing.T) {
	policy := func(name string, selector map[string]string) *v1alpha1.ResourceSlack {
		p := newPolicy("10%", func(s *v1alpha1.ResourceSlackSpec) { s.Pool.NodeSelector = selector })
		p.Name = name
		return p
	}
	policies := []*v1alpha1.ResourceSlack{
		policy("a-batch", map[string]string{"pool": "batch"}),
		policy("b-all", nil),
		policy("c-web", map[string]string{"pool": "web"}),
		policy("d-web-east", map[string]string{"pool": "web", "zone": "east"}),
	}
	withSelector := func(selector map[string]string) Workload {
		return newWorkload("1", func(s *v1.PodSpec) { s.NodeSelector = selector })
	}
	for name, tc := range map[string]struct {
		workload Workload
		want     int
	}{
		"no node selector":      {withSelector(nil), 1},
		"selector of a pool":    {withSelector(map[string]string{"pool": "web"}), 2},
		"narrower selector":     {withSelector(map[string]string{"pool": "web", "zone": "east", "disk": "ssd"}), 3},
		"another zone":          {withSelector(map[string]string{"pool": "web", "zone": "west"}), 2},
		"pool without a policy": {withSelector(map[string]string{"pool": "gpu"}), 1},
	} {
		if got := GoverningPolicy(policies, tc.workload); got != tc.want {
			t.Errorf("%s: policy %d, want %d", name, got, tc.want)
		}
	}
	if got := GoverningPolicy(nil, withSelector(nil)); got != -1 {
		t.Errorf("no policies: %d, want -1", got)
	}
	// A policy that selects the namespace is preferred to one that does not, independent of node selectors.
	none := newPolicy("0", func(s *v1alpha1.ResourceSlackSpec) { s.Mirrors.NamespaceSelector = nil })
	for want, policies := range map[int][]*v1alpha1.ResourceSlack{
		0: {none, none}, 1: {none, policies[1]}, 2: {none, policies[1], policies[2]},
	} {
		if got := GoverningPolicy(policies, withSelector(map[string]string{"pool": "web"})); got != want {
			t.Errorf("%d policies: policy %d, want %d", len(policies), got, want)
		}
	}
}

// TestWorkloadGroupNames checks that group names are unique and valid label values.
func TestWorkloadGroupNames(t *testing.T) {
	seen := map[string]string{}
	for _, kind := range []string{"Deployment", "StatefulSet"} {
		for _, namespace := range []string{"a", "b"} {
			for _, name := range []string{
				"web", "web-2", strings.Repeat("x", 253), strings.Repeat("x", 252), strings.Repeat("x", 39) + ".y",
				"a.b",
			} {
				w := Workload{Kind: kind, Namespace: namespace, Name: name}
				group := w.groupName()
				if other, exists := seen[group]; exists {
					t.Errorf("%s is a group of both %s and %s", group, other, w)
				}
				if len(group) > 63 || strings.Contains(group, ".") {
					t.Errorf("%s has %d characters, or a dot", group, len(group))
				}
				seen[group] = w.String()
			}
		}
	}
}
