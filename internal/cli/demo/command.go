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
	once      bool
	output    base.Output
	port      int
	scenarios []string
}

func newCommand() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "plimsoll-demo",
		Short: "Run scenarios with a real scheduler, with and without Plimsoll",
		Long: `Start etcd, kube-apiserver and kube-scheduler with Plimsoll's plugins on 127.0.0.1, run
small scenarios through the API, each with the default profile and with a profile of
Plimsoll, and print one line for each: the outcome, and the pods that Plimsoll places on
another node.

In the scenario slack, the controller reserves capacity on nodes that an autoscaler adds,
a model in the demo. In the scenario fleet, the controller decides placements over managed
clusters (objects, with the capacity of generated nodes).

Afterwards, a cluster of simulated nodes keeps running until the demo is interrupted, with
the slack controller, the autoscaler, a live page and a kubeconfig. All files and
processes are removed at the end.`,
		Example: `  plimsoll-demo
  plimsoll-demo --once -o json
  plimsoll-demo --scenario predicted,limits
  plimsoll-demo --scenario slack
  plimsoll-demo --scenario fleet`,
		Args: cobra.NoArgs, SilenceUsage: true, SilenceErrors: true,
		PreRunE: func(*cobra.Command, []string) error { return o.selectScenarios() },
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	names := scenarioNames()
	version.AddFlag(cmd)
	flags := cmd.Flags()
	flags.BoolVar(&o.once, "once", false, "exit after the scenarios")
	o.output.AddFlag(cmd)
	flags.IntVar(&o.port, "port", 0, "port of the live page on 127.0.0.1 (default any free port)")
	flags.StringSliceVar(&o.scenarios, "scenario", nil, "scenarios to run: "+strings.Join(names, ", ")+" (default all)")
	base.CompleteWith(cmd, "scenario", names...)
	cmd.SetFlagErrorFunc(base.FlagError)
	base.ConfigureHelp(cmd)
	return cmd
}

// scenarioNames returns the names of the scenarios.
func scenarioNames() []string { return append(node.Names(), slack.Scenario, fleet.Scenario) }

// selectScenarios sets the scenarios to run, by default all. It returns an error for an invalid flag.
func (o *options) selectScenarios() error {
	if len(o.scenarios) == 0 {
		o.scenarios = scenarioNames()
	}
	for _, name := range o.scenarios {
		if !slices.Contains(scenarioNames(), name) {
			return base.InvalidValue("scenario", name, "one of "+strings.Join(scenarioNames(), ", "))
		}
	}
	return nil
}

// run starts the demo, runs the scenarios and prints their results.
func (o *options) run(ctx context.Context, out, progress io.Writer) (err error) {
	// Listen first: the port may be in use.
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

	d, err := start(ctx, say)
	if err != nil {
		return err
	}
	defer d.env.Stop()
	url := "http://" + listener.Addr().String()
	if !o.once {
		node.Serve(ctx, listener, d.view)
		say("live page: " + url)
		first := d.commands()[:2]
		say("when the scenarios have run, in less than a minute, try in another terminal:\n  " + first[0].Text + "\n  " + first[1].Text)
	}
	report := func(string, []demo.Result) {}
	if o.output.Format == base.FormatTable {
		printRow(out, "SCENARIO", "OUTCOME WITH PLIMSOLL (PODS: NODE BY DEFAULT -> WITH PLIMSOLL)")
		report = func(name string, results []demo.Result) { printRow(out, name, summary(name, results)) }
	}
	results, err := d.run(d.env.Context(), o.scenarios, report)
	switch {
	case ctx.Err() != nil:
		return errInterrupted
	case err != nil:
		return err
	}
	if err := o.output.Print(out, results, func(io.Writer) {}); err != nil {
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
	say("the logs of the scheduler and the controller are in " + file.Name())
}
