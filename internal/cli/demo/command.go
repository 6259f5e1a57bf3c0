// Package demo is the command plimsoll-demo, which runs scenarios with a real scheduler on a real API
// server.
package demo

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/plimsoll-k8s/plimsoll/internal/cli/base"
	"github.com/plimsoll-k8s/plimsoll/internal/demo"
	"github.com/plimsoll-k8s/plimsoll/internal/demo/fleet"
	"github.com/plimsoll-k8s/plimsoll/internal/demo/node"
	"github.com/plimsoll-k8s/plimsoll/internal/demo/page"
	"github.com/plimsoll-k8s/plimsoll/internal/demo/slack"
	"github.com/plimsoll-k8s/plimsoll/internal/version"
)

// Run runs the command and returns the exit code: 1 if a pod or a placement is not where the
// scenario expects it, 2 if the demo could not run.
func Run(ctx context.Context) int {
	err := newCommand().ExecuteContext(ctx)
	if errors.Is(err, demo.ErrUnexpected) {
		err = base.Failure(err)
	}
	return base.Report("plimsoll-demo", err, base.ExitUsage)
}

// options are the flags.
type options struct {
	once       bool
	output     string
	port       int
	load       string
	autoscaler string
	scenarios  []string
	// selected are the scenarios that these flags ask for.
	selected selection
}

// selection is which scenarios are run.
type selection struct {
	placement []node.Scenario
	slack     bool
	fleet     bool
}

