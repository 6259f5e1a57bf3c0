// Command plimsoll-demo shows Plimsoll at work: a real scheduler on a real API
// server, all on this machine, with nothing to install.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"
	"k8s.io/klog/v2"

	"github.com/plimsoll-k8s/plimsoll/internal/controlplane"
	"github.com/plimsoll-k8s/plimsoll/internal/demo"
	"github.com/plimsoll-k8s/plimsoll/internal/version"
)

func main() {
	controlplane.RunIfChild()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := newCommand().ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "plimsoll-demo:", err)
	}
	os.Exit(exitCode(err))
}

// exitCode is 1 if a pod did not go where it was expected to, and 2 if the
// demo could not be run as asked.
func exitCode(err error) int {
	switch {
	case err == nil:
		return 0
	case errors.Is(err, demo.ErrUnexpected):
		return 1
	}
	return 2
}

type options struct {
	once      bool
	output    string
	port      int
	load      string
	scenarios []string
}

func newCommand() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "plimsoll-demo",
		Short: "Watch a real scheduler place pods with and without Plimsoll",
		Long: `Starts etcd, kube-apiserver and kube-scheduler with Plimsoll's plugins on
127.0.0.1, runs small scenarios through the API, each with the default profile
and with one of Plimsoll's, and tells where the pods went. Then it leaves a
cluster of simulated nodes to play with, a live page of it, and a kubeconfig,
until it is interrupted. Nothing is left behind.`,
		Example: `  plimsoll-demo
  plimsoll-demo --once -o json
  plimsoll-demo --scenario limits,risk-load
  plimsoll-demo --load prometheus`,
		Args: cobra.NoArgs, SilenceUsage: true, SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	var names []string
	for _, s := range demo.Scenarios {
		names = append(names, s.Name)
	}
	version.AddFlag(cmd)
	flags := cmd.Flags()
	flags.BoolVar(&o.once, "once", false, "end after the scenarios")
	flags.StringVarP(&o.output, "output", "o", "table", "table or json")
	flags.IntVar(&o.port, "port", 0, "port of the live page on 127.0.0.1 (default any that is free)")
	flags.StringVar(&o.load, "load", demo.LoadService, "where the scheduler reads load from: service (a load watcher of the demo's) or prometheus (a real server, which must be installed)")
	_ = cmd.RegisterFlagCompletionFunc("load", cobra.FixedCompletions([]string{demo.LoadService, demo.LoadPrometheus}, cobra.ShellCompDirectiveNoFileComp))
	flags.StringSliceVar(&o.scenarios, "scenario", nil, "only these: "+strings.Join(names, ", "))
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"table", "json"}, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("scenario", cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// selected returns the scenarios asked for, or what is wrong with the flags.
func (o *options) selected() ([]demo.Scenario, error) {
	if o.output != "table" && o.output != "json" {
		return nil, fmt.Errorf("--output: found %q, want table or json", o.output)
	}
	if o.load != demo.LoadService && o.load != demo.LoadPrometheus {
		return nil, fmt.Errorf("--load: found %q, want %s or %s", o.load, demo.LoadService, demo.LoadPrometheus)
	}
	unplayable := func(s demo.Scenario) bool { return o.load != demo.LoadService && s.NeedsService() }
	if len(o.scenarios) == 0 {
		return slices.DeleteFunc(slices.Clone(demo.Scenarios), unplayable), nil
	}
	var selected []demo.Scenario
	for _, name := range o.scenarios {
		i := slices.IndexFunc(demo.Scenarios, func(s demo.Scenario) bool { return s.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("--scenario: there is no %q (see --help)", name)
		}
		if unplayable(demo.Scenarios[i]) {
			return nil, fmt.Errorf("--scenario: %s is about the messages of a load watcher and wants --load %s", name, demo.LoadService)
		}
		selected = append(selected, demo.Scenarios[i])
	}
	return selected, nil
}

func (o *options) run(ctx context.Context, out, progress io.Writer) (err error) {
	scenarios, err := o.selected()
	if err != nil {
		return err
	}
	// Before anything is started: the port may be taken.
	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", o.port))
	if err != nil {
		return fmt.Errorf("--port: %w", err)
	}
	defer listener.Close()
	began := time.Now()
	say := func(message string) { fmt.Fprintf(progress, "[%4.1fs] %s\n", time.Since(began).Seconds(), message) }
	logTo, err := redirectLogs()
	if err != nil {
		return err
	}
	defer func() {
		klog.Flush()
		if err == nil || errors.Is(err, errInterrupted) || errors.Is(err, demo.ErrUnexpected) {
			_ = os.Remove(logTo)
			return
		}
		say("the logs of the scheduler are in " + logTo)
	}()

	d, err := demo.Start(ctx, demo.Options{Load: o.load, Progress: say})
	if err != nil {
		return err
	}
	defer d.Stop()
	if !o.once {
		d.ServePage(ctx, listener)
		say("live page: http://" + listener.Addr().String())
	}
	results, err := d.RunAll(ctx, scenarios, func(s demo.Scenario, results []demo.Result) {
		say(fmt.Sprintf("scenario %s with %s: %s", s.Name, results[0].Profile, summary(results)))
	})
	switch {
	case ctx.Err() != nil:
		return errInterrupted
	case err != nil:
		return err
	}
	if err := printResults(out, o.output, scenarios, results); err != nil {
		return err
	}
	if !o.once {
		if err := stay(ctx, d, say); err != nil {
			return err
		}
	}
	return demo.Check(results)
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

// redirectLogs sends what the scheduler logs to a file, which it returns: it is
// for when something fails.
func redirectLogs() (string, error) {
	file, err := os.CreateTemp("", "plimsoll-demo-*.log")
	if err != nil {
		return "", err
	}
	flags := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(flags)
	for name, value := range map[string]string{"logtostderr": "false", "stderrthreshold": "FATAL"} {
		if err := flags.Set(name, value); err != nil {
			return "", err
		}
	}
	klog.SetOutput(file)
	return file.Name(), nil
}

// summary says where the pods of one run went.
func summary(results []demo.Result) string {
	var parts []string
	for _, r := range results {
		parts = append(parts, r.Pod+" -> "+r.Node)
	}
	return strings.Join(parts, ", ")
}

// printResults prints each pod with the default profile beside ours.
func printResults(out io.Writer, format string, scenarios []demo.Scenario, results []demo.Result) error {
	if format == "json" {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(results)
	}
	find := func(scenario, profile, pod string) demo.Result {
		i := slices.IndexFunc(results, func(r demo.Result) bool {
			return r.Scenario == scenario && r.Profile == profile && r.Pod == pod
		})
		return results[i]
	}
	t := table.NewWriter()
	t.SetOutputMirror(out)
	t.SetStyle(table.StyleLight)
	t.Style().Format.Header = text.FormatDefault
	t.AppendHeader(table.Row{"scenario", "pod", "default profile", "with Plimsoll", "expected", ""})
	for i, s := range scenarios {
		if i > 0 {
			t.AppendSeparator()
		}
		for _, step := range s.Steps {
			if step.Arrives == nil {
				continue
			}
			byDefault, ours := find(s.Name, demo.DefaultProfile, step.Arrives.Name), find(s.Name, s.Profile, step.Arrives.Name)
			mark := "ok"
			if !byDefault.OK || !ours.OK {
				mark = "NOT AS EXPECTED"
			}
			t.AppendRow(table.Row{s.Name, ours.Pod, byDefault.Node, ours.Node, byDefault.Want + " / " + ours.Want, mark})
		}
	}
	t.SetColumnConfigs([]table.ColumnConfig{{Number: 1, AutoMerge: true}})
	t.Render()
	for _, s := range scenarios {
		fmt.Fprintf(out, "%s: %s (%s)\n", s.Name, s.Shows, s.Profile)
	}
	return nil
}
