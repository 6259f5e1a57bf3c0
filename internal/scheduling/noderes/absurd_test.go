package noderes

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Quantities whose arithmetic takes hours count as 0.
func TestAbsurdQuantities(t *testing.T) {
	start := time.Now()
	for _, text := range []string{"1e2147483647", "123456789e2147483646", "0e2147483647"} {
		quantity := resource.MustParse(text)
		for _, r := range []Resource{CPU, Memory, NewResource("example.com/gpu")} {
			if got := r.Amount(quantity); got != 0 {
				t.Errorf("%s of %s: %d, want 0", r.Name(), text, got)
			}
		}
		list := v1.ResourceList{v1.ResourceCPU: quantity, v1.ResourceMemory: resource.MustParse("1Gi")}
		container := v1.Container{Resources: v1.ResourceRequirements{Requests: list, Limits: list}}
		good := v1.Container{Resources: v1.ResourceRequirements{Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse("100m")}}}
		pod := NewPod(&v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{container, good, container}}})
		if cpu, memory := pod.Get(CPU).Request, pod.Get(Memory).Request; cpu != 100 || memory != 2<<30 {
			t.Errorf("%s: requests %d millicores and %d bytes, want 100 and 2Gi", text, cpu, memory)
		}
	}
	if took := time.Since(start); took > time.Minute {
		t.Errorf("took %s", took)
	}
}
