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
	output     base.Output
	port       int
	load       string
	autoscaler string
	scenarios  []string
	// selected are the scenarios to run, from the other flags.
	selected selection
}

// selection is the scenarios to run.
type selection struct {
	placement []node.Scenario
	slack     bool
	fleet     bool
}

func newCommand() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "plimsoll-demo",
		Short: "Run scenarios with a real scheduler, with and without Plimsoll",
		Long: `Start etcd, kube-apiserver and kube-scheduler with Plimsoll's plugins on 127.0.0.1,
run small scenarios through the API, each with the default profile and with a profile
of Plimsoll, and print where the pods were placed. In the scenario slack, the
controller reserves capacity on nodes that an autoscaler adds: a built-in stand-in, or
Karpenter with simulated machines, which is built from the project's directory. In the
scenario fleet, the controller decides placements over managed clusters (objects only,
no real clusters). Afterwards, a cluster of simulated nodes keeps running, with the
slack controller, the autoscaler, a live page and a kubeconfig, until the demo is
interrupted. All files and processes are removed.`,
		Example: `  plimsoll-demo
  plimsoll-demo --once -o json
  plimsoll-demo --scenario limits,risk-load
  plimsoll-demo --load prometheus
  plimsoll-demo --scenario slack
  plimsoll-demo --scenario slack --autoscaler karpenter
  plimsoll-demo --scenario fleet`,
		Args: cobra.NoArgs, SilenceUsage: true, SilenceErrors: true,
		PreRunE: func(*cobra.Command, []string) (err error) {
			if err = o.output.Validate(); err == nil {
				o.selected, err = o.selection()
			}
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
	flags.BoolVar(&o.once, "once", false, "exit after the scenarios")
	o.output.AddFlag(cmd)
	flags.IntVar(&o.port, "port", 0, "port of the live page on 127.0.0.1 (default any free port)")
	flags.StringVar(&o.load, "load", node.LoadService, "load source of the scheduler: service (a load watcher in the demo) "+
		"or prometheus (a Prometheus server, which must be installed)")
	flags.StringVar(&o.autoscaler, "autoscaler", slack.StandIn, "autoscaler of the scenario slack: stand-in (built into the demo) "+
		"or karpenter (Karpenter with simulated machines, built from the project's directory; its metrics port listens on all addresses)")
	flags.StringSliceVar(&o.scenarios, "scenario", nil, "scenarios to run: "+strings.Join(names, ", ")+" (default all)")
	base.CompleteWith(cmd, "load", node.LoadService, node.LoadPrometheus)
	base.CompleteWith(cmd, "autoscaler", slack.StandIn, slack.Karpenter)
	base.CompleteWith(cmd, "scenario", names...)
	return cmd
}

// addController selects the scenario slack or fleet, and reports whether the name is one of them.
func (s *selection) addController(name string) bool {
	s.slack = s.slack || name == slack.Scenario
	s.fleet = s.fleet || name == fleet.Scenario
	return name == slack.Scenario || name == fleet.Scenario
}

// selection returns the selected scenarios, or an error for an invalid flag.
func (o *options) selection() (selection, error) {
	var out selection
	switch {
	case o.load != node.LoadService && o.load != node.LoadPrometheus:
		return out, base.InvalidValue("load", o.load, node.LoadService+" or "+node.LoadPrometheus)
	case o.autoscaler != slack.StandIn && o.autoscaler != slack.Karpenter:
		return out, base.InvalidValue("autoscaler", o.autoscaler, slack.StandIn+" or "+slack.Karpenter)
	}
	unsupported := func(s node.Scenario) bool { return o.load != node.LoadService && s.NeedsService() }
	if len(o.scenarios) == 0 {
		return selection{slices.DeleteFunc(slices.Clone(node.Scenarios), unsupported), true, true}, nil
	}
	for _, name := range o.scenarios {
		if out.addController(name) {
			continue
		}
		i := slices.IndexFunc(node.Scenarios, func(s node.Scenario) bool { return s.Name == name })
		if i < 0 {
			return out, base.InvalidValue("scenario", name, "the name of a scenario (see --help)")
		}
		if unsupported(node.Scenarios[i]) {
			return out, fmt.Errorf("--scenario: %s requires --load %s: it changes the messages of a load watcher", name, node.LoadService)
		}
		out.placement = append(out.placement, node.Scenarios[i])
	}
	if o.autoscaler != slack.StandIn && !out.slack {
		return out, fmt.Errorf("--autoscaler: requires the scenario %s", slack.Scenario)
	}
	return out, nil
}

// run starts the demo, runs the selected scenarios and prints their results.
func (o *options) run(ctx context.Context, out, progress io.Writer) (err error) {
	// Listen first: the port may be in use.
	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", o.port))
	if err != nil {
		return fmt.Errorf("--port: %w", err)
	}
	defer listener.Close()
	start := time.Now()
	say := func(message string) { fmt.Fprintf(progress, "[%4.1fs] %s\n", time.Since(start).Seconds(), message) }
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
	url := "http://" + listener.Addr().String()
	if !o.once {
		page.Serve(ctx, listener, d.view)
		say("live page: " + url)
	}
	err = d.run(ctx, o.selected, say)
	switch {
	case ctx.Err() != nil:
		return errInterrupted
	case err != nil:
		return err
	}
	results := d.results.All()
	err = o.output.Print(out, results, func(out io.Writer) { printResults(out, o.selected, results, d.slack.Autoscaler()) })
	if err != nil {
		return err
	}
	if !o.once {
		if err := d.stay(ctx, url, say); err != nil {
			return err
		}
	}
	return demo.Check(results)
}

// errInterrupted is returned if the context ends before the scenarios do.
var errInterrupted = errors.New("interrupted")

// redirectLogs redirects the logs of the scheduler and the controllers to a temporary file.
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

// closeLogs removes the log file unless the demo failed and the file is not empty.
func closeLogs(file *os.File, err error, say func(string)) {
	klog.Flush()
	written, statErr := file.Stat()
	empty := statErr == nil && written.Size() == 0
	if err == nil || empty || errors.Is(err, errInterrupted) || errors.Is(err, demo.ErrUnexpected) {
		_ = os.Remove(file.Name())
		return
	}
	say("the logs of the scheduler, the controller and the autoscaler are in " + file.Name())
}
