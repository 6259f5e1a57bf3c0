package trace

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
)

// podOf returns a pod of a trace that starts when the pod arrives.
func podOf(name string, requests resources.Amounts, arrival, duration int64) pod {
	return pod{InputPod: recording.NewPod(name, requests, arrival, duration), start: arrival}
}

// churned returns an input with one node, on which pods drawn from a trace arrive and end.
func churned(capacity resources.Amounts, pods []pod, c Options) (recording.Input, error) {
	in := recording.Input{Nodes: []recording.Node{recording.NewNode("n", capacity)}}
	return in, addChurn(&in, pods, c)
}

// TestChurn checks that the requests of concurrent pods have the expected fill at any time after the cluster has filled, that the pods have
// requests of the trace, and that a seed gives the same pods.
func TestChurn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const amount = 2_000_000
		capacity := resources.Amounts{CPU: amount, Memory: amount, Extended: devices(amount)}
		var pods []pod
		requests := map[resources.Amounts]bool{}
		for i := range rapid.IntRange(1, 20).Draw(t, "kinds") {
			request := resources.Amounts{
				CPU: rapid.Int64Range(500, 1000).Draw(t, "cpu"), Memory: rapid.Int64Range(500, 1000).Draw(t, "memory"),
				Extended: devices(rapid.Int64Range(0, 1000).Draw(t, "gpu")), Pods: 1,
			}
			start, runs := rapid.Int64Range(0, 1000).Draw(t, "start"), rapid.Int64Range(2000, 6000).Draw(t, "runs")
			requests[request] = true
			pods = append(pods, podOf(fmt.Sprint("p", i), request, start, runs))
		}
		fill, seed := rapid.Float64Range(0.3, 1).Draw(t, "fill"), rapid.Uint64().Draw(t, "seed")
		got, err := churned(capacity, pods, Options{Fill: fill, Seconds: 4000, Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		if same, _ := churned(capacity, pods, Options{Fill: fill, Seconds: 4000, Seed: seed}); !cmp.Equal(got.Pods[:100], same.Pods[:100]) {
			t.Fatal("the same seed gives other pods")
		}
		for _, second := range []int64{0, 1500, 3999} {
			sums := map[v1.ResourceName]float64{}
			for _, p := range got.Pods {
				if at := fillTime + second; p.Arrival <= at && at < resources.Add(p.Arrival, p.Duration) {
					addAmounts(sums, p.Requests, 1.0/amount)
				}
			}
			// At least 600 pods: a deviation of at most 4 %, with the deviation of the requests 4.5 %.
			if highest := max(sums[v1.ResourceCPU], sums[v1.ResourceMemory], sums[OpenbGPU]); math.Abs(highest/fill-1) > 0.25 {
				t.Fatalf("second %d: fill %v, want %v", second, highest, fill)
			}
		}
		names := map[string]bool{}
		for _, p := range got.Pods {
			if !requests[p.Requests] || p.Duration < 1 || names[p.Object.Name] {
				t.Fatalf("%+v", p)
			}
			names[p.Object.Name] = true
		}
	})
}

// TestChurnRunTimes has pods of 100 s and of 900 s in equal numbers: nine of ten pods that run at an instant are
// pods of 900 s. A pod that does not end runs until the last event, at 1900 s, also 900 s.
func TestChurnRunTimes(t *testing.T) {
	core := resources.Amounts{CPU: 1000}
	got, err := churned(resources.Amounts{CPU: 10_000_000}, []pod{
		podOf("short", core, 1800, 100), podOf("long", core, 1000, recording.Never),
	}, Options{Fill: 1, Seconds: 1000, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	counts, sum := map[string]float64{}, 0.0
	for _, p := range got.Pods {
		kind, _, _ := strings.Cut(p.Object.Name, "-")
		if p.Arrival >= fillTime {
			counts[kind+" arrives"]++
			if want := map[string]int64{"short": 100, "long": 900}[kind]; p.Duration != want {
				t.Fatalf("%+v runs for %d s, want %d", p, p.Duration, want)
			}
			continue
		}
		counts[kind]++
		if kind == "long" {
			sum += float64(resources.Add(p.Arrival, p.Duration) - fillTime)
		}
	}
	// 10000 pods at a mean of 500 s are 20 arrivals per second. The mean remaining run time of pods of 900 s is 450 s.
	if math.Abs(counts["long"]-9000) > 200 || math.Abs(counts["short"]-1000) > 200 || math.Abs(counts["long arrives"]-10_000) > 400 ||
		math.Abs(sum/counts["long"]-450) > 15 {
		t.Errorf("counts %v, mean %v", counts, sum/counts["long"])
	}
}

func TestChurnErrors(t *testing.T) {
	cpu := resources.Amounts{CPU: 1}
	pods := []pod{podOf("p", resources.Amounts{Extended: devices(1000)}, 0, 1)}
	for name, tc := range map[string]struct {
		capacity resources.Amounts
		pods     []pod
		want     string
	}{
		"no pods":   {cpu, nil, "the pods of the trace request nothing that its nodes have"},
		"no device": {cpu, pods, "the pods of the trace request nothing that its nodes have"},
		"too many": {
			resources.Amounts{Extended: devices(maxGPU)},
			pods,
			"the fill 0.5 for 1000000 s takes 500000500 pods: must be at most 1000000",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := churned(
				tc.capacity,
				tc.pods,
				Options{Fill: 0.5, Seconds: 1_000_000, Seed: 1},
			); err == nil ||
				err.Error() != tc.want {
				t.Errorf("%v, want %s", err, tc.want)
			}
		})
	}
}

// addAmounts adds a multiple of amounts to sums.
func addAmounts(sums map[v1.ResourceName]float64, a resources.Amounts, times float64) {
	for r, amount := range a.All() {
		sums[r.Name()] += times * float64(amount)
	}
}
