package engine

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// TestSetPodUsage checks that the usage of pods reaches every profile that reads it, at the engine's time.
func TestSetPodUsage(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	e := newEngine(t, Cluster{Nodes: []*v1.Node{node("a", "8")}}, Options{Clock: func() time.Time { return now }})
	if e.ReadsPodUsage() {
		t.Error("the default profile reads the usage of pods")
	}
	if err := e.SetPodUsage(t.Context(), load.PodReading{Time: now.Add(time.Hour)}); err != nil {
		t.Errorf("without a profile that reads it: %v", err)
	}
	var stores [2]*load.PodStore
	for i := range stores {
		var err error
		if stores[i], err = e.newPodStore(time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	if !e.ReadsPodUsage() {
		t.Error("no profile reads the usage of pods")
	}
	reading := load.PodReading{Time: now, Pods: []load.PodUsage{{Namespace: "default", Name: "p", CPU: 100, Memory: 1 << 20}}}
	must.Succeed(t, e.SetPodUsage(t.Context(), reading))
	now = now.Add(time.Minute)
	for i, store := range stores {
		if got := store.Fresh(); got == nil || got.Pods[0] != reading.Pods[0] {
			t.Errorf("store %d: %+v, want the reading", i, got)
		}
	}
	now = now.Add(time.Second)
	if stores[0].Fresh() != nil {
		t.Error("a reading is fresh beyond its maximum age")
	}
}
