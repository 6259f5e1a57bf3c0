package compare

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/plimsoll-k8s/plimsoll/internal/manifest"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/generate"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/replay"
	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// TestMeasuredUsageIsRunOnce checks that the number of seeds is no evidence if nothing is sampled: there is one run if the usage of all
// pods is measured.
func TestMeasuredUsageIsRunOnce(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for measured, seeds := range map[bool]int{true: 1, false: 3} {
		s, _, err := recording.ReadSnapshot(now, manifest.Files([]string{"-"}, strings.NewReader(`apiVersion: v1
kind: Node
metadata: {name: n1}
status: {allocatable: {cpu: "4", memory: 8Gi, pods: "10"}}
---
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: shop}
spec: {nodeName: n1, containers: [{name: c, resources: {requests: {cpu: "1", memory: 1Gi}}}]}
`)))
		must.Succeed(t, err)
		if measured {
			s.Usage = &load.PodReading{Time: now, Pods: []load.PodUsage{{Namespace: "shop", Name: "web", CPU: 3, Memory: 1 << 30}}}
		}
		file := filepath.Join(t.TempDir(), "s.ndjson.gz")
		must.Succeed(t, s.WriteFile(file))
		plan, err := NewPlan(t.Context(), Options{
			Profiles: []string{"default", "most-allocated"},
			Source:   generate.Source{Source: recording.Source{Recording: file, Reschedule: true, Tail: 60}},
			Metrics:  replay.DefaultMetrics, Seed: 1, Seeds: 3, Warn: func(string) {},
		})
		must.Succeed(t, err)
		r, err := plan.Run(t.Context(), InProcess)
		must.Succeed(t, err)
		d := r.Scenario.Profiles[1].Figures["cpuLoadMax"].Difference
		if len(r.Seeds) != seeds || len(r.Scenario.Profiles[1].Runs) != seeds || r.Source.Exact != measured || d.Interval == nil {
			t.Errorf("measured %t: seeds %v, exact %t, difference %+v", measured, r.Seeds, r.Source.Exact, d)
		}
	}
}
