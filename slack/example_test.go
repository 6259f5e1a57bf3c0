package slack_test

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/slack"
)

func resources(cpu, memory string) v1.ResourceList {
	return v1.ResourceList{v1.ResourceCPU: resource.MustParse(cpu), v1.ResourceMemory: resource.MustParse(memory)}
}

// cluster returns two nodes, the first of them with three pods that request all of it.
func cluster() (nodes []*v1.Node, pods []*v1.Pod) {
	for _, name := range []string{"node-a", "node-b"} {
		allocatable := resources("6", "24Gi")
		allocatable[v1.ResourcePods] = resource.MustParse("110")
		nodes = append(nodes, &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: v1.NodeStatus{Allocatable: allocatable}})
	}
	for i := range 3 {
		pods = append(pods, &v1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprint("web-", i)},
			Spec: v1.PodSpec{NodeName: "node-a", Containers: []v1.Container{{Resources: v1.ResourceRequirements{Requests: resources("2",
				"8Gi")}}}},
		})
	}
	return nodes, pods
}

// An autoscaler calls Loop.Next in each iteration, adds the placeholders without a node to its pending
// pods, and passes the placeholders with their nodes to the next iteration.
func ExampleLoop() {
	policy := &v1alpha1.ResourceSlack{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec:       v1alpha1.ResourceSlackSpec{MinRate: "50%"},
	}
	loop, err := slack.NewLoop(policy, "plimsoll-system")
	if err != nil {
		fmt.Println(err)
		return
	}
	nodes, pods := cluster()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

	placeholders, plan := loop.Next(nodes, pods, nil, now)
	fmt.Printf("target %s CPU, %d placeholders\n", plan.Target.Cpu(), len(placeholders))
	for _, placeholder := range placeholders {
		placeholder.Spec.NodeName = "node-b" // the decision of the autoscaler
	}

	// A pod of 4 CPU starts on node-b. It is the biggest pod now, and node-b has no capacity for another
	// one: the autoscaler finds a node for web-head-0.
	pods = append(pods, &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "batch"},
		Spec: v1.PodSpec{NodeName: "node-b", Containers: []v1.Container{{Resources: v1.ResourceRequirements{Requests: resources("4",
			"16Gi")}}}},
	})
	next, plan := loop.Next(nodes, pods, placeholders, now.Add(10*time.Second))
	fmt.Printf("target %s CPU, %d placeholders\n", plan.Target.Cpu(), len(next))
	for _, placeholder := range next {
		fmt.Printf("%s requests %s CPU, node %q\n", placeholder.Name, placeholder.Spec.Containers[0].Resources.Requests.Cpu(),
			placeholder.Spec.NodeName)
	}
	// Output:
	// target 3 CPU, 2 placeholders
	// target 5 CPU, 2 placeholders
	// web-head-0 requests 4 CPU, node ""
	// web-rate-0 requests 1 CPU, node "node-b"
}

// Compute returns the plan for the current state of a cluster, and Backend.Objects the API objects
// that hold its placeholders.
func ExampleCompute() {
	policy := &v1alpha1.ResourceSlack{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec:       v1alpha1.ResourceSlackSpec{MinRate: "50%"},
	}
	policy.Spec.Default()
	nodes, pods := cluster()
	plan, err := slack.Compute(policy, nodes, pods, nil, time.Now())
	if err != nil {
		fmt.Println(err)
		return
	}
	objects, err := slack.BackendOf(policy).Objects(policy, plan, "plimsoll-system")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, object := range objects {
		fmt.Println(object.GetKind(), object.GetNamespace()+"/"+object.GetName())
	}
	// Output:
	// PodTemplate plimsoll-system/web-head
	// CapacityBuffer plimsoll-system/web-head
	// PodTemplate plimsoll-system/web-rate
	// CapacityBuffer plimsoll-system/web-rate
}
