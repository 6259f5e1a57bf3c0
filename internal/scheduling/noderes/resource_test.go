package noderes

import (
	"math"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

func TestAmount(t *testing.T) {
	tests := map[string]struct {
		resource v1.ResourceName
		quantity string
		want     int64
	}{
		"cores":               {"cpu", "2", 2000},
		"millicores":          {"cpu", "1500m", 1500},
		"nanocores round up":  {"cpu", "1n", 1},
		"kibibytes":           {"memory", "3Ki", 3072},
		"half a byte":         {"memory", "500m", 1},
		"storage":             {"ephemeral-storage", "1G", 1e9},
		"devices":             {gpu, "4", 4},
		"nothing":             {"cpu", "0", 0},
		"negative cpu":        {"cpu", "-1", 0},
		"negative memory":     {"memory", "-1Gi", 0},
		"negative millicores": {"cpu", "-1m", 0},
		// 9223372036854775 cores are 9223372036854775000 millicores, the largest number that fits
		"largest cpu":   {"cpu", "9223372036854775", 9223372036854775000},
		"one core more": {"cpu", "9223372036854776", math.MaxInt64},
		"9E of cpu":     {"cpu", "9E", math.MaxInt64},
		"8E of memory":  {"memory", "8E", 8e18},
		// 2^63 bytes do not fit; the parser of quantities already saturates
		"8Ei of memory": {"memory", "8Ei", math.MaxInt64},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := NewResource(tc.resource).Amount(resource.MustParse(tc.quantity)); got != tc.want {
				t.Errorf("%s of %s: %d, want %d", tc.quantity, tc.resource, got, tc.want)
			}
		})
	}
}

func TestAllocatableAndCapacity(t *testing.T) {
	node := framework.NewNodeInfo()
	node.SetNode(&v1.Node{Status: v1.NodeStatus{
		Capacity:    amounts("cpu", "8", "memory", "16Gi", "hugepages-2Mi", "1Gi", "nvidia.com/gpu", "1"),
		Allocatable: amounts("cpu", "7500m", "memory", "15Gi", "ephemeral-storage", "10Gi", "hugepages-2Mi", "1Gi", "nvidia.com/gpu", "2"),
	}})
	tests := map[v1.ResourceName]struct{ allocatable, capacity int64 }{
		"cpu":    {7500, 8000},
		"memory": {15 << 30, 16 << 30},
		// the node reports no capacity
		"ephemeral-storage": {10 << 30, 10 << 30},
		hugePages:           {1 << 30, 1 << 30},
		// the node reports less capacity than allocatable
		gpu:                  {2, 2},
		"example.com/dongle": {0, 0},
	}
	for name, want := range tests {
		t.Run(string(name), func(t *testing.T) {
			r := NewResource(name)
			if got := r.Allocatable(node); got != want.allocatable {
				t.Errorf("allocatable %d, want %d", got, want.allocatable)
			}
			if got := r.Capacity(node); got != want.capacity {
				t.Errorf("capacity %d, want %d", got, want.capacity)
			}
			if r.Name() != name {
				t.Errorf("name %s", r.Name())
			}
		})
	}
}

func TestNormalize(t *testing.T) {
	tests := map[string]struct{ raw, want []int64 }{
		"no nodes":  {nil, nil},
		"one node":  {[]int64{42}, []int64{0}},
		"all equal": {[]int64{-7, -7, -7}, []int64{0, 0, 0}},
		// (-40 + 75) x 100 / 63 = 55.5
		"between the lowest and the highest": {[]int64{-12, -75, -40}, []int64{100, 0, 55}},
		"the whole range of int64":           {[]int64{math.MinInt64, 0, math.MaxInt64}, []int64{0, 50, 100}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			scores := fwk.NodeScoreList{}
			for _, raw := range tc.raw {
				scores = append(scores, fwk.NodeScore{Score: raw})
			}
			Normalize(scores)
			for i, want := range tc.want {
				if scores[i].Score != want {
					t.Errorf("raw %v: score %d of node %d, want %d", tc.raw, scores[i].Score, i, want)
				}
			}
		})
	}
}
