// Package slack is the demo of slack: an autoscaler adds nodes for a burst of pods, first without
// slack and then with the slack that a ResourceSlack policy keeps.
package slack

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/plimsoll-k8s/plimsoll/config/crd"
	"github.com/plimsoll-k8s/plimsoll/internal/controllers/slack"
	"github.com/plimsoll-k8s/plimsoll/internal/demo"
)

// playName is the name of the web service that Play creates.
const playName = "shop"

// systemNamespace is the namespace of placeholders.
const systemNamespace = "plimsoll-system"

// Demo runs the slack scenario in an environment, and keeps the slack controller and an autoscaler
// running after it.
type Demo struct {
	env       *demo.Environment
	isStarted bool
}

// New returns the demo for an environment.
func New(env *demo.Environment) *Demo { return &Demo{env: env} }

// Run clears the cluster and runs the scenario. It calls progress before each step. The controller
// and the autoscaler run as long as the environment.
func (d *Demo) Run(ctx context.Context, progress func(string)) ([]demo.Result, error) {
	if err := d.env.Clear(ctx); err != nil {
		return nil, err
	}
	if err := d.start(ctx); err != nil {
		return nil, err
	}
	r := &run{cluster: cluster{d.env.Cluster}, progress: progress}
	if err := r.runSteps(ctx); err != nil {
		return r.results, err
	}
	return r.results, d.env.Clear(ctx)
}

// Play creates a web service in the pool of the autoscaler, for which users can create a policy. It
// starts the controller and the autoscaler unless Run has.
func (d *Demo) Play(ctx context.Context) error {
	err := d.start(ctx)
	if err == nil {
		_, err = cluster{d.env.Cluster}.createPods(ctx, playName, webPods, poolLabels)
	}
	if err != nil {
		return fmt.Errorf("setting up slack: %w", err)
	}
	return nil
}

// start starts the slack controller and the autoscaler, unless they run.
func (d *Demo) start(ctx context.Context) error {
	if d.isStarted {
		return nil
	}
	err := d.env.StartController("slack", [][]byte{buffers, crd.ResourceSlacks}, func(m manager.Manager) error {
		namespace := &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: systemNamespace}}
		if err := d.env.API.Create(ctx, namespace); err != nil {
			return err
		}
		recorder := m.GetEventRecorder("plimsoll-controller")
		return slack.New(m.GetClient(), recorder, prometheus.NewRegistry(), systemNamespace, "").Register(m)
	})
	if err != nil {
		return err
	}
	autoscaler := &standIn{client: d.env.API}
	d.env.Go("the autoscaler", func(ctx context.Context) error {
		wait.UntilWithContext(ctx, autoscaler.run, standInInterval)
		return nil
	})
	d.isStarted = true
	return nil
}
