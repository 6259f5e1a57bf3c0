package controller

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	runtimemanager "sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/plimsoll-k8s/plimsoll/internal/controllers/placement"
	"github.com/plimsoll-k8s/plimsoll/internal/controllers/setup"
	"github.com/plimsoll-k8s/plimsoll/internal/controllers/slack"
)

// serve runs the controllers until ctx ends.
func (o *options) serve(ctx context.Context, config *rest.Config) error {
	ctrl.SetLogger(klog.NewKlogr())
	m, err := setup.New(config, o.managerOptions(name))
	if err != nil {
		return err
	}
	if slices.Contains(o.controllers, slackController) {
		controller := slack.New(m.GetClient(), m.GetEventRecorder(name), metrics.Registry, o.namespace, o.podNamespace)
		if err := controller.Register(m); err != nil {
			return err
		}
	}
	if slices.Contains(o.controllers, placementController) {
		controller := placement.New(m.GetClient(), m.GetAPIReader(), m.GetEventRecorder(name), metrics.Registry, placement.Adopt(o.adopt))
		if err := controller.Register(m); err != nil {
			return err
		}
	}
	if o.defaultPolicy != nil {
		create := func(ctx context.Context) error { return o.createDefaultPolicy(ctx, m.GetClient()) }
		if err := m.Add(runtimemanager.RunnableFunc(create)); err != nil {
			return err
		}
	}
	return start(ctx, m)
}

// start starts a manager with its health probes.
func start(ctx context.Context, m ctrl.Manager) error {
	for _, add := range []func(string, healthz.Checker) error{m.AddHealthzCheck, m.AddReadyzCheck} {
		if err := add("ping", healthz.Ping); err != nil {
			return err
		}
	}
	return m.Start(ctx)
}

// managerOptions returns the options of a manager whose leader election lease has the name.
func (o *options) managerOptions(lease string) ctrl.Options {
	return ctrl.Options{
		LeaderElection:   o.leaderElect,
		LeaderElectionID: lease, LeaderElectionNamespace: o.namespace,
		LeaderElectionReleaseOnCancel: true,
		Metrics:                       metricsserver.Options{BindAddress: o.metrics},
		HealthProbeBindAddress:        o.probes,
	}
}

// +kubebuilder:rbac:groups=plimsoll.dev,resources=resourceslacks,verbs=create

// createDefaultPolicy creates the default policy if it does not exist.
func (o *options) createDefaultPolicy(ctx context.Context, c client.Client) error {
	policy := o.defaultPolicy.DeepCopy()
	if err := c.Create(ctx, policy); client.IgnoreAlreadyExists(err) != nil {
		return fmt.Errorf("creating the default policy: %w", err)
	}
	return nil
}
