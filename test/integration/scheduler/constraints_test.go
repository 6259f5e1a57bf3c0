package scheduler

import (
	"context"
	"fmt"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/plimsoll-k8s/plimsoll/internal/embedded/controlplane"
	"github.com/plimsoll-k8s/plimsoll/test/support/eventually"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
	"github.com/plimsoll-k8s/plimsoll/test/support/program"
	"github.com/plimsoll-k8s/plimsoll/test/support/testcluster"
)

// plainScheduler is a scheduler with the plugin that needs no load.
const plainScheduler = `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
clientConnection: {kubeconfig: %q, qps: 1000, burst: 2000}
profiles:
- schedulerName: plimsoll-scheduler
  plugins: {multiPoint: {enabled: [{name: NodeResourcesLimits}, {name: PredictedUtilization}]}}
`

// startPlainScheduler starts the scheduler with the rights of the default scheduler.
func startPlainScheduler(t *testing.T, cp *controlplane.ControlPlane) *program.Process {
	t.Helper()
	kubeconfig := testcluster.KubeconfigOf(t, cp, "system:kube-scheduler")
	return program.Start(t, program.Path(t, "plimsoll-scheduler"),
		"--config="+testcluster.WriteFile(t, fmt.Sprintf(plainScheduler, kubeconfig)), "--secure-port=0")
}

// createFor creates a pod of the plain scheduler.
func createFor(t *testing.T, client kubernetes.Interface, name, cpu string, change func(*v1.Pod)) {
	t.Helper()
	pod := testcluster.RunningPod(name, "", cpu, "64Mi")
	pod.Spec.SchedulerName = "plimsoll-scheduler"
	change(pod)
	testcluster.Create(t, client.CoreV1().Pods(pod.Namespace), pod)
}

// bound returns the numbers of pods with a node, by the value of a label of their nodes.
func bound(ctx context.Context, client kubernetes.Interface, selector, label string) (byLabel map[string]int, all int, err error) {
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, 0, err
	}
	values := map[string]string{}
	for i := range nodes.Items {
		values[nodes.Items[i].Name] = nodes.Items[i].Labels[label]
	}
	pods, err := client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, 0, err
	}
	byLabel = map[string]int{}
	for i := range pods.Items {
		if node := pods.Items[i].Spec.NodeName; node != "" {
			byLabel[values[node]]++
			all++
		}
	}
	return byLabel, all, nil
}

// TestConstraintsAndRestart creates 300 pods with constraints, and restarts the scheduler when some of them have a node. All get one that
// the constraints allow.
//
// Of 12 nodes, 4 are in each of the zones a, b and c. 120 pods spread over the zones with a skew of at most 1: 40 in each. 120 require a
// label of the nodes of zone b, whose 440 places (4 nodes of 110 pods) suffice. 60 pods of 20 groups of 3 exclude pods of their group from
// their zone: one in each.
func TestConstraintsAndRestart(t *testing.T) {
	cp, _, client := testcluster.StartControlPlane(t)
	for i := range 12 {
		node := testcluster.ReadyNode(
			fmt.Sprintf("node-%02d", i), "16", "64Gi", map[string]string{v1.LabelTopologyZone: string("abc"[i%3])},
		)
		testcluster.Create(t, client.CoreV1().Nodes(), node)
	}
	first := startPlainScheduler(t, cp)
	create := func(from int) {
		for i := from; i < from+150; i++ {
			createFor(t, client, fmt.Sprintf("pod-%03d", i), "50m", func(pod *v1.Pod) {
				kind := [...]string{"spread", "zone-b", "spread", "zone-b", "apart"}[i%5]
				pod.Labels = map[string]string{"kind": kind, "group": fmt.Sprint(i / 15)}
				same := &metav1.LabelSelector{MatchLabels: pod.Labels}
				switch kind {
				case "spread":
					pod.Spec.TopologySpreadConstraints = []v1.TopologySpreadConstraint{{
						MaxSkew: 1, TopologyKey: v1.LabelTopologyZone, WhenUnsatisfiable: v1.DoNotSchedule,
						LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kind": "spread"}},
					}}
				case "zone-b":
					pod.Spec.NodeSelector = map[string]string{v1.LabelTopologyZone: "b"}
				default:
					pod.Spec.Affinity = &v1.Affinity{PodAntiAffinity: &v1.PodAntiAffinity{
						RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{
							{LabelSelector: same, TopologyKey: v1.LabelTopologyZone},
						},
					}}
				}
			})
		}
	}
	create(0)
	eventually.True(t, "no pod has a node", first, func(ctx context.Context) (bool, error) {
		_, all, err := bound(ctx, client, "", v1.LabelTopologyZone)
		return all > 0, err
	})
	create(150)
	first.Stop(t)
	second := startPlainScheduler(t, cp)
	for selector, want := range map[string]map[string]int{
		"kind=spread": {"a": 40, "b": 40, "c": 40}, "kind=zone-b": {"b": 120}, "kind=apart": {"a": 20, "b": 20, "c": 20},
	} {
		eventually.True(t, selector+": not all pods have a node", second, func(ctx context.Context) (bool, error) {
			_, all, err := bound(ctx, client, selector, v1.LabelTopologyZone)
			return all == want["a"]+want["b"]+want["c"], err
		})
		if zones, _, err := bound(t.Context(), client, selector, v1.LabelTopologyZone); err != nil ||
			fmt.Sprint(zones) != fmt.Sprint(want) {
			t.Errorf("%s: %v by zone, error %v, want %v", selector, zones, err, want)
		}
	}
	expectNoFailedLists(t, first, second)
}

