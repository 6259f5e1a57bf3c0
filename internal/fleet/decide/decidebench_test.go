package decide

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/util/intstr"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/plimsoll-k8s/plimsoll/api/placement/v1beta1"
)

// benchFleet returns a request over 5,000 clusters of many sizes in ten regions, with the
// decisions of 100 placements.
func benchFleet() *Request {
	const clusters = 5000
	r := &Request{Members: Indexes(clusters), Number: 10, Now: 1_795_239_886, Counts: make([]int32, clusters)}
	for i := range clusters {
		cpu := int64(4000 + i*7919%997*1000)
		memory := int64(16+i*104729%4001) << 30
		r.Fleet = append(r.Fleet, &Cluster{
			Name: fmt.Sprintf("cluster-%04d", i),
			Labels: map[string]string{
				"environment": []string{"prod", "stage", "dev"}[i%3],
				"region":      fmt.Sprint("region-", i%10),
				"unique":      fmt.Sprint("cluster-", i),
				"vendor":      "OpenShift",
			},
			Claims:      map[string]string{"platform": []string{"AWS", "GCP"}[i%2]},
			Allocatable: Amounts{cpu * 9 / 10, memory * 8 / 10},
			Capacity:    Amounts{cpu, memory},
		})
	}
	for p := range 100 {
		for n := range 10 {
			r.Counts[(p*37+n*211)%clusters]++
		}
	}
	for i := range int32(10) {
		r.Chosen = append(r.Chosen, i*400)
		r.Counts[i*400]++
	}
	r.Prioritizers = []Prioritizer{
		{Kind: v1beta1.Balance, Weight: 1},
		{Kind: v1beta1.Steady, Weight: 1},
		{Kind: v1beta1.ResourceAllocatableCPU, Weight: 1},
		{Kind: v1beta1.ResourceAllocatableMemory, Weight: 1},
	}
	return r
}

func inProd() []Predicate {
	return []Predicate{{Selector: Selector{Labels: selectorOf("environment in (prod,stage)")}}}
}

func BenchmarkDecision(b *testing.B) {
	for _, tc := range []struct {
		name   string
		change func(*Request)
	}{
		{"top10", func(*Request) {}},
		{"top10Label", func(r *Request) { r.Predicates = inProd() }},
		{"top10Taints", func(r *Request) {
			seconds := int64(300)
			r.Tolerations = []clusterv1beta1.Toleration{
				{Key: "unreachable", Operator: clusterv1beta1.TolerationOpExists, TolerationSeconds: &seconds},
			}
			for i := range r.Fleet {
				r.Fleet[i].Taints = []clusterv1.Taint{taintOf("unreachable", "", clusterv1.TaintEffectNoSelect, r.Now-int64(i%400))}
			}
		}},
		{"top10AddOn", func(r *Request) {
			for i := range r.Fleet {
				r.Fleet[i].Scores = usageScore(int32(i%201-100), r.Now+int64(i))
			}
			r.Prioritizers = append(r.Prioritizers, addOn("usage", "cpu", 2))
		}},
		{"all", func(r *Request) { r.Number = All }},
		{"allInGroups", func(r *Request) {
			r.Number, r.GroupSize = All, intstr.FromString("5%")
			r.Groups = []NamedGroup{{"canary", Selector{Labels: selectorOf("region=region-3")}}}
		}},
		{"top100SpreadRegions", func(r *Request) {
			r.Number = 100
			r.Spread = terms{required("region", 1)}
		}},
		// The worst case of spreading: each cluster has a topology value of its own.
		{"allSpreadUnique", func(r *Request) {
			r.Number = All
			r.Spread = terms{required("unique", 1)}
		}},
		{"allButOneSpreadUniqueAndRegion", func(r *Request) {
			r.Number = 4999
			r.Spread = terms{preferred("region", 1), preferred("unique", 1)}
		}},
	} {
		b.Run(tc.name, func(b *testing.B) {
			r := benchFleet()
			tc.change(r)
			b.ReportAllocs()
			for b.Loop() {
				Decide(r)
			}
		})
	}
}
