package controlplane

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
)

// RunForAnnotation on a pod whose restart policy lets it end says how long it
// runs before it has succeeded: 30s. Such a pod runs for a second without it.
const RunForAnnotation = "plimsoll.dev/run-for"

// kubelets stand in for the kubelets of all nodes: a node that has said
// nothing of itself becomes Ready, a bound pod runs, one that is meant to end
// succeeds, a deleted one goes away.
type kubelets struct {
	client kubernetes.Interface
	pods   cache.Indexer
	nodes  cache.Indexer
	queue  workqueue.TypedRateLimitingInterface[task]
}

// task is a pod, or a node where the namespace is empty.
type task struct{ namespace, name string }

func newKubelets(client kubernetes.Interface, pods, nodes cache.SharedIndexInformer) (*kubelets, error) {
	k := &kubelets{
		client: client, pods: pods.GetIndexer(), nodes: nodes.GetIndexer(),
		queue: workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[task]()),
	}
	enqueue := func(obj any) {
		if meta, ok := obj.(metav1.Object); ok {
			k.queue.Add(task{meta.GetNamespace(), meta.GetName()})
		}
	}
	handler := cache.ResourceEventHandlerFuncs{AddFunc: enqueue, UpdateFunc: func(_, obj any) { enqueue(obj) }}
	_, podErr := pods.AddEventHandler(handler)
	_, nodeErr := nodes.AddEventHandler(handler)
	return k, errors.Join(podErr, nodeErr)
}

// run works until ctx ends.
func (k *kubelets) run(ctx context.Context) {
	var running sync.WaitGroup
	for range workers {
		running.Go(func() {
			for k.next(ctx) {
			}
		})
	}
	<-ctx.Done()
	k.queue.ShutDown()
	running.Wait()
}

func (k *kubelets) next(ctx context.Context) bool {
	t, shutdown := k.queue.Get()
	if shutdown {
		return false
	}
	defer k.queue.Done(t)
	err := k.sync(ctx, t)
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		klog.FromContext(ctx).V(2).Info("Trying again", "namespace", t.namespace, "name", t.name, "err", err)
		k.queue.AddRateLimited(t)
		return true
	}
	k.queue.Forget(t)
	return true
}

func (k *kubelets) sync(ctx context.Context, t task) error {
	if t.namespace == "" {
		obj, ok, err := k.nodes.GetByKey(t.name)
		if err != nil || !ok {
			return err
		}
		return k.syncNode(ctx, obj.(*v1.Node))
	}
	obj, ok, err := k.pods.GetByKey(t.namespace + "/" + t.name)
	if err != nil || !ok {
		return err
	}
	pod := obj.(*v1.Pod)
	if pod.Spec.NodeName == "" {
		return nil
	}
	return k.syncPod(ctx, pod)
}

// syncNode makes a node Ready that has no say on it yet.
func (k *kubelets) syncNode(ctx context.Context, node *v1.Node) error {
	if slices.ContainsFunc(node.Status.Conditions, func(c v1.NodeCondition) bool { return c.Type == v1.NodeReady }) {
		return nil
	}
	now := metav1.Now()
	ready := v1.NodeCondition{
		Type: v1.NodeReady, Status: v1.ConditionTrue, Reason: "KubeletReady", Message: "simulated kubelet",
		LastHeartbeatTime: now, LastTransitionTime: now,
	}
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": []v1.NodeCondition{ready}}})
	if err != nil {
		return err
	}
	_, err = k.client.CoreV1().Nodes().Patch(ctx, node.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}

func (k *kubelets) syncPod(ctx context.Context, pod *v1.Pod) error {
	switch {
	case pod.DeletionTimestamp != nil:
		return k.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
			GracePeriodSeconds: new(int64), Preconditions: &metav1.Preconditions{UID: &pod.UID},
		})
	case pod.Status.Phase == v1.PodPending:
		return k.setStatus(ctx, pod, v1.PodRunning)
	case pod.Status.Phase == v1.PodRunning && pod.Spec.RestartPolicy != v1.RestartPolicyAlways:
		if left := k.left(pod); left > 0 {
			k.queue.AddAfter(task{pod.Namespace, pod.Name}, left)
			return nil
		}
		return k.setStatus(ctx, pod, v1.PodSucceeded)
	}
	return nil
}

// left returns how much longer a pod that is meant to end runs.
func (k *kubelets) left(pod *v1.Pod) time.Duration {
	if pod.Status.StartTime == nil {
		return 0
	}
	return time.Until(pod.Status.StartTime.Add(runFor(pod.Annotations)))
}

// setStatus writes what a kubelet writes of a pod that is now running, or has
// now succeeded.
func (k *kubelets) setStatus(ctx context.Context, pod *v1.Pod, phase v1.PodPhase) error {
	now := metav1.Now()
	running := phase == v1.PodRunning
	start := pod.Status.StartTime
	if start == nil {
		start = &now
	}
	state := v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: *start}}
	ready, reason := v1.ConditionTrue, ""
	if !running {
		state = v1.ContainerState{Terminated: &v1.ContainerStateTerminated{Reason: "Completed", StartedAt: *start, FinishedAt: now}}
		ready, reason = v1.ConditionFalse, "PodCompleted"
	}
	status := v1.PodStatus{Phase: phase, StartTime: start}
	for _, condition := range []v1.PodConditionType{v1.PodInitialized, v1.ContainersReady, v1.PodReady} {
		value, why := ready, reason
		if condition == v1.PodInitialized {
			value, why = v1.ConditionTrue, ""
		}
		status.Conditions = append(status.Conditions, v1.PodCondition{Type: condition, Status: value, Reason: why, LastTransitionTime: now})
	}
	for _, c := range pod.Spec.Containers {
		status.ContainerStatuses = append(status.ContainerStatuses, v1.ContainerStatus{
			Name: c.Name, Image: c.Image, ImageID: c.Image, Ready: running, Started: &running, State: state,
		})
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": pod.UID}, "status": status})
	if err != nil {
		return err
	}
	_, err = k.client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}