// expectNoFailedLists expects that the API server has all objects that schedulers read.
func expectNoFailedLists(t *testing.T, schedulers ...*program.Process) {
	t.Helper()
	for _, scheduler := range schedulers {
		for line := range strings.Lines(scheduler.String()) {
			if strings.Contains(line, "could not find the requested resource") || strings.Contains(line, "is forbidden") {
				t.Errorf("log of the scheduler: %s", line)
			}
		}
	}
}

// TestPreemption expects that a pod of a high priority gets the place of a pod of a low priority: the node has 4 CPUs, of which 2 pods
// request 2 each.
func TestPreemption(t *testing.T) {
	cp, _, client := testcluster.StartControlPlane(t)
	testcluster.Create(t, client.CoreV1().Nodes(), testcluster.ReadyNode("node", "4", "16Gi", nil))
	for name, value := range map[string]int32{"low": 1, "high": 1000} {
		class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value}
		testcluster.Create(t, client.SchedulingV1().PriorityClasses(), class)
	}
	scheduler := startPlainScheduler(t, cp)
	for _, name := range []string{"low-1", "low-2"} {
		createFor(t, client, name, "2", func(pod *v1.Pod) { pod.Spec.PriorityClassName = "low" })
	}
	eventually.True(t, "the pods of the low priority have no node", scheduler, func(ctx context.Context) (bool, error) {
		_, all, err := bound(ctx, client, "", v1.LabelHostname)
		return all == 2, err
	})
	createFor(t, client, "high", "2", func(pod *v1.Pod) { pod.Spec.PriorityClassName = "high" })
	eventually.True(t, "the pod of the high priority is not running", scheduler, func(ctx context.Context) (bool, error) {
		pod, err := client.CoreV1().Pods("default").Get(ctx, "high", metav1.GetOptions{})
		return err == nil && pod.Status.Phase == v1.PodRunning, err
	})
	if pods, err := client.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{}); err != nil || len(pods.Items) != 2 {
		t.Errorf("%d pods are left, error %v, want 2", len(pods.Items), err)
	}
	expectNoFailedLists(t, scheduler)
}

// TestClaims expects that pods get devices: of 3 nodes with 2 devices each, 6 of 7 pods that claim one get a node.
func TestClaims(t *testing.T) {
	cp, _, client := testcluster.StartControlPlane(t)
	class := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "gpu"}, Spec: resourcev1.DeviceClassSpec{
		Selectors: []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: `device.driver == "gpu.example.com"`}}},
	}}
	testcluster.Create(t, client.ResourceV1().DeviceClasses(), class)
	for i := range 3 {
		name := fmt.Sprintf("node-%d", i)
		testcluster.CreateNode(t, client, name)
		slice := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: resourcev1.ResourceSliceSpec{
			Driver: "gpu.example.com", NodeName: &name, Pool: resourcev1.ResourcePool{Name: name, ResourceSliceCount: 1},
			Devices: []resourcev1.Device{{Name: "gpu-0", Capacity: map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{
				"memory": {Value: resource.MustParse("40Gi")},
			}}, {Name: "gpu-1"}},
		}}
		testcluster.Create(t, client.ResourceV1().ResourceSlices(), slice)
	}
	scheduler := startPlainScheduler(t, cp)
	for i := range 7 {
		name := fmt.Sprintf("pod-%d", i)
		claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: resourcev1.ResourceClaimSpec{
			Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{
				Name: "gpu", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gpu"},
			}}},
		}}
		testcluster.Create(t, client.ResourceV1().ResourceClaims("default"), claim)
		createFor(t, client, name, "100m", func(pod *v1.Pod) {
			pod.Spec.ResourceClaims = []v1.PodResourceClaim{{Name: "gpu", ResourceClaimName: &name}}
			pod.Spec.Containers[0].Resources.Claims = []v1.ResourceClaim{{Name: "gpu"}}
		})
	}
	eventually.True(t, "6 pods with a device and one that is unschedulable", scheduler, func(ctx context.Context) (bool, error) {
		pods, err := client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		placed, refused := 0, 0
		for i := range pods.Items {
			for _, condition := range pods.Items[i].Status.Conditions {
				if condition.Type == v1.PodScheduled && condition.Status == v1.ConditionTrue {
					placed++
				} else if condition.Reason == v1.PodReasonUnschedulable {
					refused++
				}
			}
		}
		return placed == 6 && refused == 1, nil
	})
	claims, err := client.ResourceV1().ResourceClaims("default").List(t.Context(), metav1.ListOptions{})
	must.Succeed(t, err)
	devices := map[string]int{}
	for i := range claims.Items {
		if allocation := claims.Items[i].Status.Allocation; allocation != nil {
			for _, result := range allocation.Devices.Results {
				devices[result.Pool+"/"+result.Device]++
			}
		}
	}
	if len(devices) != 6 {
		t.Errorf("allocated devices %v, want 6 that differ", devices)
	}
	expectNoFailedLists(t, scheduler)
}
