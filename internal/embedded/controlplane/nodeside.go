package controlplane

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/deployment"
	"k8s.io/kubernetes/pkg/controller/job"
	"k8s.io/kubernetes/pkg/controller/replicaset"
)

// RunForAnnotation is the annotation with the run time, such as 30s, of a pod with a restart policy other
// than Always. The default is one second.
const RunForAnnotation = "plimsoll.dev/run-for"

// workers is the number of workers of each controller.
const workers = 4

// runNodeSide runs the workload controllers and, unless nodes are real, the simulated kubelets until ctx ends.
func runNodeSide(ctx context.Context, config *rest.Config, realNodes bool) {
	config.ContentType = "application/vnd.kubernetes.protobuf"
	client, err := kubernetes.NewForConfig(config)
	if err == nil {
		err = startNodeSide(ctx, client, realNodes)
	}
	if err != nil && ctx.Err() == nil {
		klog.FromContext(ctx).Error(err, "Starting the controllers of the control plane failed")
	}
}

// startNodeSide starts the controllers and runs the simulated kubelets, if any, until ctx ends.
func startNodeSide(ctx context.Context, client kubernetes.Interface, realNodes bool) error {
	factory := informers.NewSharedInformerFactory(client, 0)
	pods, replicaSets := factory.Core().V1().Pods(), factory.Apps().V1().ReplicaSets()
	deployments, err := deployment.NewDeploymentController(ctx, factory.Apps().V1().Deployments(), replicaSets, pods, client)
	if err != nil {
		return fmt.Errorf("deployments: %w", err)
	}
	jobs, err := job.NewController(ctx, client, pods, factory.Batch().V1().Jobs(), nil, nil)
	if err != nil {
		return fmt.Errorf("jobs: %w", err)
	}
	replicas := replicaset.NewReplicaSetController(ctx, replicaSets, pods, client, replicaset.BurstReplicas)
	kubelets, err := newKubelets(client, pods.Informer(), factory.Core().V1().Nodes().Informer())
	if err != nil {
		return fmt.Errorf("kubelets: %w", err)
	}
	factory.Start(ctx.Done())
	for kind, synced := range factory.WaitForCacheSync(ctx.Done()) {
		if !synced {
			return fmt.Errorf("listing %s failed", kind)
		}
	}
	go deployments.Run(ctx, workers)
	go replicas.Run(ctx, workers)
	go jobs.Run(ctx, workers)
	if realNodes {
		<-ctx.Done()
		return nil
	}
	kubelets.run(ctx)
	return nil
}

// kubelets simulates the kubelets of all nodes: it makes nodes without a Ready condition Ready and bound
// pods Running, completes pods after their run time, and deletes pods with a deletion timestamp.
type kubelets struct {
	client kubernetes.Interface
	pods   cache.Indexer
	nodes  cache.Indexer
	queue  workqueue.TypedRateLimitingInterface[task]
}

// task is a pod, or a node if the namespace is empty.
type task struct{ namespace, name string }

// newKubelets returns the kubelets for the nodes and pods of two informers.
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

// run processes changes until ctx ends.
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

// next processes one change. It reports whether there may be more.
func (k *kubelets) next(ctx context.Context) bool {
	t, shutdown := k.queue.Get()
	if shutdown {
		return false
	}
	defer k.queue.Done(t)
	err := k.sync(ctx, t)
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		klog.FromContext(ctx).V(2).Info("Syncing failed and will be retried", "namespace", t.namespace, "name", t.name, "err", err)
		k.queue.AddRateLimited(t)
		return true
	}
	k.queue.Forget(t)
	return true
}

// sync updates the status of a node or a pod.
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

// syncNode makes a node Ready, unless it has a Ready condition.
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

// syncPod starts, completes or deletes a bound pod.
func (k *kubelets) syncPod(ctx context.Context, pod *v1.Pod) error {
	switch {
	case pod.DeletionTimestamp != nil:
		return k.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
			GracePeriodSeconds: new(int64), Preconditions: &metav1.Preconditions{UID: &pod.UID},
		})
	case pod.Status.Phase == v1.PodPending:
		return k.setStatus(ctx, pod, v1.PodRunning)
	case pod.Status.Phase == v1.PodRunning && pod.Spec.RestartPolicy != v1.RestartPolicyAlways:
		if remaining := remainingTime(pod); remaining > 0 {
			k.queue.AddAfter(task{pod.Namespace, pod.Name}, remaining)
			return nil
		}
		return k.setStatus(ctx, pod, v1.PodSucceeded)
	}
	return nil
}

// remainingTime returns the time until a pod completes.
func remainingTime(pod *v1.Pod) time.Duration {
	if pod.Status.StartTime == nil {
		return 0
	}
	runTime, err := time.ParseDuration(pod.Annotations[RunForAnnotation])
	if err != nil || runTime < 0 {
		runTime = time.Second
	}
	return time.Until(pod.Status.StartTime.Add(runTime))
}

// setStatus writes the status of a pod that has started running or has succeeded.
func (k *kubelets) setStatus(ctx context.Context, pod *v1.Pod, phase v1.PodPhase) error {
	now := metav1.Now()
	running := phase == v1.PodRunning
	start := pod.Status.StartTime
	if start == nil {
		start = &now
	}
	state := v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: *start}}
	ready := v1.PodCondition{Status: v1.ConditionTrue, LastTransitionTime: now}
	if !running {
		ready.Status, ready.Reason = v1.ConditionFalse, "PodCompleted"
		state = v1.ContainerState{Terminated: &v1.ContainerStateTerminated{Reason: "Completed", StartedAt: *start, FinishedAt: now}}
	}
	status := v1.PodStatus{Phase: phase, StartTime: start, Conditions: []v1.PodCondition{
		{Type: v1.PodInitialized, Status: v1.ConditionTrue, LastTransitionTime: now}, ready, ready,
	}}
	status.Conditions[1].Type, status.Conditions[2].Type = v1.ContainersReady, v1.PodReady
	for _, c := range pod.Spec.Containers {
		status.ContainerStatuses = append(status.ContainerStatuses, v1.ContainerStatus{
			Name: c.Name, Image: c.Image, ImageID: c.Image, Ready: running, Started: &running, State: state,
		})
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": pod.UID}, "status": status})
	if err != nil {
		return err
	}
	_, err = k.client.CoreV1().Pods(
		pod.Namespace,
	).Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}
