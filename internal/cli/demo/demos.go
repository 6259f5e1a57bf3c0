package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/plimsoll-k8s/plimsoll/internal/demo"
	"github.com/plimsoll-k8s/plimsoll/internal/demo/fleet"
	"github.com/plimsoll-k8s/plimsoll/internal/demo/node"
	"github.com/plimsoll-k8s/plimsoll/internal/demo/page"
	"github.com/plimsoll-k8s/plimsoll/internal/demo/slack"
)

// demos are the three demos in one environment, and their results.
type demos struct {
	env     *demo.Environment
	node    *node.Demo
	slack   *slack.Demo
	fleet   *fleet.Demo
	results demo.Results
	// running describes the scenario slack or fleet while it runs. isReady is set when the cluster is the user's.
	running atomic.Value
	isReady atomic.Bool
	// stopLoad stops the load source.
	stopLoad context.CancelFunc
}

// start starts the load source, the control plane and the scheduler, and builds Karpenter if it is
// selected.
func (o *options) start(ctx context.Context, log io.Writer, progress func(string)) (_ *demos, err error) {
	var karpenter *slack.KarpenterProgram
	if o.autoscaler == slack.Karpenter {
		if karpenter, err = slack.FindKarpenter(ctx); err != nil {
			return nil, fmt.Errorf("--autoscaler: %w", err)
		}
	}
	loading, stopLoad := context.WithCancel(ctx)
	var env *demo.Environment
	defer func() {
		if err != nil {
			stopLoad()
			if env != nil {
				env.Stop()
			}
		}
	}()
	load, err := node.StartLoad(loading, o.load, progress)
	if err != nil {
		return nil, err
	}
	if env, err = demo.Start(ctx, demo.Options{LoadArguments: load.Arguments(), Progress: progress}); err != nil {
		return nil, err
	}
	if karpenter != nil {
		progress("building Karpenter (about 2 minutes the first time)")
		if err := karpenter.Build(ctx, env.Dir()); err != nil {
			return nil, err
		}
	}
	return &demos{
		env: env, node: node.New(env, load), slack: slack.New(env, karpenter, log), fleet: fleet.New(env),
		stopLoad: stopLoad,
	}, nil
}

// stop stops everything that start and run have started.
func (d *demos) stop() {
	d.stopLoad()
	d.slack.Stop()
	d.fleet.Stop()
	d.env.Stop()
}

// run runs the selected scenarios and collects their results.
func (d *demos) run(ctx context.Context, s selection, say func(string)) error {
	_, err := d.node.RunAll(ctx, s.placement, func(s node.Scenario, results []demo.Result) {
		d.results.Add(results...)
		say(fmt.Sprintf("scenario %s, profile %s: %s", s.Name, results[0].Profile, summary(results)))
	})
	defer d.running.Store("")
	if err == nil && s.slack {
		d.running.Store("scenario " + slack.Scenario + " (" + slack.Shows + ")")
		say(fmt.Sprintf("scenario %s: starting the slack controller and an autoscaler (%s)", slack.Scenario, d.slack.Autoscaler()))
		var results []demo.Result
		results, err = d.slack.Run(ctx, say)
		d.results.Add(results...)
	}
	if err == nil && s.fleet {
		d.running.Store("scenario " + fleet.Scenario + " (" + fleet.Shows + ")")
		say(fmt.Sprintf("scenario %s: starting the placement controller; the ManagedClusters are objects without real clusters",
			fleet.Scenario))
		var results []demo.Result
		results, err = d.fleet.Run(ctx, say)
		d.results.Add(results...)
	}
	return err
}

// view returns the content of the live page.
func (d *demos) view(ctx context.Context) (page.Live, error) {
	view := page.Live{Time: time.Now().Format(time.TimeOnly), Timeline: d.slack.View()}
	if err := d.node.AddTo(ctx, &view); err != nil {
		return view, err
	}
	if text, ok := d.running.Load().(string); ok && view.Running == "" {
		view.Running = text
	}
	if d.isReady.Load() {
		view.Commands = d.commands()
	}
	for _, r := range d.results.All() {
		view.Results = append(view.Results, page.NewResult(r, r.Profile == demo.DefaultProfile || r.Profile == slack.WithoutSlack))
	}
	var err error
	if view.Policies, err = d.slack.Policies(ctx); err != nil {
		return view, err
	}
	view.Fleet, err = d.fleet.View(ctx)
	return view, err
}

// stay keeps a cluster for users until ctx ends. The slack controller and the autoscaler run in it.
func (d *demos) stay(ctx context.Context, url string, say func(string)) error {
	if err := d.node.Play(ctx); err != nil {
		return err
	}
	if err := d.slack.Play(ctx); err != nil {
		return err
	}
	if err := d.fleet.Play(ctx); err != nil {
		return err
	}
	// All pods so far are those of the demo. The live page shows those of the user first.
	if err := d.node.Watch(ctx); err != nil {
		return err
	}
	d.isReady.Store(true)
	say(d.instructions(url))
	waiting, stop := context.WithCancel(ctx)
	defer stop()
	// The control plane stops with ctx.
	go func() {
		<-d.env.Exited()
		stop()
	}()
	switch err := d.slack.Await(waiting); {
	case ctx.Err() != nil:
		<-d.env.Exited()
		say("stopped")
		return nil
	case err != nil:
		return err
	}
	return errors.New("the control plane has exited")
}
