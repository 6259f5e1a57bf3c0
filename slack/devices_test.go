package slack

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

const gpuName, nicName = "nvidia.com/gpu", "example.com/nic"

// gpuPolicy returns a policy of a pool with devices.
func gpuPolicy(rate string, changes ...func(*v1alpha1.ResourceSlackSpec)) *v1alpha1.ResourceSlack {
	policy := newPolicy(rate, changes...)
	policy.Spec.Pool.Devices = []string{gpuName, nicName}
	return policy
}

// gpus gives a node an amount of GPUs.
func gpus(n int64) func(*v1.Node) {
	return func(node *v1.Node) { node.Status.Allocatable[gpuName] = *resource.NewQuantity(n, resource.DecimalSI) }
}

// requesting gives a pod an amount of a device.
func requesting(device v1.ResourceName, n int64) func(*v1.Pod) {
	return func(p *v1.Pod) {
		p.Spec.Containers[0].Resources.Requests[device] = *resource.NewQuantity(n, resource.DecimalSI)
	}
}

// gpuPods returns n pods with an amount of GPUs on node n0.
func gpuPods(n int, amount int64, cpu, memory string) (pods []*v1.Pod) {
	for i := range n {
		pods = append(pods, newPod(fmt.Sprintf("gpuName%d-%s-%d", amount, cpu, i), "n0", cpu, memory, requesting(gpuName, amount)))
	}
	return pods
}

// groupsOf returns the groups of a plan as NAME: COUNT x CPU MEMORY DEVICES.
func groupsOf(plan Plan) string {
	var out []string
	for _, group := range plan.Groups {
		device := group.Requests[gpuName]
		out = append(out, strings.TrimSuffix(fmt.Sprintf("%s: %d x %s %s %s", group.Name, group.Count, group.Requests.Cpu(),
			group.Requests.Memory(), device.String()), " 0"))
	}
	return strings.Join(out, ", ")
}

func TestDevices(t *testing.T) {
	nodes := nodesOf(3, "n", "64", "512Gi", gpus(8))
	for name, tc := range map[string]struct {
		rate      string
		change    func(*v1alpha1.ResourceSlackSpec)
		pods      []*v1.Pod
		want      string
		reasons   string
		base, sum string
	}{
		// 10% of 4 pods is 1 with the mean of (4, 16), of 15 pods of (2, 8) 2.
		"two shapes": {
			"10%", nil, append(gpuPods(4, 8, "4", "16Gi"), gpuPods(15, 1, "2", "8Gi")...),
			"web-d1-1: 2 x 2 8Gi 1, web-d1-8: 1 x 4 16Gi 8", "", "46 184Gi 47", "8 32Gi 10",
		},
		// The mean of 1 CPU and 4 CPUs.
		"mean": {
			"50%", nil, append(gpuPods(1, 2, "1", "2Gi"), gpuPods(1, 2, "4", "3Gi")...),
			"web-d1-2: 1 x 2500m 2560Mi 2", "", "5 5Gi 4", "2500m 2560Mi 2",
		},
		// Pods without devices keep their formula, and have no part of the pods with devices.
		"beside others": {
			"100%", nil, append(gpuPods(1, 4, "8", "64Gi"), newPod("p", "n1", "1", "4Gi")),
			"web-head: 1 x 1 4Gi, web-d1-4: 1 x 8 64Gi 4", "", "9 68Gi 4", "9 68Gi 4",
		},
		"larger than each node": {
			"100%", nil, append(gpuPods(2, 9, "1", "1Gi"), gpuPods(1, 1, "1", "1Gi")...), "web-d1-1: 1 x 1 1Gi 1",
			"a placeholder with 9 nvidia.com/gpu, 1 CPU and 1Gi memory does not fit any usable node of the pool: " +
				"the node with the most has 8 nvidia.com/gpu, 64 CPU and 512Gi memory", "3 3Gi 19", "1 1Gi 1",
		},
		"maxPlaceholders": {
			"100%", limits(1, 1, 2), append(gpuPods(3, 1, "1", "1Gi"), gpuPods(1, 2, "1", "1Gi")...), "web-d1-1: 2 x 1 1Gi 1",
			"3 placeholders are required with 1 nvidia.com/gpu, maxPlaceholders leaves 2; " +
				"1 placeholder is required with 2 nvidia.com/gpu, maxPlaceholders leaves 0", "4 4Gi 5", "2 2Gi 2",
		},
		"a pod with two devices that no node has": {
			"100%", nil,
			[]*v1.Pod{newPod("p", "n0", "1", "1Gi", requesting(gpuName, 2), requesting(nicName, 1))},
			"",
			"a placeholder with 2 nvidia.com/gpu and 1 example.com/nic, 1 CPU and 1Gi memory does not fit any usable node of the pool: " +
				"the node with the most has 8 nvidia.com/gpu and 0 example.com/nic, 64 CPU and 512Gi memory", "1 1Gi 2", "0 0 0",
		},
	} {
		policy := gpuPolicy(tc.rate)
		if tc.change != nil {
			tc.change(&policy.Spec)
		}
		plan, err := Compute(policy, nodes, tc.pods, nil, noon)
		must.Succeed(t, err)
		text := func(list v1.ResourceList) string {
			devices := list[gpuName]
			return fmt.Sprintf("%s %s %s", list.Cpu(), list.Memory(), devices.String())
		}
		if diff := cmp.Diff([]string{tc.want, tc.base, tc.sum}, []string{groupsOf(plan), text(plan.Base), text(plan.Total)}); diff != "" {
			t.Errorf("%s: groups, base, total: -want +got:\n%s", name, diff)
		}
		if got := strings.Join(plan.Reasons, "; "); got != tc.reasons || plan.Feasible != (tc.reasons == "") {
			t.Errorf("%s: feasible %t, reasons %q, want %q", name, plan.Feasible, got, tc.reasons)
		}
	}
}

