package cache

import (
	"math"
	"testing"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"pgregory.net/rapid"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/test/support/clustertest"
)

func TestAllocatable(t *testing.T) {
	node := framework.NewNodeInfo()
	node.SetNode(&v1.Node{Status: v1.NodeStatus{
		Capacity:    amounts("cpu", "8", "memory", "16Gi", "hugepages-2Mi", "1Gi", "nvidia.com/gpu", "1"),
		Allocatable: amounts("cpu", "7500m", "memory", "15Gi", "ephemeral-storage", "10Gi", "hugepages-2Mi", "1Gi", "nvidia.com/gpu", "2"),
	}})
	for name, want := range map[v1.ResourceName]struct{ allocatable, capacity int64 }{
		"cpu":    {7500, 8000},
		"memory": {15 << 30, 16 << 30},
		// the node reports no capacity
		"ephemeral-storage": {10 << 30, 10 << 30},
		hugePages:           {1 << 30, 1 << 30},
		// the node reports less capacity than allocatable
		gpu:                  {2, 2},
		"example.com/dongle": {0, 0},
	} {
		t.Run(string(name), func(t *testing.T) {
			r := resources.NewResource(name)
			if got := Allocatable(r, node); got != want.allocatable {
				t.Errorf("allocatable %d, want %d", got, want.allocatable)
			}
			if got := r.CapacityOf(node.Node()); got != want.capacity {
				t.Errorf("capacity %d, want %d", got, want.capacity)
			}
			if r.Name() != name {
				t.Errorf("name %s", r.Name())
			}
		})
	}
}

func TestNormalize(t *testing.T) {
	for name, tc := range map[string]struct{ raw, want []int64 }{
		"no nodes":  {nil, nil},
		"one node":  {[]int64{42}, []int64{0}},
		"all equal": {[]int64{-7, -7, -7}, []int64{0, 0, 0}},
		// (-40 + 75) x 100 / 63 = 55.5
		"between the lowest and the highest": {[]int64{-12, -75, -40}, []int64{100, 0, 55}},
		"the whole range of int64":           {[]int64{math.MinInt64, 0, math.MaxInt64}, []int64{0, 50, 100}},
		"the ends of the range":              {[]int64{math.MinInt64, math.MinInt64 + 1}, []int64{0, 100}},
	} {
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

// Scaled scores are in range and keep the order of the raw scores.
func TestScaleKeepsOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		raws := rapid.SliceOfN(rapid.Int64(), 2, 20).Draw(t, "raws")
		lowest, highest := raws[0], raws[0]
		for _, raw := range raws {
			lowest, highest = min(lowest, raw), max(highest, raw)
		}
		for i := 1; i < len(raws); i++ {
			a, b := scale(raws[i-1], lowest, highest), scale(raws[i], lowest, highest)
			if a < 0 || a > MaxScore || (raws[i-1] <= raws[i] && a > b) {
				t.Fatalf("raw %d and %d scaled to %d and %d", raws[i-1], raws[i], a, b)
			}
		}
		if lowest != highest && scale(highest, lowest, highest) != MaxScore {
			t.Fatalf("the highest of %v does not get score %d", raws, MaxScore)
		}
	})
}

// amounts returns a resource list from pairs of name and quantity.
var amounts = clustertest.Amounts

// container returns a container with requests and limits.
func container(requests, limits v1.ResourceList) v1.Container {
	return v1.Container{Name: "main", Resources: v1.ResourceRequirements{Requests: requests, Limits: limits}}
}

func containers(c ...v1.Container) []v1.Container { return c }
