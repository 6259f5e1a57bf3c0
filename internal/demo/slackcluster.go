package demo

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
)

// slackCluster is the cluster of the slack scenario: it has workloads, a policy
// perhaps, and nodes that an autoscaler makes.
type slackCluster struct {
	*cluster
	api        client.Client
	autoscaler *autoscaler
}

// slackState is the cluster at one time. Amounts are millicores.
type slackState struct {
	// target and placeholders are those of the policy's status.
	target, available int64
	placeholders      int64
	nodes             []string
	// waiting pods have no node.
	waiting int
	policy  *v1alpha1.ResourceSlack
}

// look returns the cluster as it is. Available is what the nodes have to spare
// at this moment; the policy's status says the same up to a second later.
func (c *slackCluster) look(ctx context.Context) (slackState, error) {
	var state slackState
	nodes, pods, err := c.state(ctx)
	if err != nil {
		return state, err
	}
	for _, node := range nodes {
		state.nodes = append(state.nodes, node.Name)
		if node.Spec.Unschedulable {
			continue // about to go
		}
		state.available += roomOf(node.Status.Allocatable).cpu
		for _, pod := range pods {
			if pod.Spec.NodeName == node.Name {
				state.available -= taken(pod).cpu
			}
		}
	}
	waiting, err := c.client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName="})
	if err != nil {
		return state, err
	}
	state.waiting = len(waiting.Items)
	policy := &v1alpha1.ResourceSlack{}
	if err := c.api.Get(ctx, client.ObjectKey{Name: policyName}, policy); err != nil {
		return state, client.IgnoreNotFound(err)
	}
	state.policy, state.placeholders = policy, policy.Status.Placeholders
	state.target = policy.Status.Target.Cpu().MilliValue()
	return state, nil
}

// moment returns the state for the timeline.
func (c *slackCluster) moment(ctx context.Context) (moment, error) {
	state, err := c.look(ctx)
	return moment{
		target: float64(state.target) / 1000, available: float64(state.available) / 1000,
		nodes: len(state.nodes), waiting: state.waiting,
	}, err
}

// until waits until the cluster is as wanted.
func (c *slackCluster) until(ctx context.Context, what string, as func(slackState) bool) error {
	return c.await(ctx, what, func(ctx context.Context) (bool, error) {
		state, err := c.look(ctx)
		return err == nil && as(state), err
	})
}

func (c *slackCluster) await(ctx context.Context, what string, condition wait.ConditionWithContextFunc) error {
	return await(ctx, 50*time.Millisecond, c.autoscaler.patience, what, condition)
}

// deploy creates a deployment of pods of 1 CPU and 2Gi.
func (c *slackCluster) deploy(ctx context.Context, name string, replicas int32) error {
	labels := map[string]string{"app": name}
	requests := v1.ResourceList{v1.ResourceCPU: resource.MustParse("1"), v1.ResourceMemory: resource.MustParse("2Gi")}
	_, err := c.client.AppsV1().Deployments(namespace).Create(ctx, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: v1.PodSpec{
				Containers: []v1.Container{{Name: "main", Image: "registry.k8s.io/pause:3.10", Resources: v1.ResourceRequirements{Requests: requests}}},
			}},
		},
	}, metav1.CreateOptions{})
	return err
}

// remove removes a deployment and its pods. There is no garbage collector: it
// has to be scaled down first.
func (c *slackCluster) remove(ctx context.Context, name string) error {
	apps, which := c.client.AppsV1(), metav1.ListOptions{LabelSelector: "app=" + name}
	none := []byte(`{"spec":{"replicas":0}}`)
	if _, err := apps.Deployments(namespace).Patch(ctx, name, types.MergePatchType, none, metav1.PatchOptions{}); err != nil {
		return err
	}
	err := c.await(ctx, "the pods of "+name+" to go", func(ctx context.Context) (bool, error) {
		pods, err := c.client.CoreV1().Pods(namespace).List(ctx, which)
		return err == nil && len(pods.Items) == 0, err
	})
	if err != nil {
		return err
	}
	if err := apps.Deployments(namespace).Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		return err
	}
	return apps.ReplicaSets(namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, which)
}

// arrival is a pod of a deployment, the node it was bound to, and how long that
// took from its creation.
type arrival struct {
	pod, node string
	waited    time.Duration
}

// arrive creates a deployment and waits until its pods have nodes. Times are
// those at which this process heard of it: the API has whole seconds only.
func (c *slackCluster) arrive(ctx context.Context, name string, replicas int32) ([]arrival, error) {
	events, err := c.client.CoreV1().Pods(namespace).Watch(ctx, metav1.ListOptions{LabelSelector: "app=" + name})
	if err != nil {
		return nil, err
	}
	defer events.Stop()
	if err := c.deploy(ctx, name, replicas); err != nil {
		return nil, err
	}
	tooLong := time.NewTimer(c.autoscaler.patience)
	defer tooLong.Stop()
	created := map[string]time.Time{}
	var out []arrival
	for len(out) < int(replicas) {
		select {
		case event, ok := <-events.ResultChan():
			pod, isPod := event.Object.(*v1.Pod)
			if !ok || !isPod {
				return nil, fmt.Errorf("watching pods of %s: the watch ended", name)
			}
			if _, known := created[pod.Name]; !known {
				created[pod.Name] = time.Now()
			}
			if pod.Spec.NodeName != "" && !slices.ContainsFunc(out, func(a arrival) bool { return a.pod == pod.Name }) {
				out = append(out, arrival{pod.Name, pod.Spec.NodeName, time.Since(created[pod.Name])})
			}
		case <-tooLong.C:
			return nil, fmt.Errorf("waiting for the pods of %s: %d of %d have a node", name, len(out), replicas)
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	slices.SortFunc(out, func(a, b arrival) int { return strings.Compare(a.pod, b.pod) })
	return out, nil
}
