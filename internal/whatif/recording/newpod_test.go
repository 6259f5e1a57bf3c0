package recording

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/plimsoll-k8s/plimsoll/internal/manifest"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// TestWorkloads verifies that the pods of a group belong to the same ReplicaSet or Job, that the ReplicaSet selects
// only them, and that pods without a group have no owner.
func TestWorkloads(t *testing.T) {
	web := &Owner{Name: "web"}
	workloads := []*Owner{web, web, {Name: "task/with+a name", IsJob: true}, nil, {Name: "task/with+another name"}}
	var in Input
	for i, w := range workloads {
		p := NewPod(string(rune('a'+i)), resources.Amounts{}, 0, Never)
		p.Owner = w
		in.Pods = append(in.Pods, p)
	}
	in.Complete(Limits{CPU: 2, Memory: 2}, 1)
	hash := in.Pods[0].Object.Labels[appsv1.DefaultDeploymentUniqueLabelKey]
	for i, want := range []resources.Workload{
		{Namespace: "default", Kind: "ReplicaSet", Name: "web"},
		{Namespace: "default", Kind: "ReplicaSet", Name: "web"},
		{Namespace: "default", Kind: "Job", Name: "task/with+a name"},
		{Namespace: "default", Kind: "Pod", Name: "d"},
		{Namespace: "default", Kind: "ReplicaSet", Name: "task/with+another name"},
	} {
		if got := resources.WorkloadOf(in.Pods[i].Object); got != want {
			t.Errorf("pod %d belongs to %+v, want %+v", i, got, want)
		}
	}
	if owner := in.Pods[1].Object.OwnerReferences[0]; owner.Name != "web-"+hash || hash == "" || in.Pods[3].Object.OwnerReferences != nil {
		t.Errorf("owner %+v, hash %q", owner, hash)
	}
	if len(in.References) != 2 {
		t.Fatalf("%d references, want the 2 ReplicaSets", len(in.References))
	}
	for i, want := range []string{"a b", "e"} {
		set := in.References[i].(*appsv1.ReplicaSet)
		selector, err := metav1.LabelSelectorAsSelector(set.Spec.Selector)
		must.Succeed(t, err)
		var selected []string
		for _, p := range in.Pods {
			if selector.Matches(labels.Set(p.Object.Labels)) && p.Object.Namespace == set.Namespace {
				selected = append(selected, p.Object.Name)
			}
		}
		if got := strings.Join(selected, " "); got != want || selector.Empty() {
			t.Errorf("%s selects %q, want %q", set.Name, got, want)
		}
	}
	if label := in.Pods[4].Object.Labels["app"]; label != "group-2" {
		t.Errorf("label %q of a group whose name is no value of a label", label)
	}
}

// TestGroupsOfManifests verifies that the pods of two rollouts of a Deployment are in one group.
func TestGroupsOfManifests(t *testing.T) {
	pod := func(name, owner, hash string) *v1.Pod {
		return &v1.Pod{ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: map[string]string{appsv1.DefaultDeploymentUniqueLabelKey: hash},
			OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: owner, UID: "same", Controller: new(true)}},
		}}
	}
	in := Source{}.FromManifests(
		&manifest.Objects{Pending: []*v1.Pod{pod("a", "web-1", "1"), pod("b", "web-2", "2"), pod("c", "db-1", "1")}},
	)
	if a, b, c := in.Pods[0].Group, in.Pods[1].Group, in.Pods[2].Group; a != b || a == c {
		t.Errorf("groups %d, %d and %d", a, b, c)
	}
}
