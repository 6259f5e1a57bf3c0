package fleet

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/plimsoll-k8s/plimsoll/internal/fleet/expression"
	"github.com/plimsoll-k8s/plimsoll/test/support/measure"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

const (
	benchClusters = 5000
	// fourPrioritizers has four prioritizers: the two listed, and Balance and Steady, which are defaults.
	fourPrioritizers = "numberOfClusters: 10\n" +
		"prioritizerPolicy: {configurations: [{name: ResourceAllocatableCPU}, {name: ResourceAllocatableMemory}]}\n"
)

// benchCluster returns cluster i. Clusters have many sizes and are in three environments
// and ten regions.
func benchCluster(i int) *clusterv1.ManagedCluster {
	object := managed(fmt.Sprintf("cluster-%04d", i),
		fmt.Sprintf("set=web environment=%s region=region-%d vendor=OpenShift", []string{"prod", "stage", "dev"}[i%3], i%10))
	withAmounts(object, fmt.Sprint(4+i*7919%997), fmt.Sprint(16+i*104729%4001, "Gi"))
	object.Status.Version.Kubernetes = fmt.Sprintf("v1.%d.0", 28+i%10)
	object.Status.ClusterClaims = []clusterv1.ManagedClusterClaim{{Name: "platform", Value: []string{"AWS", "GCP"}[i%2]}}
	return object
}

// benchHub returns a State with benchClusters clusters and the given number of placements
// of 10 clusters each. Every tenth placement ranks by resources, all other placements use labels only.
func benchHub(b *testing.B, placements int) *State {
	b.Helper()
	s := hub()
	for i := range benchClusters {
		s.SetCluster(benchCluster(i))
	}
	for i := range placements {
		name, spec := fmt.Sprintf("other-%05d", i), "numberOfClusters: 10\n"
		if i%10 == 0 {
			spec = fourPrioritizers
		}
		if i < 1000 {
			s.SetPlacement(newPlacement(b, name, spec))
			decideNow(b, s, name)
			continue
		}
		// Restoring decisions is much faster than making them.
		var clusters []string
		for n := range 10 {
			clusters = append(clusters, fmt.Sprintf("cluster-%04d", (i*37+n*211)%benchClusters))
		}
		addDecided(s, newPlacement(b, name, spec), 1, clusters...)
	}
	return s
}

// BenchmarkDecide measures one decision over 5,000 clusters with 100 other placements.
// Outcomes of the expression are
// known; BenchmarkNewExpression measures unknown outcomes.
func BenchmarkDecide(b *testing.B) {
	inEnvironments := celPredicate(`managedCluster.metadata.labels["environment"] in ["prod", "stage"]`)
	for _, tc := range []struct {
		name, predicates string
	}{
		{"top10", ""},
		{
			"top10Label",
			"predicates: [{requiredClusterSelector: {labelSelector: " +
				"{matchExpressions: [{key: environment, operator: In, values: [prod, stage]}]}}}]",
		},
		{"top10CELKnown", inEnvironments},
	} {
		b.Run(tc.name, func(b *testing.B) {
			s := benchHub(b, 100)
			s.SetPlacement(newPlacement(b, "p", fourPrioritizers+tc.predicates))
			decideNow(b, s, "p")
			b.ReportAllocs()
			for b.Loop() {
				s.Decide(keyOf("p"), now)
			}
		})
	}
}

