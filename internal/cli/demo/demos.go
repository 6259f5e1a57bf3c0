package demo

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/plimsoll-k8s/plimsoll/internal/demo"
	"github.com/plimsoll-k8s/plimsoll/internal/demo/fleet"
	"github.com/plimsoll-k8s/plimsoll/internal/demo/node"
	"github.com/plimsoll-k8s/plimsoll/internal/demo/slack"
)

// demos are the three demos in one environment.
type demos struct {
	env   *demo.Environment
	node  *node.Demo
	slack *slack.Demo
	fleet *fleet.Demo
	// running describes the running programs. isReady is set when the user can use the cluster.
	running atomic.Pointer[string]
	isReady atomic.Bool
}

// start starts the load source, the control plane and the scheduler.
func start(ctx context.Context, progress func(string)) (*demos, error) {
	load, err := node.StartService(ctx)
	if err != nil {
		return nil, fmt.Errorf("starting the load watcher: %w", err)
	}
	env, err := demo.Start(ctx, load.Arguments(), progress)
	if err != nil {
		return nil, err
	}
	return &demos{env: env, node: node.New(env, load), slack: slack.New(env), fleet: fleet.New(env)}, nil
}

// stop stops everything that start and run have started.
func (d *demos) stop() {
	d.slack.Stop()
	d.fleet.Stop()
	d.env.Stop()
}

// run runs scenarios, and reports the results of each.
func (d *demos) run(ctx context.Context, scenarios []string, report func(name string, results []demo.Result)) ([]demo.Result, error) {
	defer d.running.Store(nil)
	var all []demo.Result
	for _, name := range scenarios {
		results, err := d.runScenario(ctx, name)
		all = append(all, results...)
		if err != nil {
			return all, fmt.Errorf("scenario %s: %w", name, err)
		}
		report(name, results)
	}
	return all, nil
}

// runScenario runs one scenario.
func (d *demos) runScenario(ctx context.Context, name string) (all []demo.Result, err error) {
	progress := func(text string) {
		text = "scenario " + name + ": " + text
		d.running.Store(&text)
	}
	switch name {
	case slack.Scenario:
		progress(slack.Shows)
		return d.slack.Run(ctx, progress)
	case fleet.Scenario:
		progress(fleet.Shows)
		return d.fleet.Run(ctx, progress)
	}
	s, _ := node.Find(name)
	for _, profile := range []string{demo.DefaultProfile, s.Profile} {
		progress(s.Shows + "; profile " + profile)
		results, err := d.node.Run(ctx, s, profile)
		all = append(all, results...)
		if err != nil {
			return all, err
		}
	}
	return all, nil
}

// view returns the content of the live page.
func (d *demos) view(ctx context.Context) (node.Live, error) {
	view, err := d.node.View(ctx)
	if text := d.running.Load(); text != nil {
		view.Running = *text
	}
	if d.isReady.Load() {
		view.Commands = d.commands()
	}
	return view, err
}

// stay keeps a cluster for users until ctx ends. The slack controller and the autoscaler run in it.
func (d *demos) stay(ctx context.Context, url string, say func(string)) error {
	if err := d.env.Clear(ctx); err != nil {
		return err
	}
	// The pods of the pool come first, so that a what-if that schedules all pods again leaves the nodes of the pool to them.
	if err := d.slack.Play(ctx); err != nil {
		return err
	}
	if err := d.node.Play(ctx); err != nil {
		return err
	}
	if err := d.node.ServeUsage(ctx); err != nil {
		return fmt.Errorf("serving the usage of pods: %w", err)
	}
	if err := d.fleet.Play(ctx); err != nil {
		return err
	}
	// All pods so far belong to the demo. From now on the live page shows pods of the user.
	if err := d.node.Watch(ctx); err != nil {
		return err
	}
	d.isReady.Store(true)
	say(d.instructions(url))
	waiting, stop := context.WithCancel(ctx)
	defer stop()
	// The control plane stops with ctx.
	go func() {
		<-d.env.Plane.Exited()
		stop()
	}()
	switch err := d.slack.Await(waiting); {
	case ctx.Err() != nil:
		<-d.env.Plane.Exited()
		say("stopped")
		return nil
	case err != nil:
		return err
	}
	return errors.New("the control plane has exited")
}
