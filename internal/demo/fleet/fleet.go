// Package fleet is the demo of placements: the placement controller selects clusters of a simulated
// fleet for the placements in examples/placement.
package fleet

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/plimsoll-k8s/plimsoll/config/crd"
	"github.com/plimsoll-k8s/plimsoll/internal/controllers/placement"
	"github.com/plimsoll-k8s/plimsoll/internal/demo"
	"github.com/plimsoll-k8s/plimsoll/internal/embedded/controlplane"
)

// Demo runs the fleet scenario in an environment.
type Demo struct {
	env *demo.Environment
	hub *hub // nil before the scenario
	// stop stops the placement controller, which closes exited. Both are nil before it is started.
	stop   context.CancelFunc
	exited chan struct{}
}

// New returns the demo for an environment.
func New(env *demo.Environment) *Demo { return &Demo{env: env} }

// HasRun reports whether the scenario has begun.
func (d *Demo) HasRun() bool { return d.hub != nil }

// Run clears the cluster and runs the scenario, at most once for an environment. It calls progress
// after each step. The placement controller runs until Stop is called or ctx ends.
func (d *Demo) Run(ctx context.Context, progress func(string)) ([]demo.Result, error) {
	if err := d.env.Clear(ctx); err != nil {
		return nil, err
	}
	d.hub = &hub{Cluster: d.env.Cluster}
	running, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	if d.env.Plane != nil {
		if err := d.install(ctx); err != nil {
			return nil, err
		}
		if err := d.startController(ctx, fail); err != nil {
			return nil, err
		}
	}
	if err := d.hub.reset(running); err != nil {
		return nil, err
	}
	r := &run{hub: d.hub, progress: progress}
	err := r.runStories(running)
	return r.results, err
}

// Stop stops the placement controller, if it has been started.
func (d *Demo) Stop() {
	if d.stop != nil {
		d.stop()
		<-d.exited
	}
}

// install installs the CRDs.
func (d *Demo) install(ctx context.Context) error {
	manifests := [][]byte{crd.Placements, crd.ClusterCapacities}
	files, err := fs.Glob(crd.OCM, "ocm/*.yaml")
	if err != nil {
		return err
	}
	for _, file := range files {
		manifest, err := crd.OCM.ReadFile(file)
		if err != nil {
			return err
		}
		manifests = append(manifests, manifest)
	}
	return controlplane.InstallCRDs(ctx, d.env.Access, manifests...)
}

// startController starts the placement controller for all placements, and renews the capacity of clusters. If it exits before it is
// stopped, it calls fail.
func (d *Demo) startController(ctx context.Context, fail context.CancelCauseFunc) error {
	m, err := d.env.NewManager()
	if err != nil {
		return err
	}
	recorder := m.GetEventRecorder("plimsoll-controller")
	controller := placement.New(m.GetClient(), m.GetAPIReader(), recorder, d.env.Registry, placement.AdoptAll)
	if err := errors.Join(controller.Register(m), m.Add(manager.RunnableFunc(d.hub.renew))); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	d.stop, d.exited = stop, make(chan struct{})
	go func() {
		defer close(d.exited)
		defer stop()
		if err := m.Start(ctx); ctx.Err() == nil {
			fail(errors.Join(errors.New("the placement controller has exited"), err))
		}
	}()
	return nil
}

// Play creates the placements of all stories for users to change, if the scenario has run.
func (d *Demo) Play(ctx context.Context) error {
	if !d.HasRun() {
		return nil
	}
	for _, s := range stories {
		if err := d.hub.apply(ctx, placementFile(s.Folder)); err != nil {
			return fmt.Errorf("setting up the fleet: %w", err)
		}
	}
	return nil
}
