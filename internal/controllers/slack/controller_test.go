package slack

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestIsChanged(t *testing.T) {
	node := func(change func(*v1.Node)) *v1.Node {
		n := &v1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"pool": "general", "zone": "x"}},
			Status: v1.NodeStatus{
				Allocatable: v1.ResourceList{"cpu": resource.MustParse("4"), "memory": resource.MustParse("16Gi")},
				Conditions: []v1.NodeCondition{
					{Type: v1.NodeMemoryPressure, Status: v1.ConditionFalse},
					{Type: v1.NodeReady, Status: v1.ConditionTrue, LastHeartbeatTime: metav1.NewTime(time.Unix(1, 0))},
				},
			},
		}
		change(n)
		return n
	}
	for name, tc := range map[string]struct {
		change func(*v1.Node)
		want   bool
	}{
		"no change":     {func(*v1.Node) {}, false},
		"a heartbeat":   {func(n *v1.Node) { n.Status.Conditions[1].LastHeartbeatTime = metav1.NewTime(time.Unix(99, 0)) }, false},
		"images":        {func(n *v1.Node) { n.Status.Images = []v1.ContainerImage{{SizeBytes: 1}} }, false},
		"an annotation": {func(n *v1.Node) { n.Annotations = map[string]string{"a": "b"} }, false},
		"not ready":     {func(n *v1.Node) { n.Status.Conditions[1].Status = v1.ConditionUnknown }, true},
		"cordoned":      {func(n *v1.Node) { n.Spec.Unschedulable = true }, true},
		"a label":       {func(n *v1.Node) { n.Labels["pool"] = "other" }, true},
		"a taint":       {func(n *v1.Node) { n.Spec.Taints = []v1.Taint{{Key: "a", Effect: v1.TaintEffectNoSchedule}} }, true},
		"allocatable":   {func(n *v1.Node) { n.Status.Allocatable["cpu"] = resource.MustParse("3") }, true},
		"deleting":      {func(n *v1.Node) { n.DeletionTimestamp = &metav1.Time{Time: time.Unix(5, 0)} }, true},
	} {
		if got := isChanged(node(func(*v1.Node) {}), node(tc.change)); got != tc.want {
			t.Errorf("%s: isChanged() = %t, want %t", name, got, tc.want)
		}
	}
}

// TestContains checks that an object with additional fields contains the desired object, and that an object
// with missing or different fields does not.
func TestContains(t *testing.T) {
	type m = map[string]any
	desired := m{"spec": m{"replicas": int64(3), "list": []any{m{"name": "a"}, "b"}}}
	for name, tc := range map[string]struct {
		existing any
		want     bool
	}{
		"equal":          {m{"spec": m{"replicas": int64(3), "list": []any{m{"name": "a"}, "b"}}}, true},
		"more fields":    {m{"status": m{}, "spec": m{"x": 1, "replicas": int64(3), "list": []any{m{"name": "a", "y": 2}, "b"}}}, true},
		"other number":   {m{"spec": m{"replicas": int64(4), "list": []any{m{"name": "a"}, "b"}}}, false},
		"missing number": {m{"spec": m{"list": []any{m{"name": "a"}, "b"}}}, false},
		"a longer list":  {m{"spec": m{"replicas": int64(3), "list": []any{m{"name": "a"}, "b", "c"}}}, false},
		"other element":  {m{"spec": m{"replicas": int64(3), "list": []any{m{"name": "z"}, "b"}}}, false},
		"no change":      {nil, false},
	} {
		if got := contains(tc.existing, desired); got != tc.want {
			t.Errorf("%s: contains() = %t, want %t", name, got, tc.want)
		}
	}
}
