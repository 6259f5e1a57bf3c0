package scaling

import (
	"fmt"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
)

// TestPlaceholdersOfGangs checks that a run has the placeholders of whole groups of a LeaderWorkerSet of the input: of 3 replicas of
// 1 + 3 pods, 50% are 2 groups.
func TestPlaceholdersOfGangs(t *testing.T) {
	set := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(`
apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {name: serve, namespace: ml, annotations: {plimsoll.dev/slack: 50%}}
spec:
  replicas: 3
  leaderWorkerTemplate:
    size: 4
    leaderTemplate: {spec: {containers: [{name: c, resources: {requests: {cpu: 1}}}]}}
    workerTemplate: {spec: {containers: [{name: c, resources: {requests: {cpu: 2}}}]}}
`), &set.Object); err != nil {
		t.Fatal(err)
	}
	policy := &v1alpha1.ResourceSlack{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: v1alpha1.ResourceSlackSpec{
		MinRate: "0%", Mirrors: v1alpha1.Mirrors{NamespaceSelector: &metav1.LabelSelector{}},
	}}
	p, err := newPlaceholders(policy, &recording.Input{Workloads: []runtime.Object{set}})
	if err != nil {
		t.Fatal(err)
	}
	node := recording.NewNode("n", resources.Amounts{CPU: 16_000, Memory: 64 << 30})
	pods, plan := p.next(&Cluster{Nodes: []recording.Node{node}, Ready: []NodeState{{}}})
	counts := map[string]int{}
	for _, pod := range pods {
		name, _, _ := strings.Cut(pod.Name, "-leaderworkerset")
		counts[name]++
	}
	if counts["serve-leader"] != 2 || counts["serve-workers"] != 6 || len(pods) != 8 || plan.Total.Cpu().String() != "14" {
		t.Errorf("placeholders %v, total %s", counts, plan.Total.Cpu())
	}
}

// TestPlaceholdersOfPodGroups checks that a run has placeholders for a PodGroup from the pass on in which enough of its pods have arrived,
// on a node or pending, until all of them have ended.
func TestPlaceholdersOfPodGroups(t *testing.T) {
	group := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(`
apiVersion: scheduling.x-k8s.io/v1alpha1
kind: PodGroup
metadata: {name: train, namespace: ml, annotations: {plimsoll.dev/slack: "2"}}
spec: {minMember: 2}
`), &group.Object); err != nil {
		t.Fatal(err)
	}
	policy := &v1alpha1.ResourceSlack{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: v1alpha1.ResourceSlackSpec{
		MinRate: "0%", CoverBiggestPod: new(false), Mirrors: v1alpha1.Mirrors{NamespaceSelector: &metav1.LabelSelector{}},
	}}
	p, err := newPlaceholders(policy, &recording.Input{Workloads: []runtime.Object{group}})
	if err != nil {
		t.Fatal(err)
	}
	c := &Cluster{
		Nodes: []recording.Node{recording.NewNode("n", resources.Amounts{CPU: 16_000, Memory: 64 << 30})},
		Ready: []NodeState{{}},
	}
	for i := range 3 {
		pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprint(i), Namespace: "ml", Labels: map[string]string{"scheduling.x-k8s.io/pod-group": "train"},
		}}
		pod.Spec.Containers = []v1.Container{{Resources: v1.ResourceRequirements{
			Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse("1")},
		}}}
		c.Pods = append(c.Pods, recording.InputPod{Object: pod})
	}
	for _, tc := range []struct {
		running, pending []int32
		want             int
	}{
		{nil, nil, 0},
		{nil, []int32{0}, 0},
		{[]int32{0}, []int32{1}, 2 * 2},
		{[]int32{0, 1}, []int32{2}, 2 * 3},
		{[]int32{0, 1, 2}, nil, 2 * 3},
		{[]int32{1, 2}, nil, 2 * 2},
		{[]int32{2}, nil, 0},
		{nil, nil, 0},
	} {
		c.Ready[0].Pods, c.Pending = tc.running, tc.pending
		if pods, plan := p.next(c); len(pods) != tc.want {
			t.Errorf("running %v, pending %v: %d placeholders, want %d: %v", tc.running, tc.pending, len(pods), tc.want, plan.MirrorReasons)
		}
	}
}