// TestDeviceShapesAreMerged checks that a device has at most 8 shapes: of amounts from 1 to 10, pods with 1 and 2 have placeholders
// of 3 like the pods with 3, so that there are 3 of them.
func TestDeviceShapesAreMerged(t *testing.T) {
	var pods []*v1.Pod
	for amount := range int64(10) {
		pods = append(pods, gpuPods(1, amount+1, "1", "1Gi")...)
	}
	plan, err := Compute(gpuPolicy("100%"), nodesOf(1, "n", "64", "512Gi", gpus(16)), pods, nil, noon)
	must.Succeed(t, err)
	var want []string
	for amount := 3; amount <= 10; amount++ {
		want = append(want, fmt.Sprintf("web-d1-%d: %d x 1 1Gi %d", amount, map[bool]int{true: 3, false: 1}[amount == 3], amount))
	}
	if diff := cmp.Diff(strings.Join(want, ", "), groupsOf(plan)); diff != "" || !plan.Feasible {
		t.Errorf("reasons %q, groups: -want +got:\n%s", plan.Reasons, diff)
	}
}

// TestSeveralDevices checks that pods with several devices have placeholders with all of them, by their amounts, and that a restarted
// controller keeps them.
func TestSeveralDevices(t *testing.T) {
	both := func(name string, gpu, nic int64) *v1.Pod {
		return newPod(name, "n0", "1", "1Gi", requesting(gpuName, gpu), requesting(nicName, nic))
	}
	pods := append(gpuPods(1, 2, "1", "1Gi"), both("a", 2, 1), both("b", 2, 1), both("c", 2, 3))
	nodes := nodesOf(2, "n", "64", "512Gi", gpus(8), func(node *v1.Node) {
		node.Status.Allocatable[nicName] = *resource.NewQuantity(2, resource.DecimalSI)
	})
	policy := gpuPolicy("100%")
	plan, err := Compute(policy, nodes, pods, nil, noon)
	must.Succeed(t, err)
	var got []string
	for _, group := range plan.Groups {
		got = append(got, fmt.Sprintf("%d with %s", group.Count, group.Devices))
	}
	// No node has 3 example.com/nic.
	want := []string{"1 with 2 nvidia.com/gpu", "2 with 2 nvidia.com/gpu and 1 example.com/nic"}
	if diff := cmp.Diff(want, got); diff != "" || plan.Feasible {
		t.Errorf("feasible %t, -want +got:\n%s", plan.Feasible, diff)
	}
	restarted := newTracker(t, policy, nodes)
	restarted.Resume(plan.Groups)
	if after := restarted.Next(noon); groupsOf(after) != groupsOf(plan) {
		t.Errorf("after a restart without pods: %s, want %s", groupsOf(after), groupsOf(plan))
	}
}