func newCommand() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "plimsoll-demo",
		Short: "Watch a real scheduler place pods with and without Plimsoll",
		Long: `Starts etcd, kube-apiserver and kube-scheduler with Plimsoll's plugins on
127.0.0.1, runs small scenarios through the API, each with the default profile
and with one of Plimsoll's, and tells where the pods went. In slack the
controller keeps room to spare on nodes that an autoscaler makes: a stand-in that
is built in, or a real Karpenter with simulated machines, which is built from the
project's folder. In fleet it decides placements over managed clusters, which are
objects without clusters behind them. Then the demo leaves a cluster of simulated
nodes to play with, a live page of it, and a kubeconfig, until it is interrupted.
Nothing is left behind.`,
		Example: `  plimsoll-demo
  plimsoll-demo --once -o json
  plimsoll-demo --scenario limits,risk-load
  plimsoll-demo --load prometheus
  plimsoll-demo --scenario slack
  plimsoll-demo --scenario slack --autoscaler karpenter
  plimsoll-demo --scenario fleet`,
		Args: cobra.NoArgs, SilenceUsage: true, SilenceErrors: true,
		PreRunE: func(*cobra.Command, []string) (err error) {
			o.selected, err = o.selection()
			return err
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	var names []string
	for _, s := range node.Scenarios {
		names = append(names, s.Name)
	}
	names = append(names, slack.Scenario, fleet.Scenario)
	version.AddFlag(cmd)
	flags := cmd.Flags()
	flags.BoolVar(&o.once, "once", false, "end after the scenarios")
	flags.StringVarP(&o.output, "output", "o", "table", "table or json")
	flags.IntVar(&o.port, "port", 0, "port of the live page on 127.0.0.1 (default any that is free)")
	flags.StringVar(&o.load, "load", node.LoadService, "where the scheduler reads load from: service (a load watcher of the demo's) or prometheus (a real server, which must be installed)")
	_ = cmd.RegisterFlagCompletionFunc("load", cobra.FixedCompletions([]string{node.LoadService, node.LoadPrometheus}, cobra.ShellCompDirectiveNoFileComp))
	flags.StringVar(&o.autoscaler, "autoscaler", slack.StandIn, "what makes the nodes of the slack scenario: stand-in (a small loop of the demo's) or karpenter (a real one with simulated machines, built from the project's folder; its metrics port is open on all addresses)")
	_ = cmd.RegisterFlagCompletionFunc("autoscaler", cobra.FixedCompletions([]string{slack.StandIn, slack.Karpenter}, cobra.ShellCompDirectiveNoFileComp))
	flags.StringSliceVar(&o.scenarios, "scenario", nil, "only these: "+strings.Join(names, ", "))
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"table", "json"}, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("scenario", cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// controllers selects a scenario that is about a controller, if it has that name.
func (s *selection) controllers(name string) bool {
	s.slack = s.slack || name == slack.Scenario
	s.fleet = s.fleet || name == fleet.Scenario
	return name == slack.Scenario || name == fleet.Scenario
}

// selection returns the scenarios asked for, or what is wrong with the flags.
func (o *options) selection() (selection, error) {
	var out selection
	switch {
	case o.output != "table" && o.output != "json":
		return out, fmt.Errorf("--output: found %q, want table or json", o.output)
	case o.load != node.LoadService && o.load != node.LoadPrometheus:
		return out, fmt.Errorf("--load: found %q, want %s or %s", o.load, node.LoadService, node.LoadPrometheus)
	case o.autoscaler != slack.StandIn && o.autoscaler != slack.Karpenter:
		return out, fmt.Errorf("--autoscaler: found %q, want %s or %s", o.autoscaler, slack.StandIn, slack.Karpenter)
	}
	unplayable := func(s node.Scenario) bool { return o.load != node.LoadService && s.NeedsService() }
	if len(o.scenarios) == 0 {
		return selection{slices.DeleteFunc(slices.Clone(node.Scenarios), unplayable), true, true}, nil
	}
	for _, name := range o.scenarios {
		if out.controllers(name) {
			continue
		}
		i := slices.IndexFunc(node.Scenarios, func(s node.Scenario) bool { return s.Name == name })
		if i < 0 {
			return out, fmt.Errorf("--scenario: there is no %q (see --help)", name)
		}
		if unplayable(node.Scenarios[i]) {
			return out, fmt.Errorf("--scenario: %s is about the messages of a load watcher and wants --load %s", name, node.LoadService)
		}
		out.placement = append(out.placement, node.Scenarios[i])
	}
	if o.autoscaler != slack.StandIn && !out.slack {
		return out, fmt.Errorf("--autoscaler: only the scenario %s has an autoscaler", slack.Scenario)
	}
	return out, nil
}

func (o *options) run(ctx context.Context, out, progress io.Writer) (err error) {
	// Before anything is started: the port may be taken.
	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", o.port))
	if err != nil {
		return fmt.Errorf("--port: %w", err)
	}
	defer listener.Close()
	began := time.Now()
	say := func(message string) { fmt.Fprintf(progress, "[%4.1fs] %s\n", time.Since(began).Seconds(), message) }
	log, err := redirectLogs()
	if err != nil {
		return err
	}
	defer func() { closeLogs(log, err, say) }()

	d, err := o.start(ctx, log, say)
	if err != nil {
		return err
	}
	defer d.stop()
	if !o.once {
		page.Serve(ctx, listener, d.view)
		say("live page: http://" + listener.Addr().String())
	}
	err = d.run(ctx, o.selected, say)
	switch {
	case ctx.Err() != nil:
		return errInterrupted
	case err != nil:
		return err
	}
	results := d.results.All()
	if err := printResults(out, o.output, o.selected, results, d.slack.Autoscaler()); err != nil {
		return err
	}
	if !o.once {
		if err := d.stay(ctx, say); err != nil {
			return err
		}
	}
	return demo.Check(results)
}

// errInterrupted is that the user had enough before the scenarios were through.
var errInterrupted = errors.New("interrupted")

// redirectLogs sends what scheduler and controller log to a file, which it
// returns: it is for when something fails.
func redirectLogs() (*os.File, error) {
	file, err := os.CreateTemp("", "plimsoll-demo-*.log")
	if err != nil {
		return nil, err
	}
	flags := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(flags)
	for name, value := range map[string]string{"logtostderr": "false", "stderrthreshold": "FATAL"} {
		if err := flags.Set(name, value); err != nil {
			return nil, err
		}
	}
	klog.SetOutput(file)
	ctrl.SetLogger(klog.NewKlogr())
	return file, nil
}

// closeLogs removes the file, unless something is in it that may say why the
// demo failed.
func closeLogs(file *os.File, err error, say func(string)) {
	klog.Flush()
	written, statErr := file.Stat()
	nothing := statErr == nil && written.Size() == 0
	if err == nil || nothing || errors.Is(err, errInterrupted) || errors.Is(err, demo.ErrUnexpected) {
		_ = os.Remove(file.Name())
		return
	}
	say("the logs of the scheduler, the controller and the autoscaler are in " + file.Name())
}
