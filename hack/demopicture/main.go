// Command demopicture runs scenarios of the demo with the real scheduler and writes what happened as an animated SVG file
// without scripts: make demo-picture writes the picture of the README.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/plimsoll-k8s/plimsoll/hack/pictures"
	"github.com/plimsoll-k8s/plimsoll/internal/demo"
	"github.com/plimsoll-k8s/plimsoll/internal/demo/node"
	"github.com/plimsoll-k8s/plimsoll/internal/demo/page"
	"github.com/plimsoll-k8s/plimsoll/internal/demo/slack"
)

func main() { pictures.Main(run, "FILE") }

// run runs the scenarios and writes the file.
func run(ctx context.Context, arguments []string) error {
	p, err := collect(ctx)
	if err != nil {
		return err
	}
	return os.WriteFile(arguments[0], []byte(draw(p)), 0o644)
}

// picture is what happened in the scenarios.
type picture struct {
	Limits, Load comparison
	Slack        burst
}

// comparison is the same pod in the same cluster with the default profile and with one of Plimsoll.
type comparison struct {
	Pod           string
	Default, Ours side
}

// side is the cluster after a profile has placed the pod.
type side struct {
	Profile, Selected string
	Nodes             []page.LiveNode
}

// burst is a burst of pods without slack and with it: the longest time that one of them was pending, in seconds.
type burst struct {
	Without, With float64
	Timeline      page.LiveTimeline
}

// collect runs the scenarios.
func collect(ctx context.Context) (picture, error) {
	progress := func(message string) { fmt.Fprintln(os.Stderr, message) }
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	source, err := node.StartLoad(ctx, node.LoadService, progress)
	if err != nil {
		return picture{}, err
	}
	env, err := demo.Start(ctx, demo.Options{LoadArguments: source.Arguments(), Progress: progress})
	if err != nil {
		return picture{}, err
	}
	defer env.Stop()
	var p picture
	nodes := node.New(env, source)
	if p.Limits, err = compare(ctx, nodes, "limits", progress); err != nil {
		return p, err
	}
	if p.Load, err = compare(ctx, nodes, "risk-load", progress); err != nil {
		return p, err
	}
	slacks := slack.New(env, nil, io.Discard)
	defer slacks.Stop()
	results, err := slacks.Run(ctx, progress)
	if err == nil {
		err = demo.Check(results)
	}
	if err != nil {
		return p, err
	}
	p.Slack, err = newBurst(results, slacks.View())
	return p, err
}

// compare runs a scenario, until its first pod is placed, with both profiles.
func compare(ctx context.Context, nodes *node.Demo, name string, progress func(string)) (comparison, error) {
	i := slices.IndexFunc(node.Scenarios, func(s node.Scenario) bool { return s.Name == name })
	if i < 0 {
		return comparison{}, fmt.Errorf("no scenario %s", name)
	}
	s := node.Scenarios[i]
	first := slices.IndexFunc(s.Steps, func(step node.Step) bool { return step.Create != nil })
	s.Steps = s.Steps[:first+1]
	var c comparison
	for _, profile := range []string{demo.DefaultProfile, s.Profile} {
		progress("scenario " + name + ", profile " + profile)
		results, err := nodes.Run(ctx, s, profile)
		if err == nil {
			err = demo.Check(results)
		}
		var view page.Live
		if err == nil {
			err = nodes.AddTo(ctx, &view)
		}
		if err != nil {
			return c, err
		}
		r := results[len(results)-1]
		c.Pod = r.Pod
		after := side{Profile: profile, Selected: r.Node, Nodes: view.Nodes}
		if profile == demo.DefaultProfile {
			c.Default = after
		} else {
			c.Ours = after
		}
	}
	c.copyLoad()
	return c, nil
}

// copyLoad copies the load of the nodes to the side of the default profile, for which the demo does not report it: it is
// the same load.
func (c *comparison) copyLoad() {
	for i := range c.Default.Nodes {
		for j := range c.Ours.Nodes {
			if c.Default.Nodes[i].Name != c.Ours.Nodes[j].Name {
				continue
			}
			for k, bar := range c.Ours.Nodes[j].Bars {
				to := &c.Default.Nodes[i].Bars[k]
				to.HasLoad, to.LoadMean, to.LoadStdDev = bar.HasLoad, bar.LoadMean, bar.LoadStdDev
			}
		}
	}
}

// newBurst returns the results of the scenario slack.
func newBurst(results []demo.Result, timeline *page.LiveTimeline) (burst, error) {
	if timeline == nil {
		return burst{}, errors.New("the scenario slack has no timeline")
	}
	b := burst{Timeline: *timeline}
	for _, r := range results {
		switch {
		case r.Slack == nil || r.Slack.Seconds == 0:
		case r.Profile == slack.WithoutSlack:
			b.Without = r.Slack.Seconds
		default:
			b.With = r.Slack.Seconds
		}
	}
	if b.Without == 0 || b.With == 0 {
		return b, errors.New("the scenario slack has no bursts")
	}
	return b, nil
}

// mark returns the time of the first event of the scenario slack that begins with a text.
func (b *burst) mark(text string) (seconds float64, ok bool) {
	for _, m := range b.Timeline.Marks {
		if strings.HasPrefix(m.Text, text) {
			return m.Seconds, true
		}
	}
	return 0, false
}
