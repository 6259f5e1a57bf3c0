package demo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/plimsoll-k8s/plimsoll/config/crd"
	"github.com/plimsoll-k8s/plimsoll/internal/controllers/setup"
	"github.com/plimsoll-k8s/plimsoll/internal/controllers/slack"
	"github.com/plimsoll-k8s/plimsoll/internal/embedded/controlplane"
	"github.com/plimsoll-k8s/plimsoll/internal/kube"
)

// reserve is the namespace of placeholders.
const reserve = "plimsoll-system"

// Autoscaler returns what is at work in the slack scenario, as it is called.
func (d *Demo) Autoscaler() string {
	if d.real != nil {
		return karpenterName
	}
	return standInName
}

// RunSlack runs the slack scenario, on nodes that an autoscaler makes. It can be
// run once. Say is told what happens, and why.
func (d *Demo) RunSlack(ctx context.Context, say func(string)) ([]Result, error) {
	results, err := d.runSlack(ctx, say)
	d.keepResults(results)
	if err != nil {
		return results, fmt.Errorf("scenario %s: %w", SlackScenario, err)
	}
	return results, nil
}

func (d *Demo) runSlack(ctx context.Context, say func(string)) ([]Result, error) {
	if err := d.cluster.clear(ctx); err != nil {
		return nil, err
	}
	if d.plane != nil {
		if err := d.installSlack(ctx); err != nil {
			return nil, err
		}
	}
	api, err := client.New(d.access, client.Options{Scheme: kube.Scheme()})
	if err != nil {
		return nil, err
	}
	results, err := d.playSlack(ctx, api, say)
	if err != nil {
		return results, err
	}
	return results, d.cluster.clear(ctx)
}

// playSlack plays the scenario with a controller, where none is installed, and an
// autoscaler, which have ended when it returns. If one of them ends before, the
// scenario fails.
func (d *Demo) playSlack(ctx context.Context, api client.Client, say func(string)) ([]Result, error) {
	ctx, fail := context.WithCancelCause(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer fail(nil)
	if d.plane != nil {
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
		fail(errors.New("the autoscaler has ended"))
	})
	run := &slackRun{slackCluster: &slackCluster{d.cluster, api, autoscaler}, timeline: &d.timeline, say: say}
	d.timeline.begin(d.Autoscaler())
	running.Go(func() { d.timeline.follow(ctx, run.moment) })
	err = run.play(ctx)
	return run.results, err
}

// installSlack installs the CRDs and the namespace.
func (d *Demo) installSlack(ctx context.Context) error {
	manifests := [][]byte{standInBuffers}
	if d.real != nil {
		var err error
		if manifests, err = d.real.crds(); err != nil {
			return err
		}
	}
	if err := controlplane.InstallCRDs(ctx, d.access, append(manifests, crd.ResourceSlacks)...); err != nil {
		return err
	}
	_, err := d.cluster.client.CoreV1().Namespaces().Create(ctx, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: reserve}}, metav1.CreateOptions{})
	return err
}

// startController runs the slack controller until ctx ends; if it ends before,
// it fails the scenario.
func (d *Demo) startController(ctx context.Context, running *sync.WaitGroup, fail context.CancelCauseFunc) error {
	config, err := d.plane.Config("plimsoll-controller", "system:masters")
	if err != nil {
		return err
	}
	m, err := setup.New(config, ctrl.Options{
		Metrics: metricsserver.Options{BindAddress: "0"}, // nobody asks for them here
	})
	if err != nil {
		return err
	}
	if err := slack.New(m.GetClient(), m.GetEventRecorder("plimsoll-controller"), prometheus.NewRegistry(), reserve).Register(m); err != nil {
		return err
	}
	running.Go(func() {
		if err := m.Start(ctx); ctx.Err() == nil {
			fail(errors.Join(errors.New("the slack controller has ended"), err))
		}
	})
	return nil
}

// startAutoscaler starts the autoscaler that was asked for.
func (d *Demo) startAutoscaler(ctx context.Context, api client.Client) (*autoscaler, error) {
	if d.real == nil {
		return startStandIn(ctx, api), nil
	}
	return d.real.start(ctx, api, d.plane.Kubeconfig, d.log)
}

// keepResults adds results to what the page shows.
func (d *Demo) keepResults(results []Result) {
	d.told.Lock()
	defer d.told.Unlock()
	d.told.results = append(slices.Clip(d.told.results), results...)
}
