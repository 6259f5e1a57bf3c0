package main

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/controllers/slack"
)

// serve runs the controllers until ctx ends.
func (o *options) serve(ctx context.Context, config *rest.Config) error {
	ctrl.SetLogger(klog.NewKlogr())
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	informers, err := patientClient(config)
	if err != nil {
		return err
	}
	m, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:           scheme,
		LeaderElection:   o.leaderElect,
		LeaderElectionID: name, LeaderElectionNamespace: o.namespace,
		LeaderElectionReleaseOnCancel: true,
		Metrics:                       metricsserver.Options{BindAddress: o.metrics},
		HealthProbeBindAddress:        o.probes,
		Cache: cache.Options{HTTPClient: informers, DefaultTransform: cache.TransformStripManagedFields(), ByObject: map[client.Object]cache.ByObject{
			&appsv1.Deployment{}: {Transform: slack.Slim}, &appsv1.ReplicaSet{}: {Transform: slack.Slim},
			&appsv1.StatefulSet{}: {Transform: slack.Slim}, &batchv1.Job{}: {Transform: slack.Slim},
		}},
	})
	if err != nil {
		return err
	}
	if err := slack.New(m.GetClient(), m.GetEventRecorder(name), metrics.Registry, o.namespace).Register(m); err != nil {
		return err
	}
	if o.defaultPolicy != nil {
		if err := m.Add(manager.RunnableFunc(func(ctx context.Context) error { return o.makeDefault(ctx, m.GetClient()) })); err != nil {
			return err
		}
	}
	for _, add := range []func(string, healthz.Checker) error{m.AddHealthzCheck, m.AddReadyzCheck} {
		if err := add("ping", healthz.Ping); err != nil {
			return err
		}
	}
	return m.Start(ctx)
}

// makeDefault creates the default policy if it is not there.
func (o *options) makeDefault(ctx context.Context, c client.Client) error {
	policy := o.defaultPolicy.DeepCopy()
	if err := c.Create(ctx, policy); client.IgnoreAlreadyExists(err) != nil {
		return fmt.Errorf("making the default policy: %w", err)
	}
	return nil
}
