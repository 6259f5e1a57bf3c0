package shadow

import (
	"fmt"
	"math"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-k8s/plimsoll/internal/cli/whatif"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/shadow"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// writeHour writes a recording of an hour of nodes and pods. One pod in ten is created in the hour, and runs until its end.
func writeHour(b *testing.B, path string, nodes, pods int) {
	b.Helper()
	from := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	r := recording.Recording{About: recording.About{From: from, To: from.Add(time.Hour), Step: 60}}
	list := func(cpu, memory string) v1.ResourceList {
		return v1.ResourceList{
			v1.ResourceCPU:    resource.MustParse(cpu),
			v1.ResourceMemory: resource.MustParse(memory),
			v1.ResourcePods:   resource.MustParse("110"),
		}
	}
	for i := range nodes {
		amounts := list("16", "64Gi")
		r.Nodes = append(r.Nodes, recording.Node{
			Object: &v1.Node{
				ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node-%04d", i)},
				Status:     v1.NodeStatus{Capacity: amounts, Allocatable: amounts},
			},
			Appeared: -7200, Gone: recording.Never,
		})
	}
	for i := range pods {
		requests := list("250m", "1Gi")
		delete(requests, v1.ResourcePods)
		p := recording.Pod{
			Object: &v1.Pod{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: "default", Name: fmt.Sprintf("app-%04d-%05d", i/20, i), UID: types.UID(fmt.Sprint(i)),
					OwnerReferences: []metav1.OwnerReference{
						{
							APIVersion: "apps/v1",
							Kind:       "ReplicaSet",
							Name:       fmt.Sprintf("app-%04d", i/20),
							UID:        types.UID(fmt.Sprint("o", i/20)),
							Controller: new(true),
						},
					},
				},
				Spec: v1.PodSpec{Containers: []v1.Container{{Name: "c", Resources: v1.ResourceRequirements{Requests: requests}}}},
			},
			Created: -3600, Scheduled: -3600, Started: -3600, Ended: recording.Never, Node: fmt.Sprintf("node-%04d", i%nodes),
		}
		if i%10 == 0 {
			p.Created = int64(i) * 3540 / int64(pods)
			p.Scheduled, p.Started = p.Created, p.Created+1
		}
		first := max(int(p.Created/60), 0)
		var cpu, memory []float64
		for step := first; step <= 60; step++ {
			cpu = append(cpu, 300*(1+math.Sin(float64(i)+float64(step)/20))*(1+float64(i%7)/3))
			memory = append(memory, 5e8+1e6*float64(step))
		}
		p.CPU, p.Memory = recording.NewSeries(first, cpu...), recording.NewSeries(first, memory...)
		r.Pods = append(r.Pods, p)
	}
	must.Succeed(b, r.WriteFile(path))
}

// BenchmarkReplay replays an hour of 1,000 nodes and 30,000 pods, of which 3,000 are created in the hour, with two candidates, in processes of
// one CPU each. It reports the CPU time of all processes, and the memory of the largest.
func BenchmarkReplay(b *testing.B) {
	path := filepath.Join(b.TempDir(), "20260301T000000Z.ndjson.gz")
	writeHour(b, path, 1000, 30_000)
	profiles, err := read("profile", "default", "predicted", "low-risk")
	must.Succeed(b, err)
	for b.Loop() {
		var before, used syscall.Rusage
		_ = syscall.Getrusage(syscall.RUSAGE_CHILDREN, &before)
		w, err := new(shadow.Shadow).Replay(b.Context(), path, time.Time{}, profiles, whatif.RunLowPriority)
		if err != nil || w.Error != "" {
			b.Fatal(err, w)
		}
		_ = syscall.Getrusage(syscall.RUSAGE_CHILDREN, &used)
		seconds := func(r *syscall.Rusage) float64 { return time.Duration(r.Utime.Nano() + r.Stime.Nano()).Seconds() }
		b.ReportMetric(seconds(&used)-seconds(&before), "CPU-s/op")
		b.ReportMetric(float64(used.Maxrss)/1024, "largest-MiB")
		b.Logf("overload measured %.0f, default %.0f, predicted %.0f node minutes",
			w.Measured.OverloadMinutes, w.Current.Run.OverloadMinutes, w.Candidates[0].Run.OverloadMinutes)
	}
}
