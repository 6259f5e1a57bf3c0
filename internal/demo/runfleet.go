package demo

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/prometheus/client_golang/prometheus"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/plimsoll-k8s/plimsoll/config/crd"
	"github.com/plimsoll-k8s/plimsoll/internal/controllers/placement"
	"github.com/plimsoll-k8s/plimsoll/internal/controllers/setup"
	"github.com/plimsoll-k8s/plimsoll/internal/embedded/controlplane"
	"github.com/plimsoll-k8s/plimsoll/internal/kube"
)

// RunFleet runs the fleet scenario, on the control plane as a hub. It can be run
// once. Say is told what happens. The placement controller goes on until ctx or
// the demo ends, for those who play with the hub afterwards.
func (d *Demo) RunFleet(ctx context.Context, say func(string)) ([]Result, error) {
	results, err := d.runFleet(ctx, say)
	d.keepResults(results)
	if err != nil {
		return results, fmt.Errorf("scenario %s: %w", FleetScenario, err)
	}
	return results, nil
}

func (d *Demo) runFleet(ctx context.Context, say func(string)) ([]Result, error) {
	if err := d.cluster.clear(ctx); err != nil {
		return nil, err
	}
	if d.plane != nil {
		if err := d.installFleet(ctx); err != nil {
			return nil, err
		}
	}
	api, err := client.New(d.access, client.Options{Scheme: kube.Scheme()})
	if err != nil {
		return nil, err
	}
	playing, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	h := installedHub(api)
	if d.plane != nil {
		if h, err = d.startPlacement(ctx, api, fail); err != nil {
			return nil, err
		}
	}
	d.hub.Store(h)
	if err := h.apply(playing, fleetFile); err != nil {
		return nil, err
	}
	if err := h.settle(playing); err != nil {
		return nil, err
	}
	run := &fleetRun{hub: h, say: say}
	err = run.play(playing)
	return run.results, err
}

// installFleet installs the CRDs.
func (d *Demo) installFleet(ctx context.Context) error {
	manifests := [][]byte{crd.Placements}
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
	return controlplane.InstallCRDs(ctx, d.access, manifests...)
}

// startPlacement runs the placement controller, for all placements, until ctx or
// the demo ends; if it ends before, it fails the scenario.
func (d *Demo) startPlacement(ctx context.Context, api client.Client, fail context.CancelCauseFunc) (*hub, error) {
	config, err := d.plane.Config("plimsoll-controller", "system:masters")
	if err != nil {
		return nil, err
	}
	m, err := setup.New(config, ctrl.Options{
		Metrics: metricsserver.Options{BindAddress: "0"}, // nobody asks for them here
	})
	if err != nil {
		return nil, err
	}
	recorder := m.GetEventRecorder("plimsoll-controller")
	if err := placement.New(m.GetClient(), m.GetAPIReader(), recorder, prometheus.NewRegistry(), placement.AdoptAll).Register(m); err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	h := &hub{api: api, known: m.GetCache(), stop: stop, ended: make(chan struct{})}
	go func() {
		defer close(h.ended)
		defer stop()
		if err := m.Start(ctx); ctx.Err() == nil {
			fail(errors.Join(errors.New("the placement controller has ended"), err))
		}
	}()
	return h, nil
}

// leaveFleet leaves the placements of all stories to play with, where the
// scenario was run.
func (d *Demo) leaveFleet(ctx context.Context) error {
	h := d.hub.Load()
	if h == nil {
		return nil
	}
	for _, s := range stories {
		if err := h.apply(ctx, placementFile(s.folder, PlacementForms[0])); err != nil {
			return fmt.Errorf("setting up the fleet: %w", err)
		}
	}
	return nil
}
