package fleet

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	capacityv1alpha1 "github.com/plimsoll-k8s/plimsoll/api/capacity/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/test/support/measure"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// largeCapacity returns the ClusterCapacity of a large cluster in JSON, as an API server sends it: 300 groups of 10 classes, an autoscaler
// with 10 shapes, and 50 recent workloads.
func largeCapacity(b *testing.B, cluster string, seed uint64) []byte {
	rng := rand.New(rand.NewPCG(seed, 1))
	object := capacityv1alpha1.ClusterCapacity{ObjectMeta: metav1.ObjectMeta{
		Namespace: cluster, Name: capacityv1alpha1.Name, ResourceVersion: "123456789",
		UID: types.UID(fmt.Sprintf("5c6d4f7e-0b1a-4a57-9d4e-%012d", seed)),
	}}
	status := &object.Status
	status.Cluster, status.ObservedAt, status.Nodes = cluster, metav1.NewTime(now), 3000
	amounts := func() v1.ResourceList {
		return v1.ResourceList{
			v1.ResourceCPU:    *resource.NewMilliQuantity(rng.Int64N(64_000), resource.DecimalSI),
			v1.ResourceMemory: *resource.NewQuantity(rng.Int64N(256<<30), resource.BinarySI), v1.ResourcePods: resource.MustParse("90"),
			v1.ResourceEphemeralStorage: resource.MustParse("90Gi"),
		}
	}
	for class := range int32(10) {
		status.Classes = append(status.Classes, capacityv1alpha1.NodeClass{Labels: map[string]string{
			v1.LabelTopologyRegion: fmt.Sprintf("region-%d", seed%30), v1.LabelTopologyZone: fmt.Sprintf("zone-%d", class%3),
			"pool": fmt.Sprint(class),
		}})
		status.ScaleUp = append(status.ScaleUp, capacityv1alpha1.ScaleUp{
			Pool: fmt.Sprint(class), Class: class, Free: amounts(), MaxNodes: 10, BootSeconds: new(int32(60)), PricePerHour: "1.5",
		})
	}
	for g := range int32(300) {
		status.Groups = append(status.Groups, capacityv1alpha1.NodeGroup{Class: g % 10, Nodes: 1 + rng.Int32N(20), Free: amounts()})
	}
	for i := range 50 {
		name := fmt.Sprintf("workload-%d", i)
		status.Recent = append(status.Recent, capacityv1alpha1.RecentWorkload{Namespace: "shop", Name: name, Pods: 3})
	}
	raw, err := json.Marshal(object)
	must.Succeed(b, err)
	return raw
}

// decodeCapacity decodes a ClusterCapacity as the cache does.
func decodeCapacity(b *testing.B, raw []byte) *ClusterCapacity {
	object := &ClusterCapacity{}
	if err := json.Unmarshal(raw, object); err != nil || object.Err != nil {
		b.Fatal(err, object.Err)
	}
	return object
}

// BenchmarkCapacityUpdate decides 100 placements after the capacity of one of 5,000 clusters has changed, each with 300 groups: long after
// the placements were decided first, and while their promises hold, which are then deducted in 300 clusters. It also prints the memory of
// the ClusterCapacities: the objects in the cache, and the state with all fits.
func BenchmarkCapacityUpdate(b *testing.B) {
	before := measure.Heap()
	cache := map[string]*ClusterCapacity{}
	for i := range 5000 {
		name := fmt.Sprintf("cluster-%04d", i)
		cache[name] = decodeCapacity(b, largeCapacity(b, name, uint64(i)))
	}
	var names []string
	for name := range cache {
		names = append(names, name)
	}
	s := hub(names...)
	for _, object := range cache {
		s.SetCapacity(object.DeepCopyObject().(*ClusterCapacity)) // clients copy objects of the cache
	}
	placement := func(i int) string { return fmt.Sprintf("p%d", i) }
	for i := range 100 {
		add(s, withWorkload(b, placement(i), 1+i%8, 5, "{numberOfClusters: 3, prioritizerPolicy: {configurations: [{name: FitReplicas}]}}"))
	}
	for i := range 100 {
		decideNow(b, s, placement(i))
	}
	promised := 0
	for _, e := range s.entries {
		promised += min(len(e.promised), 1)
	}
	if promised != 300 {
		b.Fatalf("promises in %d clusters", promised)
	}
	total := measure.Heap() - before
	raw := largeCapacity(b, "cluster-0007", 7)
	for _, bb := range []struct {
		name string
		at   time.Time
	}{{"promises", now}, {"later", now.Add((promiseTime + 1) * time.Second)}} {
		b.Run(bb.name, func(b *testing.B) {
			began := measure.CPU()
			for b.Loop() {
				if keys := s.SetCapacity(decodeCapacity(b, raw)); len(keys) != 100 {
					b.Fatal(len(keys))
				}
				for i := range 100 {
					if _, ok := s.Decide(keyOf(placement(i)), bb.at); !ok {
						b.Fatal("not decided")
					}
				}
			}
			b.ReportMetric((measure.CPU()-began).Seconds()*1000/float64(b.N), "cpu-ms")
			b.ReportMetric(float64(total)/1e6, "MB")
		})
	}
	runtime.KeepAlive(cache)
}
