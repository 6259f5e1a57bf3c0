// Package slack is the demo of slack: an autoscaler adds nodes for a burst of pods, first without
// slack and then with the slack that a ResourceSlack policy keeps.
package slack

import (
	"context"
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/plimsoll-k8s/plimsoll/config/crd"
	"github.com/plimsoll-k8s/plimsoll/internal/controllers/slack"
	"github.com/plimsoll-k8s/plimsoll/internal/demo"
	"github.com/plimsoll-k8s/plimsoll/internal/embedded/controlplane"
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

// systemNamespace is the namespace of placeholders.
const systemNamespace = "plimsoll-system"

// start starts the autoscaler and, unless the cluster is external, the slack controller, unless they run. They run until Stop is called
// or ctx ends.
func (d *Demo) start(ctx context.Context) (err error) {
	if d.cluster != nil {
		return nil
	}
	c := &cluster{Cluster: d.env.Cluster}
	c.ctx, c.stop = context.WithCancelCause(ctx)
	if d.env.Plane != nil {
		if err = d.install(ctx); err == nil {
			err = d.startController(c)
		}
	}
	if err != nil {
		c.stop(err)
		c.running.Wait()
		return err
	}
	autoscaler := &standIn{client: d.env.API}
	c.running.Go(func() { wait.UntilWithContext(c.ctx, autoscaler.run, standInInterval) })
	d.cluster = c
	return nil
}

// Stop stops the controller and the autoscaler, if they have been started, and waits for them.
func (d *Demo) Stop() {
	if d.cluster != nil {
		d.cluster.stop(nil)
		d.cluster.running.Wait()
	}
}

// Await waits until ctx ends and returns nil, or until the controller exits by
// itself, and returns the reason. It must be called after Run or Play.
func (d *Demo) Await(ctx context.Context) error {
	select {
	case <-ctx.Done():
	case <-d.cluster.ctx.Done():
		if ctx.Err() == nil {
			return context.Cause(d.cluster.ctx)
		}
	}
	return nil
}

// install installs the CRDs and the namespace of placeholders.
func (d *Demo) install(ctx context.Context) error {
	if err := controlplane.InstallCRDs(ctx, d.env.Access, buffers, crd.ResourceSlacks); err != nil {
		return err
	}
	namespace := &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: systemNamespace}}
	_, err := d.env.Client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{})
	return err
}

// startController starts the slack controller. If it exits by itself, the autoscaler stops.
func (d *Demo) startController(c *cluster) error {
	m, err := d.env.NewManager()
	if err != nil {
		return err
	}
	recorder := m.GetEventRecorder("plimsoll-controller")
	controller := slack.New(m.GetClient(), recorder, d.env.Registry, systemNamespace, "")
	if err := controller.Register(m); err != nil {
		return err
	}
	c.running.Go(func() {
		err := m.Start(c.ctx)
		c.stop(errors.Join(errors.New("the slack controller has exited"), err))
	})
	return nil
}
