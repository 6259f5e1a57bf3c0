package agent

import (
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-k8s/plimsoll/internal/fleet/summarize"
	"github.com/plimsoll-k8s/plimsoll/test/support/measure"
)

// BenchmarkCapacity summarizes the observed nodes and pods of a cluster of 5,000 nodes with 30 pods each, and prints the memory of the
// nodes and pods. One pod on each tenth node changes before each summary.
func BenchmarkCapacity(b *testing.B) {
	before := measure.Heap()
	o := newFakeObserver()
	nodeName := func(i int) string { return fmt.Sprintf("ip-10-0-%d-%d.eu-west-1.compute.internal", i/250, i%250) }
	for i := range 5000 { // each object has its own texts
		o.set(node(nodeName(i), func(n *v1.Node) {
			n.UID, n.ResourceVersion = types.UID(fmt.Sprintf("5c6d4f7e-0b1a-4a57-9d4e-%012d", i)), fmt.Sprint(1_000_000_000+i)
			n.Labels = map[string]string{v1.LabelHostname: nodeName(i), v1.LabelTopologyZone: fmt.Sprintf("eu-west-1%c", 'a'+i%3)}
			for l := range 15 {
				n.Labels[fmt.Sprintf("node.example.com/label-%d", l)] = fmt.Sprintf("value-%d", i%(l+1))
			}
			for _, list := range []v1.ResourceList{n.Status.Capacity, n.Status.Allocatable} {
				list[v1.ResourcePods], list[v1.ResourceEphemeralStorage] = resource.MustParse("110"), resource.MustParse("90Gi")
			}
		}))
		for k := range 30 {
			o.set(benchPod(i, k, nodeName(i)))
		}
	}
	total := measure.Heap() - before
	in := summarize.Input{Cluster: "cluster1", Now: time.Unix(1_795_239_886, 0)}
	var used time.Duration
	for k := 0; b.Loop(); k++ {
		for i := 0; i < 5000; i += 10 {
			o.set(benchPod(i, k%30, nodeName(i)))
		}
		began := measure.CPU()
		if status := o.summarize(in); status.Nodes != 5000 {
			b.Fatal(status.Nodes)
		}
		used += measure.CPU() - began
	}
	b.ReportMetric(used.Seconds()*1000/float64(b.N), "cpu-ms")
	b.ReportMetric(float64(total)/1e6, "MB")
}

// benchPod returns pod k of the Deployment that runs on node i.
func benchPod(i, k int, node string) *v1.Pod {
	p := pod(fmt.Sprintf("web-%d-6d4cf56db6-%05d", i, k), node)
	p.Namespace = fmt.Sprintf("team-%d", i%50)
	p.UID, p.ResourceVersion = types.UID(fmt.Sprintf("9e107d9d-372b-4a57-%04d-%012d", k, i)), fmt.Sprint(2_000_000_000+i)
	p.CreationTimestamp = metav1.NewTime(time.Unix(1_795_000_000, 0))
	p.Status.StartTime = &p.CreationTimestamp
	amounts := list(fmt.Sprintf("%dm", 1+(i*30+k)*7919%90), fmt.Sprintf("%dMi", 1+(i*30+k)*104729%300))
	p.Spec.Containers[0].Resources = v1.ResourceRequirements{Requests: amounts, Limits: amounts}
	p.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Name: fmt.Sprintf("web-%d-6d4cf56db6", i), Controller: new(true)}}
	p.Labels = map[string]string{appsv1.DefaultDeploymentUniqueLabelKey: "6d4cf56db6"}
	return p
}
