package slack

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/plimsoll-k8s/plimsoll/slack"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// counted is a time, at the begin of an hour, from which tests count waits.
var counted = time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC)

// after returns a time after the begin of the counting.
func after(seconds int) metav1.Time {
	return metav1.Unix(counted.Unix()+int64(seconds), 0)
}

// scheduledPod returns a running pod that was created, and then got a node, seconds after the begin of the counting.
func scheduledPod(name, node string, created, scheduled int) *v1.Pod {
	pod := newPod(name, node)
	pod.UID, pod.CreationTimestamp = types.UID(name), after(created)
	pod.Status.Conditions = []v1.PodCondition{{Type: v1.PodScheduled, Status: v1.ConditionTrue, LastTransitionTime: after(scheduled)}}
	return pod
}

// at sets the clock of a controller to a number of seconds after the begin of the counting.
func at(c *Controller, seconds int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = func() time.Time { return after(seconds).Time }
}

// TestWaits checks which pods count, once each and also if their node is known late, and how long they waited: since their creation,
// or since their last scheduling gate was removed.
func TestWaits(t *testing.T) {
	c := controllerOf(t, interceptor.Funcs{}, newNode("a", "web"), newNode("b", "other"), newPolicy("web", "web"))
	at(c, 0)
	reconcileOnce(t, c, "web")
	update := func(before, after *v1.Pod) {
		c.podHandler().Update(t.Context(), event.UpdateEvent{ObjectOld: before, ObjectNew: after}, &countingQueue{})
	}
	placeholder, daemon := scheduledPod("placeholder", "a", 5, 6), scheduledPod("daemon", "a", 5, 6)
	placeholder.Labels = map[string]string{slack.PlaceholderLabel: "web"}
	daemon.OwnerReferences = []metav1.OwnerReference{{Kind: "DaemonSet", APIVersion: "apps/v1", Controller: new(true)}}
	manifest := scheduledPod("manifest", "a", 5, 6)
	manifest.Status.Conditions = nil
	for _, pod := range []*v1.Pod{
		scheduledPod("before", "a", -100, -1), scheduledPod("waited", "a", -100, 20), scheduledPod("at-once", "a", 5, 15),
		scheduledPod("clock", "a", 40, 39), scheduledPod("elsewhere", "b", 5, 6), newPod("pending", ""), placeholder, daemon, manifest,
	} {
		c.podHandler().Create(t.Context(), event.CreateEvent{Object: pod}, &countingQueue{})
		update(pod, pod)
	}
	late := scheduledPod("late", "c", 10, 21)
	update(late, late)
	c.nodeHandler().Create(t.Context(), event.CreateEvent{Object: newNode("c", "web")}, &countingQueue{})
	update(late, late)
	c.podHandler().Delete(t.Context(), event.DeleteEvent{Object: late}, &countingQueue{})
	// Gates hold the pod from 10 s to 300 s.
	pod, waiting := scheduledPod("gated", "a", 10, 305), newPod("gated", "")
	waiting.UID, waiting.CreationTimestamp = pod.UID, pod.CreationTimestamp
	gated := waiting.DeepCopy()
	gated.Spec.SchedulingGates = []v1.PodSchedulingGate{{Name: "quota"}}
	at(c, 300)
	update(gated, waiting)
	at(c, 305)
	update(waiting, pod)
	// A pod is deleted and created again while the watch is interrupted.
	again := scheduledPod("at-once", "a", 306, 308)
	again.UID = "again"
	update(scheduledPod("at-once", "a", 5, 15), again)
	waits := &c.trackers["web"].waits
	// Waits of 120, 10, 0, 11, 5 and 2 s.
	expectWaits(t, c, 6, 148)
	c.podHandler().Delete(t.Context(), event.DeleteEvent{Object: pod}, &countingQueue{})
	if len(c.ungated) != 0 || waits.counted.Has(pod.UID) {
		t.Errorf("a deleted pod is kept: %v, %v", c.ungated, waits.counted)
	}
	next := scheduledPod("next", "a", 24*3600, 24*3600+5)
	update(next, next)
	expectWaits(t, c, 7, 153)
}

// expectWaits expects a number of pods and the sum of their waits in seconds in the histogram of the policy web.
func expectWaits(t *testing.T, c *Controller, pods uint64, seconds float64) {
	t.Helper()
	var m dto.Metric
	must.Succeed(t, c.metrics.waits.WithLabelValues("web").(prometheus.Histogram).Write(&m))
	if h := m.GetHistogram(); h.GetSampleCount() != pods || h.GetSampleSum() != seconds {
		t.Errorf("%d pods waited %v s in sum, want %d and %v", h.GetSampleCount(), h.GetSampleSum(), pods, seconds)
	}
}

// TestInMebibytes verifies that memory in a status is in whole mebibytes: a tenth of 16 GiB is 1638.4 MiB, rounded up.
func TestInMebibytes(t *testing.T) {
	for memory, want := range map[string]string{"1717986919": "1639Mi", "2Gi": "2Gi", "0": "0"} {
		list := v1.ResourceList{v1.ResourceCPU: resource.MustParse("800m"), v1.ResourceMemory: resource.MustParse(memory)}
		got := inMebibytes(list)
		if got.Memory().String() != want || got.Cpu().String() != "800m" || list.Memory().String() != memory {
			t.Errorf("%s: %s, %s, want %s", memory, got.Memory(), got.Cpu(), want)
		}
	}
	if got := inMebibytes(v1.ResourceList{}); len(got) != 0 {
		t.Errorf("no memory: %v", got)
	}
}
