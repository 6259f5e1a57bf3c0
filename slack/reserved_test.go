package slack

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
)

// TestReservedAmounts checks the total of plans in percent of the requests of the pods (CPU / memory).
func TestReservedAmounts(t *testing.T) {
	clusters := []struct {
		name  string
		nodes []*v1.Node
		pods  []*v1.Pod
	}{{name: "web"}, {name: "batch"}, {name: "mixed"}}
	// 20 x (16, 64), each with ten pods of (1, 4).
	clusters[0].nodes = nodesOf(20, "w", "16", "64Gi")
	clusters[0].pods = podsOf(10, clusters[0].nodes, "web", "1", "4Gi")
	// 30 x (8, 32) with six of (1, 2), and 3 x (64, 256) with five of (8, 40).
	small, large := nodesOf(30, "s", "8", "32Gi"), nodesOf(3, "l", "64", "256Gi")
	clusters[1].nodes = append(small, large...)
	clusters[1].pods = append(podsOf(6, small, "web", "1", "2Gi"), podsOf(5, large, "batch", "8", "40Gi")...)
	// 2 x (4, 32), 2 x (16, 64) and one of (32, 64), with different pods: the biggest
	// has a sixth of all requests.
	narrow, middle, wide := nodesOf(2, "n", "4", "32Gi"), nodesOf(2, "m", "16", "64Gi"), nodesOf(1, "c", "32", "64Gi")
	clusters[2].nodes = append(append(narrow, middle...), wide...)
	clusters[2].pods = append(append(podsOf(2, narrow, "cache", "500m", "12Gi"), podsOf(12, middle, "web", "1", "4Gi")...), podsOf(3, wide,
		"compute", "9", "10Gi")...)

	percent := func(got, of v1.ResourceList) string {
		part := func(a, b float64) float64 { return 100 * a / b }
		return fmt.Sprintf("%.0f / %.0f", part(got.Cpu().AsApproximateFloat64(), of.Cpu().AsApproximateFloat64()),
			part(got.Memory().AsApproximateFloat64(), of.Memory().AsApproximateFloat64()))
	}
	// A policy reserves its rate. The biggest pod of the mixed cluster, which is covered, has 17% of all CPU requests.
	for rate, want := range map[string][]string{
		"5%":   {"5 / 5", "5 / 5", "17 / 7"},
		"10%":  {"10 / 10", "10 / 10", "17 / 10"},
		"20%":  {"20 / 20", "20 / 20", "20 / 20"},
		"50%":  {"50 / 50", "50 / 50", "50 / 50"},
		"100%": {"100 / 100", "100 / 100", "100 / 100"},
		"200%": {"200 / 200", "200 / 200", "200 / 200"},
	} {
		for i, cluster := range clusters {
			policy := newPolicy(rate, func(s *v1alpha1.ResourceSlackSpec) { s.Pool = v1alpha1.Pool{} })
			plan, err := Compute(policy, cluster.nodes, cluster.pods, nil, noon)
			if err != nil || !plan.Feasible {
				t.Fatal(err, plan.Reasons)
			}
			if got := percent(plan.Total, plan.Base); got != want[i] {
				t.Errorf("rate %s, cluster %s: reserved %s, want %s", rate, cluster.name, got, want[i])
			}
		}
	}
}
