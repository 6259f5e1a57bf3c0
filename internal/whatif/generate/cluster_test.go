package generate

import (
	"encoding/json"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// TestWorkloads verifies that the pods of a group belong to the same ReplicaSet or Job, that the ReplicaSet selects
// only them, and that pods without a group have no owner.
func TestWorkloads(t *testing.T) {
	web := &Owner{Name: "web"}
	workloads := []*Owner{web, web, {Name: "task/with+a name", IsJob: true}, nil, {Name: "task/with+another name"}}
	c := NewCluster{Limits: Limits{CPU: 2, Memory: 2}, Seed: 1}
	for i, w := range workloads {
		c.Pods = append(c.Pods, NewPod{Name: string(rune('a' + i)), Duration: recording.Never, Owner: w})
	}
	r := c.Recording()
	hash := r.Pods[0].Object.Labels[appsv1.DefaultDeploymentUniqueLabelKey]
	for i, want := range []resources.Workload{
		{Namespace: "default", Kind: "ReplicaSet", Name: "web"},
		{Namespace: "default", Kind: "ReplicaSet", Name: "web"},
		{Namespace: "default", Kind: "Job", Name: "task/with+a name"},
		{Namespace: "default", Kind: "Pod", Name: "d"},
		{Namespace: "default", Kind: "ReplicaSet", Name: "task/with+another name"},
	} {
		if got := resources.WorkloadOf(r.Pods[i].Object); got != want {
			t.Errorf("pod %d belongs to %+v, want %+v", i, got, want)
		}
	}
	if owner := r.Pods[1].Object.OwnerReferences[0]; owner.Name != "web-"+hash || hash == "" || r.Pods[3].Object.OwnerReferences != nil {
		t.Errorf("owner %+v, hash %q", owner, hash)
	}
	if len(r.Objects) != 2 {
		t.Fatalf("%d objects, want the 2 ReplicaSets", len(r.Objects))
	}
	for i, want := range []string{"a b", "e"} {
		var set appsv1.ReplicaSet
		must.Succeed(t, json.Unmarshal(r.Objects[i].JSON, &set))
		selector, err := metav1.LabelSelectorAsSelector(set.Spec.Selector)
		must.Succeed(t, err)
		var selected []string
		for _, p := range r.Pods {
			if selector.Matches(labels.Set(p.Object.Labels)) && p.Object.Namespace == set.Namespace {
				selected = append(selected, p.Object.Name)
			}
		}
		if got := strings.Join(selected, " "); got != want || selector.Empty() {
			t.Errorf("%s selects %q, want %q", set.Name, got, want)
		}
	}
	if label := r.Pods[4].Object.Labels["app"]; label != "group-2" {
		t.Errorf("label %q of a group whose name is no value of a label", label)
	}
}

// TestClasses verifies that limits are generated, equal to the requests, or absent with the requests, and that the usage of all pods is a
// multiple of the amounts of the cluster to generate.
func TestClasses(t *testing.T) {
	c := NewCluster{Limits: Limits{CPU: 2, Memory: 3}, Tail: 600}
	for i, class := range []v1.PodQOSClass{"", v1.PodQOSGuaranteed, v1.PodQOSBestEffort} {
		c.Pods = append(c.Pods, NewPod{
			Name: string(rune('a' + i)), Duration: recording.Never, Class: class, Requests: resources.Amounts{CPU: 1000, Memory: 1 << 30},
		})
	}
	part, err := c.Recording().Part(0, 0)
	must.Succeed(t, err)
	in := part.Input(recording.Source{})
	for i, want := range []result.Demand{
		{CPURequest: 1000, MemoryRequest: 1 << 30, CPULimit: 2000, MemoryLimit: 3 << 30, Class: v1.PodQOSBurstable},
		{CPURequest: 1000, MemoryRequest: 1 << 30, CPULimit: 1000, MemoryLimit: 1 << 30, Class: v1.PodQOSGuaranteed},
		{Class: v1.PodQOSBestEffort},
	} {
		if p := in.Pods[i]; p.Resources != want || p.BaseCPU != 1000 || p.BaseMemory != 1<<30 {
			t.Errorf("%+v, want %+v", p, want)
		}
	}
	if in.Part != nil || in.End != 600 || !strings.Contains(strings.Join(in.Assumptions, "\n"), "the limits of 1 of 3 pods are") {
		t.Errorf("end %d, assumed %q", in.End, in.Assumptions)
	}
}
