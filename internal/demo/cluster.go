package demo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-k8s/plimsoll/internal/kube"
)

// Namespace is the namespace of the demo's pods.
const Namespace = v1.NamespaceDefault

// probePrefix begins the names of probe nodes and probe pods.
const probePrefix = "probe-"

// IsProbe reports whether a node or a pod belongs to a probe.
func IsProbe(name string) bool { return strings.HasPrefix(name, probePrefix) }

// ProbeKey is the key of the taint of probe nodes and of the label of probed clusters.
const ProbeKey = "plimsoll.dev/probe"

// Node is a simulated node. The memory is 64Gi if empty.
type Node struct {
	Name, CPU, Memory string
}

// Pod is a pod of one container. Empty amounts are not declared.
type Pod struct {
	Name string
	// Node is the node of a pod that runs from the start.
	Node                       string
	Request, Limit             string // CPU
	MemoryRequest, MemoryLimit string
}

// Cluster is the cluster with the operations that the demos need.
type Cluster struct {
	Client kubernetes.Interface
	// API reads and writes all types of the project.
	API client.Client

	probes int // number of probes so far
}

// newCluster returns a cluster.
func newCluster(access *rest.Config) (*Cluster, error) {
	typed, err := kubernetes.NewForConfig(access)
	if err != nil {
		return nil, err
	}
	api, err := client.New(access, client.Options{Scheme: kube.Scheme()})
	return &Cluster{Client: typed, API: api}, err
}

// listOf returns a list of the amounts that are not empty.
func listOf(cpu, memory string) v1.ResourceList {
	list := v1.ResourceList{}
	if cpu != "" {
		list[v1.ResourceCPU] = resource.MustParse(cpu)
	}
	if memory != "" {
		list[v1.ResourceMemory] = resource.MustParse(memory)
	}
	return list
}

// Object returns the node as an API object.
func (n Node) Object() *v1.Node {
	memory := n.Memory
	if memory == "" {
		memory = "64Gi"
	}
	amounts := listOf(n.CPU, memory)
	amounts[v1.ResourcePods] = resource.MustParse("110")
	return &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: n.Name, Labels: map[string]string{v1.LabelHostname: n.Name}},
		Status:     v1.NodeStatus{Capacity: amounts, Allocatable: amounts},
	}
}

// Object returns the pod as an API object for a scheduler profile.
func (p Pod) Object(schedulerName string) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: p.Name, Namespace: Namespace},
		Spec: v1.PodSpec{
			NodeName: p.Node, SchedulerName: schedulerName,
			Containers: []v1.Container{{
				Name: "main", Image: "registry.k8s.io/pause:3.10",
				Resources: v1.ResourceRequirements{
					Requests: listOf(p.Request, p.MemoryRequest), Limits: listOf(p.Limit, p.MemoryLimit),
				},
			}},
		},
	}
}

// DeletePod deletes a pod without a grace period.
func (c *Cluster) DeletePod(ctx context.Context, name string) error {
	return c.API.Delete(ctx, Pod{Name: name}.Object(""), client.GracePeriodSeconds(0))
}

// AwaitScheduled waits until a pod is bound, and returns its node, or until it is unschedulable, and
// returns Pending.
func (c *Cluster) AwaitScheduled(ctx context.Context, name string) (string, error) {
	var outcome string
	err := c.Await(ctx, "pod "+name+" to be scheduled", func(ctx context.Context) (bool, error) {
		pod, err := c.Client.CoreV1().Pods(Namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		outcome = pod.Spec.NodeName
		if IsUnschedulable(pod) {
			outcome = Pending
		}
		return outcome != "", nil
	})
	return outcome, err
}

// IsUnschedulable reports whether the scheduler has found no node for a pod.
func IsUnschedulable(pod *v1.Pod) bool {
	return pod.Spec.NodeName == "" && pod.DeletionTimestamp == nil &&
		slices.ContainsFunc(pod.Status.Conditions, func(c v1.PodCondition) bool {
			return c.Type == v1.PodScheduled && c.Status == v1.ConditionFalse && c.Reason == v1.PodReasonUnschedulable
		})
}

// State returns all nodes and all pods, sorted by name.
func (c *Cluster) State(ctx context.Context) ([]v1.Node, []v1.Pod, error) {
	var nodes v1.NodeList
	var pods v1.PodList
	err := errors.Join(c.API.List(ctx, &nodes), c.API.List(ctx, &pods))
	return nodes.Items, pods.Items, err
}

// Settle waits until the scheduler has observed the present nodes and bound pods, so that its next
// decision is about the present state. The scheduler observes nodes in the order of their changes, and
// pods in the order of theirs: when it has bound the pod that was created last to the node that was
// created last, it has observed all earlier changes. A taint keeps other pods off the probe node. Each
// probe node has a new name, or the pod might be bound to a cached earlier probe node.
func (c *Cluster) Settle(ctx context.Context) error {
	c.probes++
	name := fmt.Sprint(probePrefix, c.probes)
	node := Node{Name: name, CPU: "1"}.Object()
	node.Spec.Taints = []v1.Taint{{Key: ProbeKey, Effect: v1.TaintEffectNoSchedule}}
	if err := c.API.Create(ctx, node); err != nil {
		return err
	}
	pod := Pod{Name: name}.Object(DefaultProfile)
	pod.Spec.NodeSelector = map[string]string{v1.LabelHostname: name}
	pod.Spec.Tolerations = []v1.Toleration{{Key: ProbeKey, Operator: v1.TolerationOpExists}}
	if err := c.API.Create(ctx, pod); err != nil {
		return err
	}
	err := c.Await(ctx, "the scheduler to bind the probe pod", func(ctx context.Context) (bool, error) {
		pod, err := c.Client.CoreV1().Pods(Namespace).Get(ctx, name, metav1.GetOptions{})
		return err == nil && pod.Spec.NodeName != "", err
	})
	if err != nil {
		return err
	}
	if err := c.DeletePod(ctx, name); err != nil {
		return err
	}
	return c.API.Delete(ctx, node)
}

// Clear deletes all nodes and pods.
func (c *Cluster) Clear(ctx context.Context) error {
	pods := []client.DeleteAllOfOption{client.InNamespace(Namespace), client.GracePeriodSeconds(0)}
	// Pending pods first: otherwise they would be bound when other pods are deleted.
	if err := c.API.DeleteAllOf(ctx, &v1.Pod{}, append(pods, client.MatchingFields{"spec.nodeName": ""})...); err != nil {
		return err
	}
	if err := c.API.DeleteAllOf(ctx, &v1.Pod{}, pods...); err != nil {
		return err
	}
	if err := c.API.DeleteAllOf(ctx, &v1.Node{}, client.GracePeriodSeconds(0)); err != nil {
		return err
	}
	return c.Settle(ctx)
}

// Timeout bounds each wait for the cluster.
const Timeout = 30 * time.Second

// Await polls a condition until it is true. If it does not become true within Timeout, the
// error says what Await was waiting for; if ctx ends, the error is its cause.
func (c *Cluster) Await(ctx context.Context, what string, condition wait.ConditionWithContextFunc) error {
	if err := wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, Timeout, true, condition); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return fmt.Errorf("waiting for %s: %w", what, err)
	}
	return nil
}
