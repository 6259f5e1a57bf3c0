package trace

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// TestChurn checks that the requests of concurrent pods have the expected fill at any time after the cluster has filled, that the pods are like those of
// the trace, and that a seed gives the same pods.
func TestChurn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := &Cluster{Nodes: []Node{{Name: "n", Capacity: Amounts{CPU: 2_000_000, Memory: 2_000_000, GPU: 2_000_000}}}}
		requests := map[Amounts]string{}
		for i := range rapid.IntRange(1, 20).Draw(t, "kinds") {
			request := Amounts{
				CPU: rapid.Int64Range(500, 1000).Draw(t, "cpu"), Memory: rapid.Int64Range(500, 1000).Draw(t, "memory"),
				GPU: rapid.Int64Range(0, 1000).Draw(t, "gpu"),
			}
			group, start := fmt.Sprint("g", i), rapid.Int64Range(0, 1000).Draw(t, "start")
			requests[request] = group
			c.Pods = append(c.Pods, Pod{
				Name: fmt.Sprint("p", i), Group: group, Request: request, Arrival: start, Start: start,
				End: start + rapid.Int64Range(2000, 6000).Draw(t, "runs"),
			})
		}
		fill, seed := rapid.Float64Range(0.3, 1).Draw(t, "fill"), rapid.Uint64().Draw(t, "seed")
		got, err := c.Churn(fill, 4000, seed)
		if err != nil {
			t.Fatal(err)
		}
		if same, _ := c.Churn(fill, 4000, seed); !cmp.Equal(got.Pods[:100], same.Pods[:100]) {
			t.Fatal("the same seed gives other pods")
		}
		for _, second := range []int64{0, 1500, 3999} {
			var sums [3]float64
			for _, p := range got.Pods {
				if at := FillTime + second; p.Arrival <= at && at < p.End {
					addAmounts(&sums, p.Request, 1.0/2_000_000)
				}
			}
			// At least 600 pods: a deviation of at most 4 %, with that of the requests 4.5 %.
			if highest := max(sums[0], sums[1], sums[2]); math.Abs(highest/fill-1) > 0.25 {
				t.Fatalf("second %d: fill %v, want %v", second, highest, fill)
			}
		}
		names := map[string]bool{}
		for _, p := range got.Pods {
			if requests[p.Request] == "" || p.End <= p.Start || p.Start != p.Arrival || names[p.Name] {
				t.Fatalf("%+v", p)
			}
			names[p.Name] = true
		}
	})
}

// TestChurnRunTimes has pods of 100 s and of 900 s in equal numbers: nine of ten that run at an instant are of the
// second kind. One that does not end runs until the last event, at 1900 s, also 900 s.
func TestChurnRunTimes(t *testing.T) {
	c := &Cluster{
		Nodes: []Node{{Name: "n", Capacity: Amounts{CPU: 10_000_000}}},
		Pods: []Pod{
			{Name: "short", Request: Amounts{CPU: 1000}, Arrival: 1800, Start: 1800, End: 1900},
			{Name: "long", Request: Amounts{CPU: 1000}, Arrival: 1000, Start: 1000, End: Never},
		},
	}
	got, err := c.Churn(1, 1000, 1)
	if err != nil {
		t.Fatal(err)
	}
	counts, sum := map[string]float64{}, 0.0
	for _, p := range got.Pods {
		kind, _, _ := strings.Cut(p.Name, "-")
		if p.Arrival >= FillTime {
			counts[kind+" arrives"]++
			if want := map[string]int64{"short": 100, "long": 900}[kind]; p.Runs() != want {
				t.Fatalf("%+v runs for %d s, want %d", p, p.Runs(), want)
			}
			continue
		}
		counts[kind]++
		if kind == "long" {
			sum += float64(p.End - FillTime)
		}
	}
	// 10000 pods at a mean of 500 s are 20 arrivals per second. The mean of what remains of 900 s is 450 s.
	if math.Abs(counts["long"]-9000) > 200 || math.Abs(counts["short"]-1000) > 200 || math.Abs(counts["long arrives"]-10_000) > 400 ||
		math.Abs(sum/counts["long"]-450) > 15 {
		t.Errorf("counts %v, mean %v", counts, sum/counts["long"])
	}
}

func TestChurnErrors(t *testing.T) {
	pod := Pod{Name: "p", Request: Amounts{GPU: 1000}, End: 1}
	for name, tc := range map[string]struct {
		cluster Cluster
		want    string
	}{
		"no pods":   {Cluster{Nodes: []Node{{Capacity: Amounts{CPU: 1}}}}, "the pods of the trace request nothing that its nodes have"},
		"no device": {Cluster{Nodes: []Node{{Capacity: Amounts{CPU: 1}}}, Pods: []Pod{pod}}, "the pods of the trace request nothing that its nodes have"},
		"too many": {
			Cluster{Nodes: []Node{{Capacity: Amounts{GPU: MaxGPU}}}, Pods: []Pod{pod}},
			"the fill 0.5 for 1000000 s takes 500000500 pods: must be at most 1000000",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := tc.cluster.Churn(0.5, 1_000_000, 1); err == nil || err.Error() != tc.want {
				t.Errorf("%v, want %s", err, tc.want)
			}
		})
	}
}
