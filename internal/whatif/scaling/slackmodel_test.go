package scaling

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
)

// TestHistory checks which pods are in the pool of node general-1, which has the label pool=general and a taint.
func TestHistory(t *testing.T) {
	node := &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "general-1", Labels: map[string]string{"pool": "general"}},
		Spec:       v1.NodeSpec{Taints: []v1.Taint{{Key: "team", Value: "shop", Effect: v1.TaintEffectNoSchedule}}},
	}
	tolerant := []v1.Toleration{{Key: "team", Operator: v1.TolerationOpExists}}
	pod := func(kind, owner string, spec v1.PodSpec, labels map[string]string) *v1.Pod {
		p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "pod", Labels: labels}, Spec: spec}
		if kind != "" {
			p.OwnerReferences = []metav1.OwnerReference{{Kind: kind, Name: owner, Controller: new(true)}}
		}
		return p
	}
	hash := map[string]string{"pod-template-hash": "5d4f"}
	in := recording.Input{Nodes: []recording.Node{{Object: node}}, End: 3600, Pods: []recording.InputPod{
		// The first seven are in the pool.
		{Object: pod("ReplicaSet", "web-5d4f", v1.PodSpec{}, hash), Recorded: &recording.Recorded{Node: "general-1"}},
		{Object: pod("ReplicaSet", "web-77aa", v1.PodSpec{NodeName: "general-1"}, map[string]string{"pod-template-hash": "77aa"})},
		{Object: pod("ReplicaSet", "alone", v1.PodSpec{Tolerations: tolerant}, nil), Recorded: &recording.Recorded{}},
		{Object: pod("StatefulSet", "db", v1.PodSpec{Tolerations: tolerant, NodeSelector: map[string]string{"pool": "general"}}, nil)},
		{Object: pod("Job", "batch", v1.PodSpec{Tolerations: tolerant}, nil)},
		{Object: pod("", "", v1.PodSpec{NodeName: "general-1"}, nil)},
		{Object: pod("StatefulSet", "x\n- y", v1.PodSpec{NodeName: "general-1"}, nil)},
		// The others are not.
		{Object: pod("ReplicaSet", "web-5d4f", v1.PodSpec{}, hash), Recorded: &recording.Recorded{Node: "gpu-1"}},
		{Object: pod("ReplicaSet", "web-5d4f", v1.PodSpec{NodeName: "gpu-1"}, hash)},
		{Object: pod("ReplicaSet", "web-5d4f", v1.PodSpec{}, hash)}, // does not tolerate the taint
		{Object: pod("Job", "gpu", v1.PodSpec{Tolerations: tolerant, NodeSelector: map[string]string{"pool": "gpu"}}, nil)},
		// Pods of DaemonSets do not count at all.
		{Object: pod("DaemonSet", "agent", v1.PodSpec{NodeName: "gpu-1"}, nil)},
	}}
	for i := range in.Pods {
		in.Pods[i].Arrival = int64(i + 1)
		in.Pods[i].Duration = int64(i + 1)
	}
	h, outside, err := Spec{}.History(&in, 0)
	var got []int64
	for _, p := range h.Pods {
		got = append(got, p.Duration)
	}
	// Pods 2, 6 and 7 have a node at the start.
	if want := "[2 6 7 1 3 4 5]"; err != nil || fmt.Sprint(got) != want || outside != 4 {
		t.Errorf("pods %v, %d outside, error %v; want %s, 4", got, outside, err, want)
	}
}
