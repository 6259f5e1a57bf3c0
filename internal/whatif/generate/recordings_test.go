package generate

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plimsoll-k8s/plimsoll/internal/manifest"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// TestNothingIsMissing verifies that a generated cluster lacks nothing, although pods have no requests.
func TestNothingIsMissing(t *testing.T) {
	in, err := Source{Generate: "nodes=2,pods=10,best-effort=0.5"}.Input(1)
	if err != nil || len(in.Missing) > 0 || in.Name != "generated: nodes=2,pods=10,best-effort=0.5" {
		t.Errorf("%s lacks %q, %v", in.Name, in.Missing, err)
	}
}

// TestSnapshotOverDays verifies that the days after a snapshot have its nodes and pods, and that a pod uses on average what was measured, or
// half of its request if nothing was.
func TestSnapshotOverDays(t *testing.T) {
	objects := []string{
		`{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "8", "memory": "32Gi", "pods": "110"}}}`,
	}
	for _, pod := range []string{"measured", "other"} {
		objects = append(
			objects,
			`{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "`+pod+`", "namespace": "shop"}, "spec": {"nodeName": "n",
			"containers": [{"name": "main", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}]}, "status": {"phase": "Running"}}`,
		)
	}
	objects = append(
		objects,
		`{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "waits", "namespace": "shop"}, "spec": {"containers": [{}]}}`,
	)
	instant := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	file := filepath.Join(t.TempDir(), "cluster.json")
	must.Succeed(t, os.WriteFile(file, []byte(`{"apiVersion": "v1", "kind": "List", "items": [`+strings.Join(objects, ",")+`]}`), 0o600))
	s, _, err := recording.ReadSnapshot(instant, manifest.Files([]string{file}, nil))
	must.Succeed(t, err)
	spec, err := ParseUsage("diurnal:mean=0.5,amplitude=0.5")
	must.Succeed(t, err)
	if _, err := overDays(s, spec, 1); err == nil || !strings.Contains(err.Error(), "has no usage of pods") {
		t.Errorf("a snapshot without usage: %v", err)
	}
	s.Usage = &load.PodReading{Time: instant, Pods: []load.PodUsage{{Namespace: "shop", Name: "measured", CPU: 200, Memory: 3 << 30}}}
	got, err := overDays(s, spec, 1)
	must.Succeed(t, err)
	if len(got.Nodes) != 1 || len(got.Pods) != 3 || got.Pods[2].Node != "" || got.Pods[2].Scheduled != recording.Never ||
		got.Pods[0].Node != "n" {
		t.Fatalf("%d nodes, pods %+v", len(got.Nodes), got.Pods)
	}
	// The mean over whole days of a wave around the mean is the mean, up to the noise of a seed.
	for i, want := range []struct{ cpu, memory float64 }{{200, 3 << 30}, {500, 0.5 * (1 << 30)}} {
		var cpu, memory float64
		for step := range got.About.Steps() {
			c, _ := got.Pods[i].CPU.At(step)
			m, _ := got.Pods[i].Memory.At(step)
			cpu, memory = cpu+c/float64(got.About.Steps()), memory+m/float64(got.About.Steps())
		}
		if math.Abs(cpu/want.cpu-1) > 0.2 || math.Abs(memory/want.memory-1) > 0.2 {
			t.Errorf(
				"%s uses %.0f and %.0f on average, want about %.0f and %.0f",
				got.Pods[i].Object.Name,
				cpu,
				memory,
				want.cpu,
				want.memory,
			)
		}
	}
	// With limits, no reading exceeds them: a wave around 200m and 3 GiB reaches 300m and 4.5 GiB.
	limited := *s
	limited.Objects = slices.Clone(s.Objects)
	for i := range limited.Objects {
		limited.Objects[i].JSON = bytes.ReplaceAll(s.Objects[i].JSON, []byte(`"requests":{"cpu":"1","memory":"1Gi"}`),
			[]byte(`"limits":{"cpu":"250m","memory":"4Gi"},"requests":{"cpu":"100m","memory":"1Gi"}`))
	}
	got, err = overDays(&limited, spec, 1)
	must.Succeed(t, err)
	highest, most := 0.0, 0.0
	for step := range got.About.Steps() {
		c, _ := got.Pods[0].CPU.At(step)
		m, _ := got.Pods[0].Memory.At(step)
		highest, most = max(highest, c), max(most, m)
	}
	if highest > 250 || highest < 249 || most != 4<<30 { // stored in 16 bits
		t.Errorf("%s uses up to %v and %v, want about 250 and 4 GiB", got.Pods[0].Object.Name, highest, most)
	}
	days := filepath.Join(t.TempDir(), "days.ndjson.gz")
	must.Succeed(t, got.WriteFile(days))
	if read, err := recording.Open(days); err != nil || read.About.Seconds() != 2*24*3600 {
		t.Errorf("the recording has %d seconds, want two days", read.About.Seconds())
	}
}
