package controlplane

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/deployment"
	"k8s.io/kubernetes/pkg/controller/job"
	"k8s.io/kubernetes/pkg/controller/replicaset"
)

// workers is the number of workers of each controller.
const workers = 4

// runNodeSide runs the workload controllers and the simulated kubelets until ctx ends.
func runNodeSide(ctx context.Context, config *rest.Config) {
	config.ContentType = "application/vnd.kubernetes.protobuf"
	client, err := kubernetes.NewForConfig(config)
	if err == nil {
		err = startNodeSide(ctx, client)
	}
	if err != nil && ctx.Err() == nil {
		klog.FromContext(ctx).Error(err, "Starting the controllers of the control plane failed")
	}
}

// startNodeSide starts the controllers and runs the kubelets until ctx ends.
func startNodeSide(ctx context.Context, client kubernetes.Interface) error {
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
	kubelets.run(ctx)
	return nil
}

// runFor returns the run time of a pod with these annotations.
func runFor(annotations map[string]string) time.Duration {
	if d, err := time.ParseDuration(annotations[RunForAnnotation]); err == nil && d >= 0 {
		return d
	}
	return time.Second
}
