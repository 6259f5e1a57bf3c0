package shadow

import (
	"path/filepath"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-k8s/plimsoll/internal/whatif/compare"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/engine"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// TestWindowsContinue has three windows of ten minutes: the second follows the first at once, the third after a day. Two nodes have 4 cores. old
// runs on a and uses 3; new is created in the first minute, uses 2, and is on a in the recording, where 5 cores of 4 are overload in each of
// the other minutes. The profile default places it on b. In the second window, new runs at the start, and remains on b with default; in the
// third it is on a, as recorded, since nobody knows where default would have had it.
func TestWindowsContinue(t *testing.T) {
	folder, begin := t.TempDir(), time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	amounts := v1.ResourceList{
		v1.ResourceCPU: resource.MustParse("4"), v1.ResourceMemory: resource.MustParse("16Gi"), v1.ResourcePods: resource.MustParse("110"),
	}
	write := func(from time.Time, created int64) string {
		r := recording.Recording{About: recording.About{From: from, To: from.Add(10 * time.Minute), Step: 60}}
		for _, name := range []string{"a", "b"} {
			r.Nodes = append(r.Nodes, recording.Node{Gone: recording.Never, Appeared: -1, Object: &v1.Node{
				ObjectMeta: metav1.ObjectMeta{Name: name}, Status: v1.NodeStatus{Capacity: amounts, Allocatable: amounts},
			}})
		}
		pod := func(name string, second int64, cpu float64) {
			p := recording.Pod{Created: second, Scheduled: second, Started: second, Ended: recording.Never, Node: "a", Object: &v1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
				Spec: v1.PodSpec{Containers: []v1.Container{{Name: "main", Resources: v1.ResourceRequirements{Requests: v1.ResourceList{
					v1.ResourceCPU: resource.MustParse("1"), v1.ResourceMemory: resource.MustParse("1Gi"),
				}}}}},
			}}
			for step := range 11 {
				p.CPU.Set(step, cpu)
				p.Memory.Set(step, 1<<30)
			}
			r.Pods = append(r.Pods, p)
		}
		pod("old", -3600, 3000)
		pod("new", created, 2000)
		name := filepath.Join(folder, from.Format("20060102T150405Z")+recording.Extension)
		must.Succeed(t, r.WriteFile(name))
		return name
	}
	profile, err := engine.ReadConfig("default")
	must.Succeed(t, err)
	var s Shadow
	for i, test := range []struct {
		start               time.Time
		file                string
		measured, simulated float64
	}{
		{begin, write(begin, 30), 9, 0},
		{begin.Add(10 * time.Minute), write(begin.Add(10*time.Minute), -570), 10, 0},
		{begin.Add(24 * time.Hour), write(begin.Add(24*time.Hour), -3600), 10, 10},
	} {
		w, err := s.Replay(t.Context(), test.file, test.start, []engine.NamedConfig{profile}, compare.InProcess)
		must.Succeed(t, err)
		if w.Error != "" || w.Measured.OverloadMinutes != test.measured || w.Current.Run.OverloadMinutes != test.simulated {
			t.Errorf("window %d: %s, overload %v, with default %v, want %v and %v", i, w.Error, w.Measured.OverloadMinutes,
				w.Current.Run.OverloadMinutes, test.measured, test.simulated)
		}
	}
}
