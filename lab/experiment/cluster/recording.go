package cluster

import (
	"encoding/json"
	"fmt"
	"math"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/generate"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording/kinds"
)

// place places each pod on the node with the least requests when it arrives. A run places the pods again: a recording must have a
// node for each pod.
func (d *draw) place() {
	type placed struct {
		end int64
		cpu float64
	}
	var nodes [Nodes][]placed
	for _, p := range d.pods {
		best, least := 0, math.Inf(1)
		for i := range nodes {
			sum, kept := 0.0, nodes[i][:0]
			for _, other := range nodes[i] {
				if other.end > p.start {
					sum, kept = sum+other.cpu, append(kept, other)
				}
			}
			nodes[i] = kept
			if sum < least {
				best, least = i, sum
			}
		}
		nodes[best] = append(nodes[best], placed{p.end, p.workload.cpu})
		p.node = nodeName(best)
	}
}

func nodeName(number int) string { return fmt.Sprintf("node-%02d", number) }

// recording returns the recording.
func (d *draw) recording(seed uint64) (*recording.Recording, error) {
	from := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(d.minute) * time.Minute)
	r := &recording.Recording{About: recording.About{
		From: from, To: from.Add(Hours * time.Hour), Step: 60,
		Sources: []string{fmt.Sprintf("drawn from the public usage series %s with the seed %d", d.Set, seed)},
		Missing: []recording.Missing{
			{What: "requests, limits and the number of replicas", Why: "drawn"},
			{What: "the nodes of pods", Why: "the node with the least requests"},
		},
	}}
	for i := range Nodes {
		size := resources.Amounts{CPU: Cores * 1000, Memory: GiB * gibibyte}
		r.Nodes = append(r.Nodes, generate.NewNode(nodeName(i), size))
	}
	for _, w := range d.workloads {
		for generation := range 2 {
			if generation == 1 && d.Kind != Rollout {
				continue
			}
			object, err := json.Marshal(w.replicaSet(generation))
			if err != nil {
				return nil, err
			}
			r.Objects = append(r.Objects, kinds.Object{Kind: kinds.Of("apps", "ReplicaSet"), JSON: object})
		}
	}
	for i, p := range d.pods {
		r.Pods = append(r.Pods, d.pod(i, p))
	}
	return r, nil
}

// hash returns the name of a generation of pods of a Deployment.
func hash(generation int) string { return fmt.Sprintf("%08x", 0x5c6d7e8f+generation) }

// replicaSet returns the ReplicaSet of a generation, by which kube-scheduler spreads pods.
func (w *workload) replicaSet(generation int) *appsv1.ReplicaSet {
	name := w.name + "-" + hash(generation)
	labels := map[string]string{"app": w.name, appsv1.DefaultDeploymentUniqueLabelKey: hash(generation)}
	return &appsv1.ReplicaSet{
		TypeMeta:   metav1.TypeMeta{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "ReplicaSet"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: v1.NamespaceDefault, UID: types.UID(name), Labels: labels},
		Spec: appsv1.ReplicaSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: w.spec()},
		},
	}
}

// spec returns the spec of the pods.
func (w *workload) spec() v1.PodSpec {
	container := v1.Container{Name: "main", Image: "main"}
	if !w.bestEffort {
		container.Resources = v1.ResourceRequirements{Requests: list(w.cpu, w.memory), Limits: list(limitRatio*w.cpu, limitRatio*w.memory)}
	}
	return v1.PodSpec{SchedulerName: v1.DefaultSchedulerName, Containers: []v1.Container{container}}
}

func list(cpu, memory float64) v1.ResourceList {
	return v1.ResourceList{
		v1.ResourceCPU:    *resource.NewMilliQuantity(int64(cpu), resource.DecimalSI),
		v1.ResourceMemory: *resource.NewQuantity(int64(memory), resource.BinarySI),
	}
}

// pod returns a pod with its usage.
func (d *draw) pod(number int, p *pod) recording.Pod {
	w := p.workload
	set := w.replicaSet(p.generation)
	name := fmt.Sprintf("%s-%05d", set.Name, number)
	var cpu, memory []float64
	for minute := p.first(); minute < p.last(); minute++ {
		c, m := d.use(p, minute)
		cpu, memory = append(cpu, c), append(memory, m)
	}
	return recording.Pod{
		Object: &v1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Name: name, Namespace: v1.NamespaceDefault, UID: types.UID(name), Labels: set.Labels,
				OwnerReferences: []metav1.OwnerReference{{
					APIVersion: set.APIVersion, Kind: set.Kind, Name: set.Name, UID: set.UID, Controller: new(true),
				}},
			},
			Spec: w.spec(),
		},
		Created: p.start, Scheduled: p.start, Started: p.start, Ended: p.end, Node: p.node,
		CPU: recording.NewSeries(p.first(), cpu...), Memory: recording.NewSeries(p.first(), memory...),
	}
}