// TestSeveralDevicesAreMerged checks that pods with one of ten amounts of two devices have placeholders with at most 8: the smallest
// are merged into the next larger one, with the higher amount of each device.
func TestSeveralDevicesAreMerged(t *testing.T) {
	l := newPoolLedger()
	l.SetNode(named("n"), true, ledgerNode{})
	for i := range int64(10) {
		l.setPod(fmt.Sprint(i), ledgerPod{Node: "n", Requests: withDevices(cores(1, 1), i+1, 10-i)})
	}
	pods := l.mergedDevicePods()
	// (1, 10) and (2, 9) are (2, 10), and with (3, 8) (3, 10); the sums are over the pods.
	want := devicePods{3, withDevices(cores(3, 3), 1+2+3, 10+9+8)}
	if got := pods[withDevices(resources.Amounts{}, 3, 10).Extended]; len(pods) != maxDeviceShapes || got != want {
		t.Errorf("%d amounts, (3, 10) has %+v, want %+v", len(pods), got, want)
	}
}

// TestDevicesBeyondTheCoolDown checks that placeholders that are held only because of a cool-down are not required: during the
// cool-down of 3 placeholders, maxPlaceholders leaves one beside the 2 of new pods without devices.
func TestDevicesBeyondTheCoolDown(t *testing.T) {
	policy := gpuPolicy("100%", uncovered)
	policy.Spec.MaxPlaceholders = new(int32(3))
	pods := gpuPods(3, 1, "1", "1Gi")
	tracker := newTracker(t, policy, nodesOf(1, "n", "64", "512Gi", gpus(8)), pods...)
	tracker.Next(noon)
	tracker.DeletePod(pods[0])
	tracker.DeletePod(pods[1])
	for _, pod := range podsOf(2, nodesOf(1, "n", "64", "512Gi"), "p", "1", "1Gi") {
		tracker.SetPod(pod)
	}
	plan := tracker.Next(noon.Add(time.Second))
	if got := groupsOf(plan); got != "web-rate: 2 x 1 1Gi, web-d1-1: 1 x 1 1Gi 1" || !plan.Feasible {
		t.Errorf("feasible %t, groups %s, reasons %q", plan.Feasible, got, plan.Reasons)
	}
}

// TestDevicesReachTarget checks for random pods that the placeholders of a feasible plan reach the rate of the requests in each
// resource, and that each of them fits a node in all resources at the same time.
func TestDevicesReachTarget(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string, least, most int64) int64 { return rapid.Int64Range(least, most).Draw(t, name) }
		var nodes []*v1.Node
		for i := range draw("nodes", 1, 3) {
			nodes = append(nodes, newNode(fmt.Sprint("n", i), fmt.Sprint(draw("cpu", 1, 64)), fmt.Sprintf("%dGi", draw("memory", 1, 64)),
				gpus(draw("gpus", 0, 8))))
		}
		var pods []*v1.Pod
		for i := range draw("pods", 0, 12) {
			pod := newPod(fmt.Sprint("p", i), "n0", fmt.Sprintf("%dm", draw("cpu", 0, 9000)), fmt.Sprint(draw("memory", 0, 1<<33)))
			requesting(gpuName, draw("gpus", 1, 4))(pod)
			pods = append(pods, pod)
		}
		rate := draw("rate", 1, 200)
		plan, err := Compute(gpuPolicy(fmt.Sprint(rate, "%")), nodes, pods, nil, noon)
		must.Succeed(t, err)
		for name, target := range plan.Target {
			if total := plan.Total[name]; plan.Feasible && total.Cmp(target) < 0 {
				t.Fatalf("%s: total %s, target %s", name, total.String(), target.String())
			}
			// The target itself is at least the rate of the requests of the pods.
			requested := resource.Quantity{}
			for _, pod := range pods {
				requested.Add(pod.Spec.Containers[0].Resources.Requests[name])
			}
			if target.MilliValue()*100 < requested.MilliValue()*rate {
				t.Fatalf("%s: target %s, %d%% of %s", name, target.String(), rate, requested.String())
			}
		}
		for _, group := range plan.Groups {
			fits := false
			for _, node := range nodes {
				gpu := []string{gpuName}
				fits = fits || amountsOf(group.Requests, gpu).FitsIn(amountsOf(node.Status.Allocatable, gpu))
			}
			if !fits {
				t.Fatalf("%s does not fit any node", group.Name)
			}
		}
	})
}

