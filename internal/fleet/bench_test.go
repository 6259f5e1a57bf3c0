package fleet

import (
	"fmt"
	"testing"
	"time"

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

// benchHub returns a State with benchClusters clusters and 100 placements
// of 10 clusters each. Every tenth placement ranks by resources, all other placements use labels only.
func benchHub(b *testing.B) *State {
	b.Helper()
	s := hub()
	for i := range benchClusters {
		s.SetCluster(benchCluster(i))
	}
	for i := range 100 {
		name, spec := fmt.Sprintf("other-%05d", i), "numberOfClusters: 10\n"
		if i%10 == 0 {
			spec = fourPrioritizers
		}
		s.SetPlacement(newPlacement(b, name, spec))
		decideNow(b, s, name)
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
			s := benchHub(b)
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
			s := benchHub(b)
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
