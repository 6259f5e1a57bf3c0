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

// workers is how many changes each controller works on at a time.
const workers = 4

// runNodeSide runs what stands behind the API until ctx ends: the controllers
// that turn workloads into pods, and the simulated kubelets.
func runNodeSide(ctx context.Context, config *rest.Config) {
	config.ContentType = "application/vnd.kubernetes.protobuf"
	client, err := kubernetes.NewForConfig(config)
	if err == nil {
		err = startNodeSide(ctx, client)
	}
	if err != nil && ctx.Err() == nil {
		klog.FromContext(ctx).Error(err, "The controllers of the control plane do not run")
	}
}

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
			return fmt.Errorf("no list of %s", kind)
		}
	}
	go deployments.Run(ctx, workers)
	go replicas.Run(ctx, workers)
	go jobs.Run(ctx, workers)
	kubelets.run(ctx)
	return nil
}

// runFor returns how long a pod that is meant to end runs.
func runFor(annotations map[string]string) time.Duration {
	if d, err := time.ParseDuration(annotations[RunForAnnotation]); err == nil && d >= 0 {
		return d
	}
	return time.Second
}