// TestDevicesAreHeld checks that the size of placeholders changes rarely, that their number decreases after a cool-down, and that a
// restarted controller and a changed policy have the expected placeholders.
func TestDevicesAreHeld(t *testing.T) {
	nodes, pods := nodesOf(1, "n", "64", "512Gi", gpus(8)), gpuPods(4, 1, "10", "10Gi")
	tracker := newTracker(t, gpuPolicy("50%"), nodes, pods...)
	after := func(d time.Duration, want string) Plan {
		t.Helper()
		plan := tracker.Next(noon.Add(d))
		if got := groupsOf(plan); got != want {
			t.Errorf("after %s: %s, want %s", d, got, want)
		}
		return plan
	}
	after(0, "web-d1-1: 2 x 10 10Gi 1")
	// The mean of three pods of 10 and one of 9 is 9.75: within a fifth.
	tracker.SetPod(gpuPods(1, 1, "9", "10Gi")[0])
	tracker.DeletePod(pods[0])
	after(time.Second, "web-d1-1: 2 x 10 10Gi 1")
	tracker.DeletePod(pods[1])
	tracker.DeletePod(pods[2])
	held := after(2*time.Second, "web-d1-1: 2 x 10 10Gi 1")
	if want := "2026-03-01T12:10:02Z"; !held.CoolDown || !strings.Contains(strings.Join(held.Reasons, ";"), want) {
		t.Errorf("during the cool-down: reasons %q, want %s", held.Reasons, want)
	}
	// More than the held size is a new size: a tenth more than the mean of 9, 10 and 12, rounded up, which the next pod does not exceed.
	tracker.SetPod(newPod("large", "n0", "12", "10Gi", requesting(gpuName, 1)))
	after(3*time.Second, "web-d1-1: 2 x 11368m 11Gi 1")
	tracker.SetPod(newPod("second", "n0", "12", "10Gi", requesting(gpuName, 1)))
	held = after(3*time.Second, "web-d1-1: 2 x 11368m 11Gi 1")

	restarted := newTracker(t, gpuPolicy("50%"), nodes)
	restarted.Resume(held.Groups)
	if got := groupsOf(restarted.Next(noon.Add(4 * time.Second))); got != groupsOf(held) {
		t.Errorf("after a restart without pods: %s", got)
	}
	must.Succeed(t, tracker.SetPolicy(gpuPolicy("10%")))
	after(5*time.Second, "web-d1-1: 1 x 11368m 11Gi 1")
	tracker.DeleteNode("n0") // placeholders remain: an empty pool is probably a typo in the selector
	after(6*time.Second, "web-d1-1: 1 x 11368m 11Gi 1")
}

// TestPlaceableDevices checks that placeholders with devices and mirrors with devices need free devices of a node.
func TestPlaceableDevices(t *testing.T) {
	nodes := append(nodesOf(2, "n", "64", "512Gi", gpus(8)), nodesOf(1, "cpu", "64", "512Gi")...)
	tracker := newTracker(t, gpuPolicy("100%"), nodes, gpuPods(2, 3, "1", "1Gi")...) // 2 of 8 devices are left on n0, 8 on n1
	if plan := tracker.Next(noon); plan.placeholders() != 2 || tracker.Capacity().Placeable(plan, nil) != 2 {
		t.Errorf("%d of %d placeholders of 3 devices fit", tracker.Capacity().Placeable(plan, nil), plan.placeholders())
	}
	w := newWorkload("3", func(s *v1.PodSpec) {
		s.Containers[0].Resources.Requests[gpuName] = *resource.NewQuantity(4, resource.DecimalSI)
	})
	tracker.SetWorkloads([]Workload{w})
	// The mirrors of 4 devices take all of n1, and nothing of 3 or 4 devices fits n0.
	if plan := tracker.Next(noon); plan.placeholders() != 5 || tracker.Capacity().Placeable(plan, nil) != 2 {
		t.Errorf("%d of %d placeholders of 3 or 4 devices fit", tracker.Capacity().Placeable(plan, nil), plan.placeholders())
	}
}

// TestDeviceTemplates checks that placeholders have equal requests and limits of their device, and are not spread.
func TestDeviceTemplates(t *testing.T) {
	policy := gpuPolicy("100%", func(s *v1alpha1.ResourceSlackSpec) { s.Spread = &v1alpha1.Spread{TopologyKey: "zone"} })
	plan, err := Compute(policy, nodesOf(1, "n", "64", "512Gi", gpus(8)), gpuPods(1, 8, "1", "1Gi"), nil, noon)
	must.Succeed(t, err)
	templates, _ := capacityBuffers(policy, plan, "slack")
	if len(templates) != 1 {
		t.Fatalf("groups %s", groupsOf(plan))
	}
	spec := templates[0].Template.Spec
	limit, request := spec.Containers[0].Resources.Limits[gpuName], spec.Containers[0].Resources.Requests[gpuName]
	if limit.Value() != 8 || request.Value() != 8 || len(spec.Containers[0].Resources.Limits) != 1 ||
		spec.TopologySpreadConstraints != nil {
		t.Errorf("template %+v", spec)
	}
}
