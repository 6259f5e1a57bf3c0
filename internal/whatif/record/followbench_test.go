package record

import (
	"context"
	"fmt"
	"runtime/debug"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/test/support/measure"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// largePod returns a pod with the fields of a pod of a Deployment, as the API server returns it.
func largePod(i int, node string, version int) *v1.Pod {
	pod := newPod(fmt.Sprintf("app-%04d-7d4b9c8f6d-x%05d", i/20, i), node, after(-3600))
	pod.ResourceVersion = fmt.Sprint(version)
	pod.Labels = map[string]string{
		"app":               fmt.Sprintf("app-%04d", i/20),
		"pod-template-hash": "7d4b9c8f6d",
		"team":              fmt.Sprint("team-", i%40),
	}
	pod.Annotations = map[string]string{"prometheus.io/scrape": "true", "prometheus.io/port": "8080"}
	pod.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: "apps/v1", Kind: "ReplicaSet", Name: fmt.Sprintf("app-%04d-7d4b9c8f6d", i/20), UID: "owner", Controller: new(true),
	}}
	for c := range 2 {
		container := v1.Container{
			Name: fmt.Sprint("c", c), Image: "registry.example/team/app:v1.2.3",
			Resources: v1.ResourceRequirements{
				Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse("250m"), v1.ResourceMemory: resource.MustParse("256Mi")},
				Limits:   v1.ResourceList{v1.ResourceMemory: resource.MustParse("512Mi")},
			},
		}
		for e := range 10 {
			container.Env = append(container.Env, v1.EnvVar{Name: fmt.Sprint("VARIABLE_", e), Value: "a value of some length"})
		}
		pod.Spec.Containers = append(pod.Spec.Containers, container)
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses,
			v1.ContainerStatus{Name: container.Name, Image: container.Image, Ready: true})
	}
	kept, _ := strip(pod)
	return kept.(*v1.Pod)
}

// largeUsage is the usage of all pods, which differs between readings.
type largeUsage struct {
	pods []load.PodUsage
	n    float64
}

func (u *largeUsage) String() string { return "the benchmark" }

func (u *largeUsage) ReadPods(context.Context) (load.PodReading, error) {
	u.n++
	for i := range u.pods {
		u.pods[i].CPU, u.pods[i].Memory = 100+u.n+float64(i%300), 1e8+1e5*float64(i%977)
	}
	return load.PodReading{Pods: u.pods, Time: time.Now().Add(24 * time.Hour)}, nil
}

// BenchmarkFollow follows 1,000 nodes and 30,000 pods for an hour in steps of a minute, in which 1 % of the pods are replaced. It reports the
// CPU time as a fraction of an hour of one core, and the largest heap. The watches are not part of it.
func BenchmarkFollow(b *testing.B) {
	const nodes, pods, steps = 1000, 30_000, 60
	for b.Loop() {
		usage := &largeUsage{}
		f := newFollower(b.TempDir(), nil)
		f.Step, f.Rotate, f.MaxBytes, f.Usage = time.Minute, 2*time.Hour, 1<<30, usage
		for i := range nodes {
			must.Succeed(b, f.nodes.GetStore().Add(newNode(fmt.Sprintf("node-%04d", i), after(-7200))))
		}
		put := func(i, version int) {
			must.Succeed(b, f.pods.GetStore().Add(largePod(i, fmt.Sprintf("node-%04d", i%nodes), version)))
		}
		for i := range pods {
			put(i, 1)
			usage.pods = append(usage.pods, load.PodUsage{Namespace: "default", Name: fmt.Sprintf("app-%04d-7d4b9c8f6d-x%05d", i/20, i)})
		}
		debug.FreeOSMemory()
		begun, heap := measure.CPU(), peakHeap(b)
		for step := range steps {
			f.now = func() time.Time { return after(60 * step) }
			for i := range pods / 100 {
				put((step*pods/100+i)%pods, step+2)
			}
			must.Succeed(b, f.step(b.Context()))
		}
		b.ReportMetric(100*(measure.CPU()-begun).Seconds()/3600, "%-of-a-core")
		b.ReportMetric(float64(heap())/(1<<20), "peak-MiB")
		b.ReportMetric(float64(f.current.file.Size())/(1<<20), "file-MiB")
		must.Succeed(b, f.end())
	}
}
