package cache

import (
	"reflect"
	"runtime"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// snapshotHandle is a handle that has a snapshot only.
type snapshotHandle struct {
	fwk.Handle
	all fwk.SharedLister
}

func (h snapshotHandle) SnapshotSharedLister() fwk.SharedLister { return h.all }

func newTestCycle[T any](begin func(*Pending) T) *Cycle[T] {
	return NewCycle("key", New(), snapshotHandle{all: &lister{}}, begin)
}

// The data are computed once per cycle, by PreScore or by the first Score.
func TestDataAreComputedOncePerCycle(t *testing.T) {
	cycle := newTestCycle(func(pending *Pending) Pending { return *pending })
	state, pod := framework.NewCycleState(), podRequesting("a", 100)
	if status := cycle.PreScore(t.Context(), state, pod, nil); !status.IsSuccess() {
		t.Fatal(status.AsError())
	}
	first := cycle.Data(state, pod)
	if got := first.Get(resources.CPUResource); got != (resources.Amount{Request: 100, Unbounded: true}) || first.InGroup {
		t.Errorf("%+v, in a group: %t", got, first.InGroup)
	}
	if cycle.Data(state.Clone(), pod) != first {
		t.Error("computed again in a clone of the cycle state")
	}
	other := cycle.Data(framework.NewCycleState(), podRequesting("b", 200))
	if got := other.Get(resources.CPUResource).Request; got != 200 {
		t.Errorf("in the next cycle: %d, want 200", got)
	}
	if cycle.Data(state, pod) != first {
		t.Error("computed again after another cycle")
	}
}

func TestDataOfAGroup(t *testing.T) {
	state := framework.NewCycleState()
	state.SetPodGroupSchedulingCycle(framework.NewCycleState())
	if !*newTestCycle(func(pending *Pending) bool { return pending.InGroup }).Data(state, podRequesting("a", 100)) {
		t.Error("InGroup is not set")
	}
}

// addresses counts the objects that have the address of an object that was freed.
type addresses struct {
	seen   map[uintptr]bool
	reused int
}

func (a *addresses) add(object any) {
	if a.seen == nil {
		a.seen = map[uintptr]bool{}
	}
	address := reflect.ValueOf(object).Pointer()
	if a.seen[address] {
		a.reused++
	}
	a.seen[address] = true
}

// The state of a finished cycle is freed, and the state of a later cycle has its address.
func TestAddressOfACycleStateIsReused(t *testing.T) {
	cycle := newTestCycle(func(pending *Pending) int64 { return pending.Get(resources.CPUResource).Request })
	var seen addresses
	for i := range 300 {
		state := framework.NewCycleState()
		seen.add(state)
		for range 2 {
			if got := *cycle.Data(state, podRequesting("p", int64(i))); got != int64(i) {
				t.Fatalf("cycle %d: %d", i, got)
			}
		}
		runtime.GC()
	}
	if seen.reused == 0 {
		t.Error("no address was reused: the test does not cover the case")
	}
}

// Each of several cycles at the same time has its own data, also without PreScore.
func TestCyclesConcurrently(t *testing.T) {
	cycle := newTestCycle(func(pending *Pending) int64 { return pending.Get(resources.CPUResource).Request })
	var running sync.WaitGroup
	for i := range int64(4) {
		state, pod := framework.NewCycleState(), podRequesting("p", i)
		for range 4 {
			running.Go(func() {
				for range 2000 {
					if got := *cycle.Data(state, pod); got != i {
						t.Errorf("%d, want %d", got, i)
						return
					}
				}
			})
		}
	}
	running.Wait()
}

// Pods with the same signature get the same scores, so the signature has all amounts that scores depend on.
func TestSign(t *testing.T) {
	pod := func(requests, limits v1.ResourceList) *v1.Pod {
		return &v1.Pod{Spec: v1.PodSpec{Containers: containers(container(requests, limits))}}
	}
	base := pod(amounts("cpu", "1", "memory", "1Gi"), amounts("cpu", "2", "nvidia.com/gpu", "1"))
	for name, tc := range map[string]struct {
		pod  *v1.Pod
		same bool
	}{
		"same amounts in other units": {
			pod(amounts("cpu", "1000m", "memory", "1024Mi"), amounts("cpu", "2000m", "nvidia.com/gpu", "1")), true,
		},
		"another request": {pod(amounts("cpu", "1100m", "memory", "1Gi"), amounts("cpu", "2", "nvidia.com/gpu", "1")), false},
		"another limit":   {pod(amounts("cpu", "1", "memory", "1Gi"), amounts("cpu", "3", "nvidia.com/gpu", "1")), false},
		"another device":  {pod(amounts("cpu", "1", "memory", "1Gi"), amounts("cpu", "2", "amd.com/gpu", "1")), false},
		"a limit of zero": {pod(amounts("cpu", "1", "memory", "1Gi"), amounts("cpu", "2", "nvidia.com/gpu", "1", "memory", "0")), true},
		"a container without a limit": {&v1.Pod{Spec: v1.PodSpec{Containers: containers(
			container(amounts("cpu", "1", "memory", "1Gi"), amounts("cpu", "2", "nvidia.com/gpu", "1")), container(nil, nil))}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(Sign(base), Sign(tc.pod)); (diff == "") != tc.same {
				t.Errorf("the same: %t, want %t\n%s", diff == "", tc.same, diff)
			}
		})
	}
}
