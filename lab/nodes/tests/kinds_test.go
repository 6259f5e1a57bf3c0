//go:build nodes

package tests

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// kindsNode is the node of the pool.
const kindsNode = "node-4"

// staticPod is the name of the mirror pod of the static pod: the kubelet adds the name of the node.
const staticPod = "static-" + kindsNode

// kindsCPU are the requests in millicores of the pods of testKinds that take part of the node, by name. The request of a container with
// limits only is its limit. A finished pod takes nothing.
var kindsCPU = map[string]int64{staticPod: 30, "limits-only": 50, "crashing": 20, "greedy": 10}

// killed is the pod that the kernel kills for its memory.
const killed = "greedy"

// testKinds expects that the scheduler, a snapshot and its simulation count static, finished and crashing pods and pods with limits only as
// the kubelet does.
func testKinds(t *testing.T) {
	startKinds(t)
	free := int64(nodeCPU)
	for _, millicores := range kindsCPU {
		free -= millicores
	}

	// The scheduler knows to the millicore what is free.
	for _, profile := range []string{"default-scheduler", "plimsoll-predicted"} {
		tooLarge := request(newPod("too-large", kindsPool), free+1)
		tooLarge.Spec.SchedulerName = profile
		create(t, tooLarge)
		await(t, tooLarge.Name, "fits on no node", isUnschedulable)
		remove(t, tooLarge.Name)
		fitting := request(newPod("fitting", kindsPool), free)
		fitting.Spec.SchedulerName = profile
		create(t, fitting)
		await(t, fitting.Name, "runs", isRunning)
		if profile == "plimsoll-predicted" {
			break // the snapshot has it
		}
		remove(t, fitting.Name)
	}

	file := filepath.Join(t.TempDir(), "kinds.ndjson.gz")
	plimsoll(t, "snapshot", "-o", file)
	instant, err := recording.OpenAt(file, time.Time{})
	must.Succeed(t, err)
	for _, pod := range instant.Objects.Pending {
		if pod.Spec.NodeSelector["pool"] == kindsPool || pod.Name == staticPod {
			t.Errorf("pod %s is pending in the snapshot", pod.Name)
		}
	}
	sum, names := requestsOn(instant.Objects.Running, kindsNode)
	if sum != nodeCPU {
		t.Errorf("the pods of the snapshot request %dm of %s, want %dm: %v", sum, kindsNode, nodeCPU, names)
	}
	if strings.Contains(strings.Join(names, " "), "finished") {
		t.Error("the finished pod runs in the snapshot")
	}
	// The simulation of the snapshot begins with the same pods on the same node, none of which is scheduled again.
	input, err := recording.Source{Recording: file}.Input()
	must.Succeed(t, err)
	var placed []*v1.Pod
	for i := range input.Pods {
		placed = append(placed, input.Pods[i].Object)
	}
	if simulated, names := requestsOn(placed, kindsNode); simulated != nodeCPU {
		t.Errorf("the simulation begins with requests of %dm on %s, want %dm: %v", simulated, kindsNode, nodeCPU, names)
	}
}

// startKinds starts the pods, and waits until each is what it should be.
func startKinds(t *testing.T) {
	t.Helper()
	static := request(newPod("static", "", "pause"), kindsCPU[staticPod])
	static.TypeMeta, static.Namespace, static.Spec.NodeSelector = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, namespace, nil
	manifest, err := yaml.Marshal(static)
	must.Succeed(t, err)
	must.Succeed(t, os.WriteFile(filepath.Join(cluster.Nodes[3].StaticPods, "static.yaml"), manifest, 0o644))
	// The scheduler knows the static pod by its mirror pod. It would give the kubelet more pods than it admits.
	await(t, staticPod, "runs", isRunning)

	limited := newPod("limits-only", kindsPool, "burn", "-cpu", "5")
	limited.Spec.Containers[0].Resources.Limits = v1.ResourceList{
		v1.ResourceCPU:    *resource.NewMilliQuantity(kindsCPU["limits-only"], resource.DecimalSI),
		v1.ResourceMemory: resource.MustParse("64Mi"),
	}
	keep(t, limited)
	finished := request(newPod("finished", kindsPool, "pause", "-for", "1s"), 60)
	finished.Spec.RestartPolicy = v1.RestartPolicyNever
	keep(t, finished)
	keep(t, request(newPod("crashing", kindsPool, "pause", "-for", "1s", "-code", "1"), kindsCPU["crashing"]))
	// It uses 64 of 32 MiB.
	greedy := request(newPod(killed, kindsPool, "memory", "-mib", "64"), kindsCPU[killed])
	greedy.Spec.Containers[0].Resources.Limits = v1.ResourceList{v1.ResourceMemory: resource.MustParse("32Mi")}
	keep(t, greedy)

	await(t, limited.Name, "runs", isRunning)
	await(t, finished.Name, "has finished", func(pod *v1.Pod) bool { return pod.Status.Phase == v1.PodSucceeded })
	await(t, "crashing", "has crashed", func(pod *v1.Pod) bool { return restarts(pod) > 0 })
	await(t, killed, "was killed for its memory", func(pod *v1.Pod) bool {
		return len(pod.Status.ContainerStatuses) > 0 && slices.ContainsFunc([]v1.ContainerState{
			pod.Status.ContainerStatuses[0].State, pod.Status.ContainerStatuses[0].LastTerminationState,
		}, func(state v1.ContainerState) bool {
			return state.Terminated != nil && state.Terminated.Reason == "OOMKilled"
		})
	})
}

func restarts(pod *v1.Pod) int32 {
	if len(pod.Status.ContainerStatuses) == 0 {
		return 0
	}
	return pod.Status.ContainerStatuses[0].RestartCount
}

// keep creates a pod, which exists until the end of the cluster: later tests look at it, too.
func keep(t *testing.T, pod *v1.Pod) {
	t.Helper()
	_, err := cluster.Client.CoreV1().Pods(namespace).Create(t.Context(), pod, metav1.CreateOptions{})
	must.Succeed(t, err)
}

// requestsOn returns the CPU requests of the pods on a node in millicores, and their names.
func requestsOn(pods []*v1.Pod, node string) (sum int64, names []string) {
	for _, pod := range pods {
		if pod.Spec.NodeName == node {
			cpu := recording.PodAmounts(pod).CPU
			sum += cpu
			names = append(names, fmt.Sprintf("%s %dm", pod.Name, cpu))
		}
	}
	return sum, names
}
