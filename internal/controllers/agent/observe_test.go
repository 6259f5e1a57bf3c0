package agent

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/slack"
)

func list(cpu, memory string) v1.ResourceList {
	return v1.ResourceList{v1.ResourceCPU: resource.MustParse(cpu), v1.ResourceMemory: resource.MustParse(memory)}
}

func node(name string, change func(*v1.Node)) *v1.Node {
	n := &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status:     v1.NodeStatus{Capacity: list("4", "16Gi"), Allocatable: list("3", "12Gi")},
	}
	if change != nil {
		change(n)
	}
	return n
}

func pod(name, on string) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: v1.PodSpec{NodeName: on, Containers: []v1.Container{{
			Name: "c", Resources: v1.ResourceRequirements{Requests: list("1", "4Gi"), Limits: list("2", "8Gi")},
		}}},
	}
}

func TestAcceptsPods(t *testing.T) {
	condition := func(status v1.ConditionStatus) func(*v1.Node) {
		return func(n *v1.Node) {
			n.Status.Conditions = []v1.NodeCondition{
				{Type: v1.NodeMemoryPressure, Status: v1.ConditionFalse},
				{Type: v1.NodeReady, Status: status},
			}
		}
	}
	taint := func(effect v1.TaintEffect) func(*v1.Node) {
		return func(n *v1.Node) { n.Spec.Taints = []v1.Taint{{Key: "k", Effect: effect}} }
	}
	for name, tc := range map[string]struct {
		change func(*v1.Node)
		want   bool
	}{
		"no conditions":          {nil, true},
		"ready":                  {condition(v1.ConditionTrue), true},
		"not ready":              {condition(v1.ConditionFalse), false},
		"unknown":                {condition(v1.ConditionUnknown), false},
		"cordoned":               {func(n *v1.Node) { n.Spec.Unschedulable = true }, false},
		"being deleted":          {func(n *v1.Node) { n.DeletionTimestamp = &metav1.Time{} }, false},
		"NoSchedule taint":       {taint(v1.TaintEffectNoSchedule), false},
		"NoExecute taint":        {taint(v1.TaintEffectNoExecute), false},
		"PreferNoSchedule taint": {taint(v1.TaintEffectPreferNoSchedule), true},
	} {
		if got := acceptsPods(stripNode(node("n", tc.change))); got != tc.want {
			t.Errorf("%s: acceptsPods() = %t, want %t", name, got, tc.want)
		}
	}
}

func TestPods(t *testing.T) {
	finished, placeholder, resized := pod("p", "n"), pod("p", "n"), pod("p", "n")
	finished.Status.Phase = v1.PodSucceeded
	placeholder.Labels = map[string]string{slack.PlaceholderLabel: "general"}
	always := v1.ContainerRestartPolicyAlways
	resized.Spec.InitContainers = []v1.Container{{
		Name: "sidecar", RestartPolicy: &always,
		Resources: v1.ResourceRequirements{Requests: list("1", "1Gi")},
	}}
	resized.Spec.Overhead = list("500m", "1Gi")
	resized.Status.ContainerStatuses = []v1.ContainerStatus{{Name: "c", Resources: &v1.ResourceRequirements{Requests: list("2", "4Gi")}}}
	for name, tc := range map[string]struct {
		pod  *v1.Pod
		want podAmounts
	}{
		"finished":    {finished, podAmounts{}},
		"placeholder": {placeholder, podAmounts{}},
		"running": {pod("p", "n"), podAmounts{
			Node: "n", Requests: resources.Amounts{1000, 4 << 30},
			Limits: resources.Amounts{2000, 8 << 30},
		}},
		// requests: resized to 2 cores, sidecar 1, overhead 0.5; limits: the sidecar has none
		"with a sidecar, resized": {resized, podAmounts{
			Node: "n", Requests: resources.Amounts{3500, 6 << 30}, Limits: resources.Amounts{2500, 9 << 30}, Unbounded: [2]bool{true, true},
		}},
	} {
		if got := podOf(stripPod(tc.pod)); got != tc.want {
			t.Errorf("%s: %+v, want %+v", name, got, tc.want)
		}
		if got, want := resources.Requests(stripPod(tc.pod)), resources.Requests(tc.pod); !got.Cpu().Equal(*want.Cpu()) {
			t.Errorf("%s: requests of the stripped pod %v, want %v", name, got, want)
		}
	}
}

func TestResources(t *testing.T) {
	o := newObserver()
	sums := func() string {
		capacity, allocatable := o.resources()
		return fmt.Sprintf("%s %s of %s %s, gpu %s", allocatable.Cpu(), allocatable.Memory(), capacity.Cpu(), capacity.Memory(),
			allocatable.Name("gpu", resource.DecimalSI))
	}
	set, remove := handlerOf(o.setNode), handlerOf(o.deleteNode)
	set(node("b", nil))
	set(node("a", func(n *v1.Node) { n.Status.Allocatable["gpu"] = resource.MustParse("8") }))
	if got := sums(); got != "6 24Gi of 8 32Gi, gpu 8" {
		t.Error(got)
	}
	set(node("b", func(n *v1.Node) { n.Spec.Unschedulable = true }))
	if got := sums(); got != "3 12Gi of 8 32Gi, gpu 8" {
		t.Error(got)
	}
	// A heartbeat changes nothing.
	o.resources()
	set(node("b", func(n *v1.Node) { n.Spec.Unschedulable, n.ResourceVersion = true, "2" }))
	if o.stale {
		t.Error("an unchanged node makes the sums stale")
	}
	remove(toolscache.DeletedFinalStateUnknown{Key: "a", Obj: node("a", nil)})
	if got := sums(); got != "0 0 of 4 16Gi, gpu 0" {
		t.Error(got)
	}
	remove(node("b", nil))
	if got := sums(); got != "0 0 of 0 0, gpu 0" {
		t.Error(got)
	}
}

func TestState(t *testing.T) {
	o := newObserver()
	o.setPod(pod("early", "n")) // before its node is known
	o.setNode(node("n", nil))
	o.setPod(pod("p", "n"))
	o.setPod(pod("p", "n"))
	if got := o.state(nil, nil).Sums[resources.CPU]; got != (Sums{Allocatable: 3000, Free: 1000, Limits: 4000}) {
		t.Errorf("%+v", got)
	}
	o.deletePod(pod("early", "n"))
	o.deletePod(pod("early", "n"))
	if got := o.state(nil, nil).Sums[resources.CPU]; got != (Sums{Allocatable: 3000, Free: 2000, Limits: 2000}) {
		t.Errorf("%+v", got)
	}
	o.deleteNode(node("n", nil))
	if got := o.state(nil, nil); got.LoadKnown || got.Sums[resources.CPU] != (Sums{}) {
		t.Errorf("%+v", got)
	}
}
