package main

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/plimsoll-k8s/plimsoll/lab/nodes/realnodes"
)

const (
	namespace = "experiment"
	// podTimeout bounds the time until all pods run or are gone.
	podTimeout = 2 * time.Minute
	// graceSeconds is the grace period of all pods.
	graceSeconds = int64(1)
)

// podSpec returns a pod of the program work.
func podSpec(arguments []string, request int, scheduler string) v1.PodSpec {
	requests := v1.ResourceList{}
	if request > 0 {
		requests[v1.ResourceCPU] = *resource.NewMilliQuantity(int64(request), resource.DecimalSI)
		requests[v1.ResourceMemory] = resource.MustParse("16Mi")
	}
	return v1.PodSpec{
		SchedulerName:                 scheduler,
		TerminationGracePeriodSeconds: new(graceSeconds),
		DNSPolicy:                     v1.DNSDefault,
		AutomountServiceAccountToken:  new(false),
		Containers: []v1.Container{{
			Name: "main", Image: realnodes.Image, ImagePullPolicy: v1.PullNever, Args: arguments,
			Resources: v1.ResourceRequirements{Requests: requests},
		}},
	}
}

// startServices creates the latency service of each node, which no scheduler places, and sends requests to them until ctx ends.
func (e *experiment) startServices(ctx context.Context, scheduler string) (clients []*client, err error) {
	space := &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	_, _ = e.cluster.Client.CoreV1().Namespaces().Create(ctx, space, metav1.CreateOptions{}) // exists from the second run on
	pods := e.cluster.Client.CoreV1().Pods(namespace)
	owner := metav1.OwnerReference{
		APIVersion: "apps/v1", Kind: "DaemonSet", Name: "service", UID: "d0000000-0000-0000-0000-000000000000", Controller: new(true),
	}
	for _, node := range e.cluster.Nodes {
		name := "service-" + node.Name
		p := &v1.Pod{Spec: podSpec([]string{"serve", "-work", serviceWork.String()}, int(serviceDemand), scheduler)}
		p.Name, p.Labels, p.OwnerReferences = name, map[string]string{"app": name}, []metav1.OwnerReference{owner}
		p.Spec.NodeName = node.Name
		if _, err := pods.Create(ctx, p, metav1.CreateOptions{}); err != nil {
			return nil, err
		}
	}
	for i, node := range e.cluster.Nodes {
		address := ""
		err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, podTimeout, true, func(ctx context.Context) (bool, error) {
			p, err := pods.Get(ctx, "service-"+node.Name, metav1.GetOptions{})
			if err != nil {
				return false, err
			}
			address = p.Status.PodIP
			return p.Status.Phase == v1.PodRunning && address != "", nil
		})
		if err != nil {
			return nil, fmt.Errorf("waiting for the service of %s: %w", node.Name, err)
		}
		phase := time.Second / serviceRate * time.Duration(i) / time.Duration(e.Nodes)
		clients = append(clients, startClient(ctx, "http://"+address+":8080/", phase))
	}
	return clients, nil
}

// createPods creates a Deployment for each workload and scales them up, one pod after the other.
func (e *experiment) createPods(ctx context.Context, s *scenario, scheduler string, epoch time.Time) error {
	deployments := e.cluster.Client.AppsV1().Deployments(namespace)
	scale := map[*workload]int{}
	for _, p := range s.order {
		w := p.workload
		scale[w]++
		if scale[w] > 1 {
			patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, scale[w])
			if _, err := deployments.Patch(ctx, w.name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
				return err
			}
		} else {
			// Pods of a Deployment are equal: each follows the mean of the recorded usage of both.
			values := make([]float64, series)
			for i := range values {
				values[i] = (w.values[0][i] + w.values[1][i]) / 2
			}
			labels := map[string]string{"app": w.name}
			d := &appsv1.Deployment{}
			d.Name, d.Spec.Replicas, d.Spec.Selector = w.name, new(int32(1)), &metav1.LabelSelector{MatchLabels: labels}
			d.Spec.Template.Labels = labels
			d.Spec.Template.Spec = podSpec(w.arguments(values, &e.settings, epoch), w.request, scheduler)
			if _, err := deployments.Create(ctx, d, metav1.CreateOptions{}); err != nil {
				return err
			}
		}
		if err := sleep(ctx, e.Every); err != nil {
			return err
		}
	}
	return nil
}

// awaitRunning waits until a number of pods run.
func (e *experiment) awaitRunning(ctx context.Context, want int, result *Result) error {
	err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, 20*time.Second, true, func(ctx context.Context) (bool, error) {
		list, err := e.cluster.Client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		running := 0
		for i := range list.Items {
			if list.Items[i].Status.Phase == v1.PodRunning {
				running++
			}
		}
		result.Pending = want - running
		return result.Pending == 0, nil
	})
	if ctx.Err() == nil && wait.Interrupted(err) {
		return nil // pods that stay pending are part of the result
	}
	return err
}

// deletePods deletes everything of a run. The control plane has no garbage collector, and its controllers may create pods until they know
// what was deleted: it deletes until nothing is left.
func (e *experiment) deletePods(ctx context.Context) {
	apps, pods := e.cluster.Client.AppsV1(), e.cluster.Client.CoreV1().Pods(namespace)
	options, everything := metav1.DeleteOptions{GracePeriodSeconds: new(graceSeconds)}, metav1.ListOptions{}
	_ = wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, podTimeout, true, func(ctx context.Context) (bool, error) {
		_ = apps.Deployments(namespace).DeleteCollection(ctx, options, everything)
		_ = apps.ReplicaSets(namespace).DeleteCollection(ctx, options, everything)
		_ = pods.DeleteCollection(ctx, options, everything)
		list, err := pods.List(ctx, everything)
		return err == nil && len(list.Items) == 0, nil
	})
}
