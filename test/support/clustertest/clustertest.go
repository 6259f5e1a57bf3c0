// Package clustertest has amounts, nodes and pods for tests.
package clustertest

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Now is the time of the cluster: its pods were bound an hour before.
var Now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// Amounts returns a resource list from pairs of name and quantity.
func Amounts(pairs ...string) v1.ResourceList {
	list := v1.ResourceList{}
	for i := 0; i+1 < len(pairs); i += 2 {
		list[v1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return list
}

// Addressed returns a node with addresses.
func Addressed(name string, addresses ...string) *v1.Node {
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for _, address := range addresses {
		node.Status.Addresses = append(node.Status.Addresses, v1.NodeAddress{Address: address})
	}
	return node
}

// List returns amounts: cpu in millicores, memory in MiB.
func List(cpu, memory int64) v1.ResourceList {
	return v1.ResourceList{
		v1.ResourceCPU:    *resource.NewMilliQuantity(cpu, resource.DecimalSI),
		v1.ResourceMemory: *resource.NewQuantity(memory<<20, resource.BinarySI),
	}
}

// Node returns a node with amounts for 110 pods.
func Node(name string, cpu, memory int64, labels map[string]string, taints ...v1.Taint) *v1.Node {
	allocatable := List(cpu, memory)
	allocatable[v1.ResourcePods] = resource.MustParse("110")
	all := map[string]string{v1.LabelHostname: name}
	maps.Copy(all, labels)
	return &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: all}, Spec: v1.NodeSpec{Taints: taints},
		Status: v1.NodeStatus{Allocatable: allocatable, Capacity: allocatable},
	}
}

// Pod returns a running pod.
func Pod(name, node string, cpu, memory int64) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
		Status: v1.PodStatus{Conditions: []v1.PodCondition{
			{Type: v1.PodScheduled, Status: v1.ConditionTrue, LastTransitionTime: metav1.NewTime(Now.Add(-time.Hour))},
		}},
		Spec: v1.PodSpec{NodeName: node, Containers: []v1.Container{{
			Name: "c", Resources: v1.ResourceRequirements{Requests: List(cpu, memory)},
		}}},
	}
}

// Random returns a cluster of random nodes, in zones and with a few shapes, with random pods.
func Random(rng *rand.Rand, count int) (nodes []*v1.Node, pods []*v1.Pod) {
	for i := range count {
		pool := rng.IntN(4) // each pool has a shape
		labels := map[string]string{
			v1.LabelTopologyZone: fmt.Sprintf("zone-%d", rng.IntN(3)), "pool": fmt.Sprintf("pool-%d", pool),
			"machine": fmt.Sprintf("m-%d", i),
		}
		var taints []v1.Taint
		if rng.IntN(10) == 0 {
			taints = append(taints, v1.Taint{Key: "dedicated", Value: "gpu", Effect: v1.TaintEffectNoSchedule})
		}
		cores := int64(4 << pool)
		n := Node(fmt.Sprintf("node-%d", i), cores*1000, cores*4096, labels, taints...)
		nodes = append(nodes, n)
		for j := range rng.IntN(20) {
			pods = append(pods, Pod(fmt.Sprintf("p-%d-%d", i, j), n.Name, rng.Int64N(cores*100), rng.Int64N(cores*400)))
		}
	}
	return nodes, pods
}
