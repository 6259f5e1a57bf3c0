package demo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/plimsoll-k8s/plimsoll/internal/cli/base"
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
	s := node.Find(name)
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
	running := d.env.Context()
	for _, step := range []func(context.Context) error{
		// The pods of the pool come first, so that a what-if that schedules all pods again leaves the nodes of the pool to them.
		d.env.Clear, d.slack.Play, d.node.Play, d.node.ServeUsage, d.fleet.Play,
		// All pods so far belong to the demo. From now on the live page shows pods of the user.
		d.node.Watch,
	} {
		if err := step(running); err != nil {
			return err
		}
	}
	d.isReady.Store(true)
	say(d.instructions(url))
	select {
	case <-running.Done():
	case <-d.env.Plane.Exited():
	}
	if running.Err() == nil {
		return errors.New("the control plane has exited")
	}
	select {
	case <-ctx.Done(): // the control plane stops with ctx
		<-d.env.Plane.Exited()
		say("stopped")
		return nil
	default:
		return context.Cause(running)
	}
}

// printRow prints the name of a scenario and its result, wrapped beside the name.
func printRow(out io.Writer, name, text string) {
	fmt.Fprintln(out, base.Wrap(fmt.Sprintf("%-18s ", name), text, base.DefaultWidth))
}

// summary returns the results of a scenario in one sentence.
func summary(name string, results []demo.Result) string {
	if err := demo.Check(results); err != nil {
		return err.Error()
	}
	switch name {
	case slack.Scenario:
		return summarizeSlack(results)
	case fleet.Scenario:
		return summarizeFleet(results)
	}
	s := node.Find(name)
	return fmt.Sprintf("%s (%s)", s.Shows, summarizePods(results))
}

// summarizePods returns the pods that Plimsoll places on another node than the default profile.
func summarizePods(results []demo.Result) string {
	byDefault, moves := map[string]string{}, []string{}
	pods := map[string][]string{} // by move
	for _, r := range results {
		if r.Profile == demo.DefaultProfile {
			byDefault[r.Object] = r.Got
			continue
		}
		if byDefault[r.Object] == r.Got {
			continue
		}
		move := byDefault[r.Object] + " -> " + r.Got
		if pods[move] == nil {
			moves = append(moves, move)
		}
		pods[move] = append(pods[move], r.Object)
	}
	for i, move := range moves {
		moves[i] = strings.Join(pods[move], ", ") + ": " + move
	}
	if len(moves) == 0 {
		return "the same nodes"
	}
	return strings.Join(moves, "; ")
}

// summarizeSlack returns how long the pods of the burst waited.
func summarizeSlack(results []demo.Result) string {
	slowest := map[string]float64{}
	for _, r := range results {
		slowest[r.Profile] = max(slowest[r.Profile], r.Seconds)
	}
	return fmt.Sprintf("pods of a burst wait up to %.2f s %s, up to %.2f s %s",
		slowest[slack.WithoutSlack], slack.WithoutSlack, slowest[slack.WithSlack], slack.WithSlack)
}

// summarizeFleet returns the number of decisions, and the time of the slowest decision.
func summarizeFleet(results []demo.Result) string {
	slowest := slices.MaxFunc(results, func(a, b demo.Result) int { return cmp.Compare(a.Seconds, b.Seconds) })
	return fmt.Sprintf(
		"placements follow the resources of clusters, stay, or go where workloads fit, as configured (%d decisions, the slowest after %.2f s)",
		len(results),
		slowest.Seconds,
	)
}

// instructions returns the last lines of the demo: the running programs, the profiles, and commands to try.
func (d *demos) instructions(url string) string {
	var profiles []string
	for _, profile := range d.node.Profiles() {
		profiles = append(profiles, profile.Name)
	}
	var text strings.Builder
	text.WriteString(`the cluster runs until you press Ctrl-C; all nodes are simulated

  live page:  ` + url + `
  profiles:   ` + strings.Join(profiles, ", ") + `
              (a pod selects one with spec.schedulerName)
  autoscaler: built-in stand-in for an autoscaler

Commands to try, in another terminal in the project's folder:
`)
	for _, command := range d.commands() {
		text.WriteString("\n  # " + command.Purpose + "\n  " + command.Text + "\n")
	}
	return text.String()
}

// commands returns commands to try in the project's folder, in this order.
func (d *demos) commands() []node.LiveCommand {
	kubectl := program("kubectl")
	commands := []node.LiveCommand{
		{Purpose: "Use the demo's cluster in this terminal.", Text: "export KUBECONFIG=" + d.env.Plane.Kubeconfig},
		{
			Purpose: "Create a pod; the live page shows which node its profile and the default profile select, and why.",
			Text:    kubectl + ` run try --image=registry.k8s.io/pause:3.10 --overrides='{"spec":{"schedulerName":"plimsoll-scheduler"}}'`,
		},
		{
			Purpose: "Keep slack in the node pool general; the autoscaler adds a node for it.",
			Text:    kubectl + " apply -f examples/slack/policy.yaml",
		},
		{
			Purpose: "Wait until it is available, and show what the autoscaler reports.",
			Text:    kubectl + " wait --for=condition=Ready --timeout=2m resourceslack/general && " + program("plimsoll") + " slack status",
		},
		{
			Purpose: "Show the load of the nodes as the scheduler reads it.",
			Text:    program("plimsoll") + " load top --config " + d.env.SchedulerConfig(),
		},
		{
			Purpose: "Show the scores and the load by which the scheduler places the pod.",
			Text:    program("plimsoll") + " explain pod try",
		},
	}
	if !d.fleet.HasRun() {
		return commands
	}
	return append(
		commands,
		node.LiveCommand{
			Purpose: "Give a managed cluster more CPUs (managed clusters are objects without agents).",
			Text: kubectl + " patch managedcluster cluster2 --subresource=status --type=merge " +
				`--patch='{"status":{"allocatable":{"cpu":"50"}}}'`,
		},
		node.LiveCommand{
			Purpose: "Show which cluster a placement selects now, and why.",
			Text:    program("plimsoll") + " placement explain where-most-is -n team",
		},
		node.LiveCommand{
			Purpose: "Show why a workload of 32 CPUs per pod fits one cluster, although other clusters have more CPUs free.",
			Text:    program("plimsoll") + " placement explain solver -n team",
		},
	)
}

// program returns the command for a program: the program in PATH if it is kubectl, or else the program beside this program, as make demo
// builds it, or else its name.
func program(name string) string {
	if _, err := exec.LookPath(name); err == nil && name == "kubectl" {
		return name
	}
	self, err := os.Executable()
	if err != nil {
		return name
	}
	file := filepath.Join(filepath.Dir(self), name)
	if _, err := os.Stat(file); err != nil {
		return name
	}
	if dir, err := os.Getwd(); err == nil {
		if relative, err := filepath.Rel(dir, file); err == nil && !strings.HasPrefix(relative, "..") {
			return relative
		}
	}
	return file
}
