package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// TestInput verifies that each kind of arrivals has pods that fit a node and arrive during the run, that three pods of each workload run
// before it, and that the history of a workload is what these used.
func TestInput(t *testing.T) {
	for _, kind := range kinds {
		in, err := input(kind.name, 1)
		if err != nil {
			t.Fatal(err)
		}
		node := resources.Amounts{CPU: nodeCores * 1000, Memory: nodeGiB << 30}
		earlier, later := map[resources.Workload]int{}, 0
		for i := range in.Pods {
			p := &in.Pods[i]
			switch {
			case p.Arrival < past:
				earlier[resources.WorkloadOf(p.Object)]++
			case p.Arrival >= past+seconds || p.Duration <= 0 || p.Requests.CPU > node.CPU || p.Requests.Memory > node.Memory:
				t.Errorf(
					"%s: pod %s: arrival %d, duration %d, requests %+v",
					kind.name,
					p.Object.Name,
					p.Arrival-past,
					p.Duration,
					p.Requests,
				)
			default:
				later++
			}
		}
		for w, pods := range earlier {
			if pods != pastPods {
				t.Errorf("%s: %d pods of %s before the run, want %d", kind.name, pods, w.Name, pastPods)
			}
		}
		if later < 100 {
			t.Errorf("%s: %d pods in the run, want at least 100", kind.name, later)
		}
		learned := history(&in)
		if len(learned) != len(earlier) {
			t.Errorf("%s: the history has %d workloads, want %d", kind.name, len(learned), len(earlier))
		}
		// Over many workloads, pods use 0.8 of their CPU requests.
		var ratio float64
		for _, w := range learned {
			ratio += w.CPU.Mean / w.CPU.Request / float64(len(learned))
		}
		if ratio < 0.4 || ratio > 1.4 {
			t.Errorf("%s: pods used %.2f of their requests", kind.name, ratio)
		}
	}
}

// TestModel verifies that a run beside the model counts its pods and repeats.
func TestModel(t *testing.T) {
	k := key{"model", "services", "packed", 1}
	first, err := runModel(t.Context(), k)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := runModel(t.Context(), k); err != nil || again != first {
		t.Errorf("the same run gives %+v and %+v, %v", first, again, err)
	}
	// 56 replicas of about one CPU need at least 6 of the nodes for 10 minutes; settled pods of the past do not count.
	if first.NodeMinutes < 60 || first.NodeMinutes > 150 || first.Pods < 100 {
		t.Errorf("%+v", first)
	}
}

// TestPage verifies the figures of a page, and that runs are read as they were written.
func TestPage(t *testing.T) {
	file := filepath.Join(t.TempDir(), "runs.csv")
	r, err := readRuns(file)
	if err != nil {
		t.Fatal(err)
	}
	for seed, minutes := range map[uint64][2]float64{1: {100, 90}, 2: {50, 45}} {
		for i, profile := range []string{"default", "packed"} {
			f := figures{NodeMinutes: minutes[i], Pods: 200, Evicted: 4 * i, WaitMean: 2, WaitP99: 9, OverloadMinutes: minutes[i] / 50}
			if err := r.add(key{"model", "jobs", profile, seed}, f); err != nil {
				t.Fatal(err)
			}
		}
	}
	read, err := readRuns(file)
	if err != nil || len(read.done) != 4 || read.page() != r.page() {
		t.Errorf("%d runs, %v", len(read.done), err)
	}
	// Nodes: 90 and 45 minutes in 10 minutes are 9 and 4.5, on average 6.75 and 6.8 when rounded; both are 0.9 of the default.
	// 4 of 200 pods are 2 of 100; the overload is a fiftieth, 2 %, of both.
	want := "| model (2), packed | 6.8 | 0.90 (0.90 to 0.90) | 2.0 | 2.0, 9 | 2.0 | +0.0 (+0.0 to +0.0) |\n"
	if page := read.page(); !strings.Contains(page, want) {
		t.Errorf("%s\nwant %s", page, want)
	}
}