// BenchmarkNewExpression measures a placement with an expression that has not been used
// before: it is compiled and evaluated for 5,000 clusters, and the placement is decided.
// cpu-ms is the CPU time, which does not grow with the load of the machine.
func BenchmarkNewExpression(b *testing.B) {
	must.Succeed(b, expression.Prepare())
	for _, tc := range []struct {
		name, text string
	}{
		{"labels", `managedCluster.metadata.labels["environment"] in ["prod", "stage", "%d"]`},
		{"amounts", `quantity(managedCluster.status.allocatable.cpu).isGreaterThan(quantity("1%dm"))`},
		{"claims", `managedCluster.status.clusterClaims.exists(c, c.name == "platform" && c.value != "%d")`},
	} {
		b.Run(tc.name, func(b *testing.B) {
			s := benchHub(b, 100)
			var cpu time.Duration
			i := 0
			for b.Loop() {
				b.StopTimer()
				object := newPlacement(b, "p", fourPrioritizers+celPredicate(fmt.Sprintf(tc.text, i)))
				i++
				object.Generation = int64(i)
				before := measure.CPU()
				b.StartTimer()
				s.SetPlacement(object)
				if r, _ := s.Preview(keyOf("p"), now); r.Selected() != 10 {
					b.Fatalf("%+v", r.Conditions)
				}
				b.StopTimer()
				cpu += measure.CPU() - before
				b.StartTimer()
			}
			b.ReportMetric(float64(cpu.Microseconds())/1000/float64(b.N), "cpu-ms")
		})
	}
}

// BenchmarkOneClusterChanges measures the decisions after a change of one cluster of
// 5,000. Of 1,000 placements, a change of resources affects the 100 placements that rank
// by resources; a change of labels affects all placements.
func BenchmarkOneClusterChanges(b *testing.B) {
	for name, tc := range map[string]struct {
		change func(i int) *clusterv1.ManagedCluster
		reads  fieldMask
	}{
		"amounts": {func(i int) *clusterv1.ManagedCluster {
			return withAmounts(benchCluster(1234), fmt.Sprint(100+i%2), "64Gi")
		}, amountFields},
		"labels": {func(i int) *clusterv1.ManagedCluster {
			object := benchCluster(1234)
			object.Labels["heartbeat"] = fmt.Sprint(i % 2)
			return object
		}, labelFields},
	} {
		b.Run(name, func(b *testing.B) {
			s := benchHub(b, 1000)
			var affected []types.NamespacedName
			var longest time.Duration
			i := 0
			for b.Loop() {
				i++
				began := time.Now()
				affected = s.SetCluster(tc.change(i))
				for _, key := range affected {
					s.Decide(key, now)
				}
				longest = max(longest, time.Since(began))
			}
			unaffected := 0
			for _, key := range affected {
				if s.placements[key].policy.fields&tc.reads == 0 {
					unaffected++
				}
			}
			b.ReportMetric(float64(len(affected)), "affected")
			b.ReportMetric(float64(unaffected), "unaffected-returned")
			b.ReportMetric(float64(longest.Milliseconds()), "longest-ms")
		})
	}
}

// BenchmarkHeartbeat measures a heartbeat of one of 5,000 clusters with 1,000 placements.
func BenchmarkHeartbeat(b *testing.B) {
	s := benchHub(b, 1000)
	object := benchCluster(1234)
	b.ReportAllocs()
	for b.Loop() {
		if affected := s.SetCluster(object); len(affected) > 0 {
			b.Fatal(affected)
		}
	}
}

// BenchmarkMemory measures the memory of a State with 5,000 clusters and 10,000
// placements, including the objects that it stores, and the memory that each placement
// with a CEL expression adds.
func BenchmarkMemory(b *testing.B) {
	const mebibyte = 1 << 20
	used := func() float64 { return float64(measure.Heap()) / mebibyte }
	b.Run("placements10000", func(b *testing.B) {
		for b.Loop() {
			before := used()
			s := benchHub(b, 10_000)
			b.ReportMetric(used()-before, "MiB")
			runtime.KeepAlive(s)
		}
	})
	b.Run("expressions", func(b *testing.B) {
		const placements = 50
		for b.Loop() {
			before := used()
			s := benchHub(b, 0)
			clusters := used()
			for i := range placements + 1 {
				name := fmt.Sprint("cel-", i)
				s.SetPlacement(newPlacement(b, name, celPredicate(`managedCluster.metadata.labels["environment"] == "prod"`)))
				s.Preview(keyOf(name), now)
				if i == 0 {
					b.ReportMetric(clusters-before, "MiB-clusters")
					b.ReportMetric(used()-clusters, "MiB-variables")
					clusters = used()
				}
			}
			b.ReportMetric((used()-clusters)/placements, "MiB/placement")
			runtime.KeepAlive(s)
		}
	})
}
