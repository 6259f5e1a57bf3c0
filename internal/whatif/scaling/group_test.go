package scaling

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// TestModel verifies which node of an input a group adds: neither one that starts or ends, nor a virtual one, nor a dedicated one beside others.
func TestModel(t *testing.T) {
	var nodes []*v1.Node
	add := func(number int, kind, memory string, change func(*v1.Node)) {
		for i := range number {
			amounts := v1.ResourceList{v1.ResourceCPU: resource.MustParse("4"), v1.ResourceMemory: resource.MustParse(memory)}
			if i%2 == 1 { // kubelets reserve a little more or less
				amounts[v1.ResourceMemory] = *resource.NewQuantity(amounts.Memory().Value()-int64(i)*4096, resource.BinarySI)
			}
			amounts[v1.ResourcePods], amounts[v1.ResourceEphemeralStorage] = resource.MustParse("29"), resource.MustParse("80Gi")
			node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(kind, i), Labels: map[string]string{v1.LabelOSStable: "linux"}}}
			if node.Status.Allocatable = amounts; i == 0 && change != nil || number == 2 {
				change(node)
			}
			nodes = append(nodes, node)
		}
	}
	label := func(key, value string) func(*v1.Node) { return func(n *v1.Node) { n.Labels[key] = value } }
	taint := func(key string) func(*v1.Node) {
		return func(n *v1.Node) {
			n.Spec.Taints = []v1.Taint{{Key: key, Effect: v1.TaintEffectNoSchedule, TimeAdded: &metav1.Time{}}}
		}
	}
	for name, tc := range map[string]struct {
		others string // beside six workers, of which the first is changed
		memory string
		change func(*v1.Node)
		want   string
	}{
		"a start of Cilium":      {"", "", taint("node.cilium.io/agent-not-ready"), "worker0"},
		"a start of a driver":    {"", "", taint("ebs.csi.aws.com/agent-not-ready"), "worker0"},
		"uninitialized":          {"", "", taint("node.cloudprovider.kubernetes.io/uninitialized"), "worker0"},
		"removed":                {"", "", taint("ToBeDeletedByClusterAutoscaler"), "worker0"},
		"removed by Karpenter":   {"", "", taint("karpenter.sh/disrupted"), "worker0"},
		"dedicated":              {"", "", taint("gpu"), "worker1"},
		"Windows":                {"", "", label(v1.LabelOSStable, "windows"), "worker1"},
		"another type":           {"", "", label(v1.LabelInstanceTypeStable, "m5"), "worker1"},
		"control plane of k3s":   {"", "", label(resources.ControlPlaneLabel, "true"), "worker0"},
		"two GPU nodes":          {"gpu", "16Gi", taint("nvidia.com/gpu"), "worker0"},
		"two larger nodes":       {"large", "64Gi", func(*v1.Node) {}, "worker0"},
		"two nodes of Fargate":   {"fargate", "16Gi", label("eks.amazonaws.com/compute-type", "fargate"), "worker0"},
		"two virtual kubelets":   {"virtual", "16Gi", label("type", "virtual-kubelet"), "worker0"},
		"six of another, before": {"six", "64Gi", nil, "six0"},
	} {
		nodes = nil
		switch {
		case tc.change == nil:
			add(6, tc.others, tc.memory, nil)
			add(6, "worker", "16Gi", nil)
		case tc.others == "":
			add(6, "worker", "16Gi", tc.change)
		default:
			add(2, tc.others, tc.memory, tc.change)
			add(6, "worker", "16Gi", nil)
		}
		for _, text := range []string{"boot=60", "shape=8x32,boot=60"} {
			spec, err := Parse([]string{text})
			must.Succeed(t, err)
			added, _, err := spec.NewNodes(nodes)
			must.Succeed(t, err)
			storage := added[0].Status.Allocatable[v1.ResourceEphemeralStorage]
			if n := added[0]; n.Name != tc.want || len(n.Spec.Taints) != 0 || n.Status.Allocatable.Pods().Value() != 29 ||
				storage.String() != "80Gi" {
				t.Errorf("%s, %s: like %s with %v and %v, want %s", name, text, n.Name, n.Spec.Taints, n.Status.Allocatable, tc.want)
			}
		}
	}
}

// TestCountsCPUs verifies that nodes cost their CPUs, whatever their memory.
func TestCountsCPUs(t *testing.T) {
	spec := Spec{IsPriced: true, CountsCPUs: true}
	for memory, want := range map[string]float64{"8Gi": 4, "32Gi": 4} {
		node := &v1.Node{
			Status: v1.NodeStatus{Allocatable: v1.ResourceList{"cpu": resource.MustParse("4"), "memory": resource.MustParse(memory)}},
		}
		if got := spec.inputCost([]nodeGroup{{spec: GroupSpec{Cost: 4}, template: node}}, 0, node); got != want {
			t.Errorf("%s: cost %v, want %v", memory, got, want)
		}
	}
}
