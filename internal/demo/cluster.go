package demo

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/kubernetes/pkg/scheduler"

	"github.com/plimsoll-k8s/plimsoll/internal/kube/facts"
)

// namespace that the demo's pods are in.
const namespace = v1.NamespaceDefault

// cluster is the control plane as the demo uses it: through the API, but for
// the question whether the scheduler has heard of everything.
type cluster struct {
	client kubernetes.Interface
	// scheduler is nil where it is in another process.
	scheduler *scheduler.Scheduler
	// probes is how many have been sent.
	probes int
}

// resources returns a list with what is declared.
func resources(cpu, memory string) v1.ResourceList {
	list := v1.ResourceList{}
	if cpu != "" {
		list[v1.ResourceCPU] = resource.MustParse(cpu)
	}
	if memory != "" {
		list[v1.ResourceMemory] = resource.MustParse(memory)
	}
	return list
}

// object returns the node as the API knows it.
func (n Node) object() *v1.Node {
	memory := n.Memory
	if memory == "" {
		memory = "64Gi"
	}
	amounts := resources(n.CPU, memory)
	amounts[v1.ResourcePods] = resource.MustParse("110")
	return &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: n.Name, Labels: map[string]string{v1.LabelHostname: n.Name}},
		Status:     v1.NodeStatus{Capacity: amounts, Allocatable: amounts},
	}
}

// object returns the pod as the API knows it, for a scheduler of that name.
func (p Pod) object(schedulerName string) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: p.Name, Namespace: namespace},
		Spec: v1.PodSpec{
			NodeName: p.Node, SchedulerName: schedulerName,
			Containers: []v1.Container{{
				Name: "main", Image: "registry.k8s.io/pause:3.10",
				Resources: v1.ResourceRequirements{
					Requests: resources(p.Request, p.MemoryRequest), Limits: resources(p.Limit, p.MemoryLimit),
				},
			}},
		},
	}
}

func (c *cluster) createNode(ctx context.Context, n Node) error {
	_, err := c.client.CoreV1().Nodes().Create(ctx, n.object(), metav1.CreateOptions{})
	return err
}

func (c *cluster) createPod(ctx context.Context, p Pod, schedulerName string) (*v1.Pod, error) {
	return c.client.CoreV1().Pods(namespace).Create(ctx, p.object(schedulerName), metav1.CreateOptions{})
}

// deletePod deletes a pod, at once.
func (c *cluster) deletePod(ctx context.Context, name string) error {
	return c.client.CoreV1().Pods(namespace).Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)})
}

// outcome waits until a pod is bound, and returns the node, or found not to
// fit, and returns Pending.
func (c *cluster) outcome(ctx context.Context, name string) (string, error) {
	var outcome string
	err := c.await(ctx, "pod "+name+" to be scheduled", func(ctx context.Context) (bool, error) {
		pod, err := c.client.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		outcome = pod.Spec.NodeName
		if unschedulable(pod) {
			outcome = Pending
		}
		return outcome != "", nil
	})
	return outcome, err
}

// state returns all nodes, and the pods that have one, in the order of their
// names.
func (c *cluster) state(ctx context.Context) ([]*v1.Node, []*v1.Pod, error) {
	nodes, err := c.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, nil, err
	}
	pods, err := c.client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, nil, err
	}
	var nodeList []*v1.Node
	for i := range nodes.Items {
		nodeList = append(nodeList, &nodes.Items[i])
	}
	var bound []*v1.Pod
	for i := range pods.Items {
		if pod := &pods.Items[i]; facts.OccupiesNode(pod) {
			bound = append(bound, pod)
		}
	}
	return nodeList, bound, nil
}

// settle waits until the scheduler has heard of every node and of every bound
// pod, and of nothing else, so that what comes next meets the state it is
// meant to meet.
func (c *cluster) settle(ctx context.Context) error {
	if c.scheduler == nil {
		return c.probe(ctx)
	}
	return c.await(ctx, "the scheduler to hear of all nodes and pods", func(ctx context.Context) (bool, error) {
		nodes, pods, err := c.state(ctx)
		if err != nil {
			return false, err
		}
		known := c.scheduler.Cache.Dump()
		if len(known.Nodes) != len(nodes) {
			return false, nil
		}
		want, have := len(pods), 0
		for _, node := range nodes {
			info, ok := known.Nodes[node.Name]
			if !ok || info.Node() == nil {
				return false, nil
			}
			have += len(info.Pods)
		}
		return want == have, nil
	})
}

// clear removes all nodes and pods.
func (c *cluster) clear(ctx context.Context) error {
	force := metav1.DeleteOptions{GracePeriodSeconds: new(int64)}
	// Pending pods go first, or they would be bound where others make room.
	for _, which := range []string{"spec.nodeName=", ""} {
		if err := c.client.CoreV1().Pods(namespace).DeleteCollection(ctx, force, metav1.ListOptions{FieldSelector: which}); err != nil {
			return err
		}
	}
	if err := c.client.CoreV1().Nodes().DeleteCollection(ctx, force, metav1.ListOptions{}); err != nil {
		return err
	}
	return c.settle(ctx)
}

func (c *cluster) await(ctx context.Context, what string, condition wait.ConditionWithContextFunc) error {
	return await(ctx, 10*time.Millisecond, patience, what, condition)
}
