// Package slack is the demo of slack: an autoscaler adds nodes for a burst of pods, first without
// slack and then with the slack that a ResourceSlack policy keeps.
package slack

import (
	"context"
	"fmt"

	"github.com/plimsoll-k8s/plimsoll/internal/demo"
)

// playName is the name of the web service that Play creates.
const playName = "shop"

// Demo runs the slack scenario in an environment, and keeps the slack controller and an autoscaler
// running after it.
type Demo struct {
	env     *demo.Environment
	cluster *cluster // nil before its autoscaler and controller are started
}

// New returns the demo for an environment.
func New(env *demo.Environment) *Demo { return &Demo{env: env} }

// Run clears the cluster and runs the scenario. It calls progress before each step. The controller
// and the autoscaler run until Stop is called or ctx ends.
func (d *Demo) Run(ctx context.Context, progress func(string)) ([]demo.Result, error) {
	if err := d.env.Clear(ctx); err != nil {
		return nil, err
	}
	if err := d.start(ctx); err != nil {
		return nil, err
	}
	r := &run{cluster: d.cluster, progress: progress}
	if err := r.runSteps(d.cluster.ctx); err != nil {
		return r.results, err
	}
	return r.results, d.env.Clear(ctx)
}

// Play creates a web service in the pool of the autoscaler, for which users can create a policy. It
// starts the controller and the autoscaler unless Run has.
func (d *Demo) Play(ctx context.Context) error {
	err := d.start(ctx)
	if err == nil {
		_, err = d.cluster.createPods(d.cluster.ctx, playName, webPods, poolLabels)
	}
	if err != nil {
		return fmt.Errorf("setting up slack: %w", err)
	}
	return nil
}
