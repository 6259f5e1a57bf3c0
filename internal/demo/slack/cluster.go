package slack

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/demo"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
)

// cluster is the cluster of the scenario, whose nodes an autoscaler adds and removes, with the stand-in and, unless the cluster is
// external, the slack controller.
type cluster struct {
	*demo.Cluster
	// ctx ends when the stand-in and the controller stop. If the controller has exited by itself, the reason is the cause.
	ctx     context.Context
	stop    context.CancelCauseFunc
	running sync.WaitGroup
}

// state is the state of the cluster. Amounts are millicores.
type state struct {
	// target and placeholders are from the status of the policy.
	target, placeholders int64
	// available is the free capacity of the nodes. The policy's status has the same value up to a
	// second later.
	available int64
	nodes     []string
	// policy is nil before it is created.
	policy *v1alpha1.ResourceSlack
}

// state returns the present state.
func (c *cluster) state(ctx context.Context) (state, error) {
	var out state
	nodes, pods, err := c.State(ctx)
	if err != nil {
		return out, err
	}
	for _, node := range nodes {
		out.nodes = append(out.nodes, node.Name)
		if node.Spec.Unschedulable {
			continue // about to be removed
		}
		out.available += allocatable(node).CPU
		for _, pod := range pods {
			if pod.Spec.NodeName == node.Name {
				out.available -= recording.PodAmounts(pod).CPU
			}
		}
	}
	policy := &v1alpha1.ResourceSlack{}
	if err := c.API.Get(ctx, client.ObjectKey{Name: policyName}, policy); err != nil {
		return out, client.IgnoreNotFound(err)
	}
	out.policy, out.placeholders = policy, policy.Status.Placeholders
	out.target = policy.Status.Target.Cpu().MilliValue()
	return out, nil
}

// awaitState waits until a condition on the state is true.
func (c *cluster) awaitState(ctx context.Context, what string, condition func(state) bool) error {
	return c.Await(ctx, what, func(ctx context.Context) (bool, error) {
		now, err := c.state(ctx)
		return err == nil && condition(now), err
	})
}

// podSpec is the spec of all pods.
var podSpec = demo.Pod{Request: "1", Limit: "1", MemoryRequest: "2Gi", MemoryLimit: "2Gi"}.Object(demo.DefaultProfile).Spec

// deploy creates a deployment of pods with a node selector.
func (c *cluster) deploy(ctx context.Context, name string, replicas int32, selector map[string]string) error {
	labels := map[string]string{"app": name}
	spec := podSpec.DeepCopy()
	spec.NodeSelector = selector
	_, err := c.Client.AppsV1().Deployments(demo.Namespace).Create(ctx, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: *spec},
		},
	}, metav1.CreateOptions{})
	return err
}

// deletePods deletes a deployment and its pods. It scales the deployment down first, because the
// control plane has no garbage collector.
func (c *cluster) deletePods(ctx context.Context, name string) error {
	apps, selector := c.Client.AppsV1(), metav1.ListOptions{LabelSelector: "app=" + name}
	none := []byte(`{"spec":{"replicas":0}}`)
	if _, err := apps.Deployments(demo.Namespace).Patch(ctx, name, types.MergePatchType, none, metav1.PatchOptions{}); err != nil {
		return err
	}
	err := c.Await(ctx, "the pods of "+name+" to be deleted", func(ctx context.Context) (bool, error) {
		pods, err := c.Client.CoreV1().Pods(demo.Namespace).List(ctx, selector)
		return err == nil && len(pods.Items) == 0, err
	})
	if err != nil {
		return err
	}
	if err := apps.Deployments(demo.Namespace).Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		return err
	}
	return apps.ReplicaSets(demo.Namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, selector)
}

// boundPod is a pod of a deployment, its node, and the time from its creation to its binding.
type boundPod struct {
	pod, node string
	waited    time.Duration
}

// createPods creates a deployment with a node selector and waits until its pods are bound. The times are
// when this process observed the changes, because API timestamps are in seconds.
func (c *cluster) createPods(ctx context.Context, name string, replicas int32, selector map[string]string) ([]boundPod, error) {
	ctx, cancel := context.WithTimeout(ctx, demo.Timeout)
	defer cancel()
	events, err := c.Client.CoreV1().Pods(demo.Namespace).Watch(ctx, metav1.ListOptions{LabelSelector: "app=" + name})
	if err != nil {
		return nil, err
	}
	defer events.Stop()
	if err := c.deploy(ctx, name, replicas, selector); err != nil {
		return nil, err
	}
	created := map[string]time.Time{}
	var out []boundPod
	for event := range events.ResultChan() {
		pod, isPod := event.Object.(*v1.Pod)
		if !isPod {
			break // an error
		}
		if _, known := created[pod.Name]; !known {
			created[pod.Name] = time.Now()
		}
		if pod.Spec.NodeName != "" && !slices.ContainsFunc(out, func(p boundPod) bool { return p.pod == pod.Name }) {
			out = append(out, boundPod{pod.Name, pod.Spec.NodeName, time.Since(created[pod.Name])})
		}
		if len(out) == int(replicas) {
			slices.SortFunc(out, func(a, b boundPod) int { return strings.Compare(a.pod, b.pod) })
			return out, nil
		}
	}
	err = cmp.Or(context.Cause(ctx), errors.New("the watch ended"))
	return nil, fmt.Errorf("waiting for the pods of %s: %d of %d are bound: %w", name, len(out), replicas, err)
}
