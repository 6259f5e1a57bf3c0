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
	placement []demo.Scenario
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
	for _, s := range demo.Scenarios {
		names = append(names, s.Name)
	}
	names = append(names, demo.SlackScenario, demo.FleetScenario)
	version.AddFlag(cmd)
	flags := cmd.Flags()
	flags.BoolVar(&o.once, "once", false, "end after the scenarios")
	flags.StringVarP(&o.output, "output", "o", "table", "table or json")
	flags.IntVar(&o.port, "port", 0, "port of the live page on 127.0.0.1 (default any that is free)")
	flags.StringVar(&o.load, "load", demo.LoadService, "where the scheduler reads load from: service (a load watcher of the demo's) or prometheus (a real server, which must be installed)")
	_ = cmd.RegisterFlagCompletionFunc("load", cobra.FixedCompletions([]string{demo.LoadService, demo.LoadPrometheus}, cobra.ShellCompDirectiveNoFileComp))
	flags.StringVar(&o.autoscaler, "autoscaler", demo.AutoscalerStandIn, "what makes the nodes of the slack scenario: stand-in (a small loop of the demo's) or karpenter (a real one with simulated machines, built from the project's folder; its metrics port is open on all addresses)")
	_ = cmd.RegisterFlagCompletionFunc("autoscaler", cobra.FixedCompletions([]string{demo.AutoscalerStandIn, demo.AutoscalerKarpenter}, cobra.ShellCompDirectiveNoFileComp))
	flags.StringSliceVar(&o.scenarios, "scenario", nil, "only these: "+strings.Join(names, ", "))
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"table", "json"}, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("scenario", cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// controllers selects a scenario that is about a controller, if it has that name.
func (s *selection) controllers(name string) bool {
	s.slack = s.slack || name == demo.SlackScenario
	s.fleet = s.fleet || name == demo.FleetScenario
	return name == demo.SlackScenario || name == demo.FleetScenario
}

// selection returns the scenarios asked for, or what is wrong with the flags.
func (o *options) selection() (selection, error) {
	var out selection
	switch {
	case o.output != "table" && o.output != "json":
		return out, fmt.Errorf("--output: found %q, want table or json", o.output)
	case o.load != demo.LoadService && o.load != demo.LoadPrometheus:
		return out, fmt.Errorf("--load: found %q, want %s or %s", o.load, demo.LoadService, demo.LoadPrometheus)
	case o.autoscaler != demo.AutoscalerStandIn && o.autoscaler != demo.AutoscalerKarpenter:
		return out, fmt.Errorf("--autoscaler: found %q, want %s or %s", o.autoscaler, demo.AutoscalerStandIn, demo.AutoscalerKarpenter)
	}
	unplayable := func(s demo.Scenario) bool { return o.load != demo.LoadService && s.NeedsService() }
	if len(o.scenarios) == 0 {
		return selection{slices.DeleteFunc(slices.Clone(demo.Scenarios), unplayable), true, true}, nil
	}
	for _, name := range o.scenarios {
		if out.controllers(name) {
			continue
		}
		i := slices.IndexFunc(demo.Scenarios, func(s demo.Scenario) bool { return s.Name == name })
		if i < 0 {
			return out, fmt.Errorf("--scenario: there is no %q (see --help)", name)
		}
		if unplayable(demo.Scenarios[i]) {
			return out, fmt.Errorf("--scenario: %s is about the messages of a load watcher and wants --load %s", name, demo.LoadService)
		}
		out.placement = append(out.placement, demo.Scenarios[i])
	}
	if o.autoscaler != demo.AutoscalerStandIn && !out.slack {
		return out, fmt.Errorf("--autoscaler: only the scenario %s has an autoscaler", demo.SlackScenario)
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

	d, err := demo.Start(ctx, demo.Options{Load: o.load, Autoscaler: o.autoscaler, Log: log, Progress: say})
	if err != nil {
		return err
	}
	defer d.Stop()
	if !o.once {
		d.ServePage(ctx, listener)
		say("live page: http://" + listener.Addr().String())
	}
	results, err := o.selected.run(ctx, d, say)
	switch {
	case ctx.Err() != nil:
		return errInterrupted
	case err != nil:
		return err
	}
	if err := printResults(out, o.output, o.selected, results, d.Autoscaler()); err != nil {
		return err
	}
	if !o.once {
		if err := stay(ctx, d, say); err != nil {
			return err
		}
	}
	return demo.Check(results)
}

// run runs the scenarios.
func (s selection) run(ctx context.Context, d *demo.Demo, say func(string)) ([]demo.Result, error) {
	results, err := d.RunAll(ctx, s.placement, func(s demo.Scenario, results []demo.Result) {
		say(fmt.Sprintf("scenario %s with %s: %s", s.Name, results[0].Profile, summary(results)))
	})
	if err == nil && s.slack {
		say(fmt.Sprintf("scenario %s: starting the slack controller and an autoscaler (%s)", demo.SlackScenario, d.Autoscaler()))
		var more []demo.Result
		more, err = d.RunSlack(ctx, say)
		results = append(results, more...)
	}
	if err == nil && s.fleet {
		say(fmt.Sprintf("scenario %s: starting the placement controller; the ManagedClusters are objects without clusters behind them", demo.FleetScenario))
		var more []demo.Result
		more, err = d.RunFleet(ctx, say)
		results = append(results, more...)
	}
	return results, err
}

// stay leaves a cluster to play with until ctx ends.
func stay(ctx context.Context, d *demo.Demo, say func(string)) error {
	if err := d.Play(ctx); err != nil {
		return err
	}
	say("the cluster stays until Ctrl-C; look at the live page, or use kubectl (all nodes are simulated):\n\n" +
		"  export KUBECONFIG=" + d.Kubeconfig() + "\n")
	// The control plane ends with ctx, too.
	<-d.Ended()
	if ctx.Err() == nil {
		return errors.New("the control plane has ended")
	}
	say("stopped")
	return nil
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
