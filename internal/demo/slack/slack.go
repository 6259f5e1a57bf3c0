// Package slack is the demo of slack: an autoscaler adds nodes for a burst of pods, first without
// slack and then with the slack that a ResourceSlack policy keeps.
package slack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-k8s/plimsoll/config/crd"
	"github.com/plimsoll-k8s/plimsoll/internal/controllers/slack"
	"github.com/plimsoll-k8s/plimsoll/internal/demo"
	"github.com/plimsoll-k8s/plimsoll/internal/demo/page"
	"github.com/plimsoll-k8s/plimsoll/internal/embedded/controlplane"
	"github.com/plimsoll-k8s/plimsoll/internal/kube"
)

// systemNamespace is the namespace of placeholders.
const systemNamespace = "plimsoll-system"

// Demo runs the slack scenario in an environment.
type Demo struct {
	env       *demo.Environment
	karpenter *KarpenterProgram // nil for the stand-in
	log       io.Writer
	timeline  timeline
}

// New returns the demo for an environment. The autoscaler is Karpenter, which must have been built
// and writes to log, or the stand-in if karpenter is nil.
func New(env *demo.Environment, karpenter *KarpenterProgram, log io.Writer) *Demo {
	return &Demo{env: env, karpenter: karpenter, log: log}
}

// Autoscaler describes the autoscaler.
func (d *Demo) Autoscaler() string {
	if d.karpenter != nil {
		return karpenterName
	}
	return standInName
}

// View returns the timeline for the live page, nil before the scenario has run.
func (d *Demo) View() *page.LiveTimeline { return d.timeline.view() }

// Run clears the cluster and runs the scenario, at most once for an environment. It calls progress
// before each step.
func (d *Demo) Run(ctx context.Context, progress func(string)) ([]demo.Result, error) {
	results, err := d.run(ctx, progress)
	if err != nil {
		return results, fmt.Errorf("scenario %s: %w", Scenario, err)
	}
	return results, nil
}

func (d *Demo) run(ctx context.Context, progress func(string)) ([]demo.Result, error) {
	if err := d.env.Clear(ctx); err != nil {
		return nil, err
	}
	if !d.env.IsExternal() {
		if err := d.install(ctx); err != nil {
			return nil, err
		}
	}
	api, err := client.New(d.env.Access, client.Options{Scheme: kube.Scheme()})
	if err != nil {
		return nil, err
	}
	results, err := d.runSteps(ctx, api, progress)
	if err != nil {
		return results, err
	}
	return results, d.env.Clear(ctx)
}

// runSteps runs the steps with an autoscaler and, unless the cluster is external, with a controller.
// Both have exited when it returns. If one of them exits earlier, runSteps fails.
func (d *Demo) runSteps(ctx context.Context, api client.Client, progress func(string)) ([]demo.Result, error) {
	ctx, fail := context.WithCancelCause(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer fail(nil)
	if !d.env.IsExternal() {
		if err := d.startController(ctx, &running, fail); err != nil {
			return nil, err
		}
	}
	autoscaler, err := d.startAutoscaler(ctx, api)
	if err != nil {
		return nil, err
	}
	defer autoscaler.stop()
	running.Go(func() {
		<-autoscaler.exited
		fail(errors.New("the autoscaler has exited"))
	})
	r := &run{cluster: &cluster{d.env.Cluster, api, autoscaler}, timeline: &d.timeline, progress: progress}
	d.timeline.start(d.Autoscaler())
	running.Go(func() { d.timeline.record(ctx, r.timelinePoint) })
	err = r.runSteps(ctx)
	return r.results, err
}

// install installs the CRDs and the namespace of placeholders.
func (d *Demo) install(ctx context.Context) error {
	manifests := [][]byte{standInBuffers}
	if d.karpenter != nil {
		var err error
		if manifests, err = d.karpenter.crds(); err != nil {
			return err
		}
	}
	if err := controlplane.InstallCRDs(ctx, d.env.Access, append(manifests, crd.ResourceSlacks)...); err != nil {
		return err
	}
	namespace := &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: systemNamespace}}
	_, err := d.env.Client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{})
	return err
}

// startController starts the slack controller, which runs until ctx ends. If it exits earlier, it
// calls fail.
func (d *Demo) startController(ctx context.Context, running *sync.WaitGroup, fail context.CancelCauseFunc) error {
	m, err := d.env.NewManager()
	if err != nil {
		return err
	}
	recorder := m.GetEventRecorder("plimsoll-controller")
	if err := slack.New(m.GetClient(), recorder, prometheus.NewRegistry(), systemNamespace).Register(m); err != nil {
		return err
	}
	running.Go(func() {
		if err := m.Start(ctx); ctx.Err() == nil {
			fail(errors.Join(errors.New("the slack controller has exited"), err))
		}
	})
	return nil
}

// startAutoscaler starts the autoscaler.
func (d *Demo) startAutoscaler(ctx context.Context, api client.Client) (*autoscaler, error) {
	if d.karpenter == nil {
		return startStandIn(ctx, api), nil
	}
	return d.karpenter.start(ctx, api, d.env.Kubeconfig(), d.log)
}
