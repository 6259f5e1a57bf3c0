package fleet

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/plimsoll-k8s/plimsoll/internal/algo/placement"
)

const (
	benchClusters = 5000
	// fourPrioritizers are the common ones; Balance and Steady are there unasked.
	fourPrioritizers = "numberOfClusters: 10\nprioritizerPolicy: {configurations: [{name: ResourceAllocatableCPU}, {name: ResourceAllocatableMemory}]}\n"
)

// benchCluster is one of 5,000, of many sizes, in three environments and ten
// regions.
func benchCluster(i int) *clusterv1.ManagedCluster {
	object := managed(fmt.Sprintf("cluster-%04d", i), fmt.Sprintf("set=web environment=%s region=region-%d vendor=OpenShift", []string{"prod", "stage", "dev"}[i%3], i%10))
	withAmounts(object, fmt.Sprint(4+i*7919%997), fmt.Sprint(16+i*104729%4001, "Gi"))
	object.Status.Version.Kubernetes = fmt.Sprintf("v1.%d.0", 28+i%10)
	object.Status.ClusterClaims = []clusterv1.ManagedClusterClaim{{Name: "platform", Value: []string{"AWS", "GCP"}[i%2]}}
	return object
}

// benchHub has the clusters, and this many other placements of 10 clusters each.
// Every tenth of these looks at amounts; the others at nothing but labels.
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
		s.SetPlacement(asks(b, name, spec))
		if i < 1000 {
			decide(b, s, name)
			continue
		}
		// Deciding 10,000 is not what is measured.
		var clusters []string
		for n := range 10 {
			clusters = append(clusters, fmt.Sprintf("cluster-%04d", (i*37+n*211)%benchClusters))
		}
		s.Restore(keyOf(name), clusters, 1)
	}
	return s
}

// One decision among 5,000 clusters with 100 other placements. Algorithm is the
// part that the maths takes; the rest is what this package adds. Cold expressions
// are asked of clusters they were not asked of before.
func BenchmarkDecide(b *testing.B) {
	for _, tc := range []struct {
		name, predicates string
		before           func(*State, *placementState)
	}{
		{"top10", "", nil},
		{"top10Label", `predicates: [{requiredClusterSelector: {labelSelector: {matchExpressions: [{key: environment, operator: In, values: [prod, stage]}]}}}]`, nil},
		{"top10CELWarm", `predicates: [{requiredClusterSelector: {celSelector: {celExpressions: ['managedCluster.metadata.labels["environment"] in ["prod", "stage"]']}}}]`, nil},
		{"top10CELCold", `predicates: [{requiredClusterSelector: {celSelector: {celExpressions: ['managedCluster.metadata.labels["environment"] in ["prod", "stage"]']}}}]`, func(_ *State, p *placementState) { clear(p.memos[0]) }},
		{"top10CELFirstEver", `predicates: [{requiredClusterSelector: {celSelector: {celExpressions: ['managedCluster.metadata.labels["environment"] in ["prod", "stage"]']}}}]`, func(s *State, p *placementState) {
			clear(p.memos[0])
			for _, e := range s.entries {
				e.variables = nil
			}
		}},
	} {
		b.Run(tc.name, func(b *testing.B) {
			s := benchHub(b, 100)
			s.SetPlacement(asks(b, "p", fourPrioritizers+tc.predicates))
			decide(b, s, "p")
			p := s.placements[keyOf("p")]
			b.ReportAllocs()
			for b.Loop() {
				if tc.before != nil {
					b.StopTimer()
					tc.before(s, p)
					b.StartTimer()
				}
				s.Decide(keyOf("p"), now)
			}
		})
	}
	b.Run("algorithm", func(b *testing.B) {
		s := benchHub(b, 100)
		s.SetPlacement(asks(b, "p", fourPrioritizers))
		decide(b, s, "p")
		p := s.placements[keyOf("p")]
		request := p.policy.request(s, p, now)
		request.Members = placement.Indexes(benchClusters)
		b.ReportAllocs()
		for b.Loop() {
			placement.Decide(request)
		}
	})
}

// One cluster of 5,000 has other amounts; of 1,000 placements the 100 that look at
// amounts are decided anew. Another label is what all of them look at.
func BenchmarkOneClusterChanges(b *testing.B) {
	for name, tc := range map[string]struct {
		change func(i int) *clusterv1.ManagedCluster
		reads  fieldMask
	}{
		"amounts": {func(i int) *clusterv1.ManagedCluster {
			return withAmounts(benchCluster(1234), fmt.Sprint(100+i%2), "64Gi")
		}, allocatableFields << placement.CPU},
		"labels": {func(i int) *clusterv1.ManagedCluster {
			object := benchCluster(1234)
			object.Labels["beat"] = fmt.Sprint(i % 2)
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

// A heartbeat among 5,000 clusters and 1,000 placements.
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

// What a state of 5,000 clusters and 10,000 placements takes, with the objects it
// keeps; and what each placement with an expression adds to that of the clusters.
func BenchmarkMemory(b *testing.B) {
	const mebibyte = 1 << 20
	used := func() float64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc) / mebibyte
	}
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
				s.SetPlacement(asks(b, name, `predicates: [{requiredClusterSelector: {celSelector: {celExpressions: ['managedCluster.metadata.labels["environment"] == "prod"']}}}]`))
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
