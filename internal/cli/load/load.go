// Package load has the commands that show the load of nodes.
package load

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/plimsoll-k8s/plimsoll/internal/cli/base"
	"github.com/plimsoll-k8s/plimsoll/internal/cli/input"
	"github.com/plimsoll-k8s/plimsoll/internal/format"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/load/flags"
	"github.com/plimsoll-k8s/plimsoll/load/provider"
)

// NewCommand returns the command plimsoll load.
func NewCommand() *cobra.Command {
	return base.NewGroup("load", "Show the load that nodes are scored by", newTopCommand())
}

// topOptions are the flags of plimsoll load top.
type topOptions struct {
	source    flags.Flags
	recording string
	scheduler input.Scheduler
	sortBy    string
	output    base.Output
	watch     base.Watch
}

// sortKeys return the utilization that nodes are sorted by, highest first, by the value of --sort-by: none for their names.
var sortKeys = map[string]func(topNode) *input.Utilization{
	"cpu":    func(n topNode) *input.Utilization { return n.CPU },
	"memory": func(n topNode) *input.Utilization { return n.Memory },
	"name":   func(topNode) *input.Utilization { return nil },
}

func newTopCommand() *cobra.Command {
	var o topOptions
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Show the load of all nodes as a scheduler reads it",
		Long: `Show the load of all nodes as a scheduler reads it: mean and standard deviation of
CPU and memory in percent of the node's capacity, the age of the data and its source.
The exit code is 1 if part of the load cannot be read.

metrics-server only reports current usage: a deviation is shown with --watch, once
there are enough samples.`,
		Example: `  # Read the load from the source that a scheduler is configured for.
  plimsoll load top --config scheduler.yaml

  # Read the load from Prometheus.
  plimsoll load top --provider Prometheus --address http://localhost:9090

  # Read the load from a load watcher, repeatedly.
  plimsoll load top --provider Service --address http://localhost:2020 --watch

  # Show the load in a snapshot.
  plimsoll load top --recording s.ndjson.gz`,
		Args: base.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := base.Requires(cmd, "scheduler-name", "config"); err != nil {
				return err
			}
			return o.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	o.source.AddShort(cmd)
	input.AddRecordingFlag(cmd, &o.recording)
	cmd.Flags().Lookup("recording").Usage = "show the load in a file of plimsoll snapshot, with its age at the time of the snapshot, or " +
		"the load that the pods in a file of plimsoll record caused at its end"
	o.scheduler.AddFlags(cmd,
		"file with a KubeSchedulerConfiguration; the arguments of its plugins select the source, in place of --provider",
		"profile in that configuration (default the first with a source)")
	flags := cmd.Flags()
	o.output.AddNoHeadersFlag(cmd)
	flags.StringVar(&o.sortBy, "sort-by", "cpu", "cpu, memory (highest first) or name")
	o.output.AddFlag(cmd)
	o.watch.AddFlags(cmd, 15*time.Second)
	input.ExcludeLive(cmd, "recording")
	for _, flag := range []string{"config", "watch"} {
		cmd.MarkFlagsMutuallyExclusive("recording", flag)
	}
	for _, flag := range []string{"provider", "address", "load-source"} {
		cmd.MarkFlagsMutuallyExclusive("config", flag)
	}
	base.CompleteWith(cmd, "sort-by", "cpu", "memory", "name")
	return cmd
}

// topResult is the result in JSON and YAML.
type topResult struct {
	Source string    `json:"source"`
	Time   time.Time `json:"time"`
	// AgeSeconds and WindowSeconds of the reading.
	AgeSeconds    float64   `json:"ageSeconds"`
	WindowSeconds float64   `json:"windowSeconds"`
	Nodes         []topNode `json:"nodes"`
	// Rejected is the number of invalid values, Stale the number of nodes with outdated values only.
	Rejected int `json:"rejected"`
	Stale    int `json:"stale"`
	// Lost has the error of each series that could not be read.
	Lost map[string]string `json:"lost,omitempty"`
	// Warnings are what the server says about its answers.
	Warnings []string `json:"warnings,omitempty"`

	isCurrent bool
}

// topNode is the load of a node. A resource with unknown load is null.
type topNode struct {
	Name   string             `json:"name"`
	CPU    *input.Utilization `json:"cpu"`
	Memory *input.Utilization `json:"memory"`
}

func (o *topOptions) run(ctx context.Context, out, errOut io.Writer) error {
	if sortKeys[o.sortBy] == nil {
		return base.InvalidValue("sort-by", o.sortBy, "cpu, memory or name")
	}
	warn := base.Warnings(errOut)
	if o.recording != "" {
		return o.printRecorded(out, warn)
	}
	if o.scheduler.Config != "" {
		source, err := o.scheduler.LoadSource()
		if err != nil {
			return err
		}
		o.source.Use(source)
	}
	if err := cmp.Or(o.source.ReadFile(), o.source.Validate()); err != nil {
		return err
	}
	access, err := o.source.Access(ctx)
	if err != nil {
		return err
	}
	source, err := o.source.Source(access)
	if err != nil {
		return err
	}
	return o.watch.Run(ctx, out, warn, func(ctx context.Context, out io.Writer) error {
		return o.readAndPrint(ctx, source, out, warn)
	})
}

// printRecorded prints the load in a recording.
func (o *topOptions) printRecorded(out io.Writer, warn func(string)) error {
	instant, err := recording.OpenAt(o.recording, time.Time{})
	switch {
	case err != nil:
		return err
	case instant.Load == nil:
		return fmt.Errorf(
			"--recording: %s has no load: plimsoll snapshot reads it from a cluster with metrics-server, or with --provider and "+
				"--address",
			o.recording,
		)
	}
	return o.print(*instant.Load, instant.Time, o.recording, out, warn)
}

// readAndPrint reads once and prints. It returns an error if part of the load could not be read.
func (o *topOptions) readAndPrint(ctx context.Context, source load.Source, out io.Writer, warn func(string)) error {
	reading, err := load.Read(ctx, source)
	if _, isFile := source.(*provider.File); isFile && err != nil {
		return err // names the file
	}
	if err != nil {
		return base.Failure(fmt.Errorf("reading load from %s: %w", source, err))
	}
	return o.print(reading, time.Now(), fmt.Sprint(source), out, warn)
}

// print prints a reading from a place with its age at a time. It returns an error if part of the load could not be read.
func (o *topOptions) print(reading load.Reading, now time.Time, place string, out io.Writer, warn func(string)) error {
	result := newTopResult(reading, now)
	mean := func(n topNode) float64 {
		if u := sortKeys[o.sortBy](n); u != nil {
			return u.Mean
		}
		return -1
	}
	slices.SortFunc(result.Nodes, func(a, b topNode) int { return cmp.Or(cmp.Compare(mean(b), mean(a)), cmp.Compare(a.Name, b.Name)) })
	o.watch.Begin(out, o.output.Format)
	if err := o.output.Print(out, result, func(out io.Writer) { result.print(out, &o.output) }); err != nil {
		return err
	}
	if err := input.CheckLoad(&reading, now, place, warn); err != nil {
		return err
	}
	for _, warning := range result.Warnings {
		warn("the server warned: " + warning)
	}
	if result.Rejected > 0 || result.Stale > 0 {
		warn(fmt.Sprintf("ignored %s, invalid or of no node, and %s with outdated values only",
			format.Of(result.Rejected, "value"), format.Of(result.Stale, "node")))
	}
	return base.Failure(reading.LostError())
}

func newTopResult(reading load.Reading, now time.Time) topResult {
	result := topResult{
		Source: reading.Source, Time: reading.Time.UTC(), AgeSeconds: now.Sub(reading.Time).Round(time.Millisecond).Seconds(),
		WindowSeconds: reading.Window.Seconds(), Nodes: []topNode{}, Rejected: reading.Rejected, Stale: reading.Stale,
		Warnings:  reading.Warnings,
		isCurrent: reading.IsCurrent(),
	}
	for _, name := range slices.Sorted(maps.Keys(reading.Nodes)) {
		node := topNode{Name: name}
		node.CPU, node.Memory = input.UtilizationOf(reading.Nodes[name])
		result.Nodes = append(result.Nodes, node)
	}
	for series, err := range reading.Lost {
		if result.Lost == nil {
			result.Lost = map[string]string{}
		}
		result.Lost[string(series)] = err.Error()
	}
	return result
}

func (r *topResult) print(out io.Writer, o *base.Output) {
	t := base.NewTable("node", "CPU %", "deviation", "memory %", "deviation")
	for _, node := range r.Nodes {
		row := []any{node.Name}
		for _, u := range []*input.Utilization{node.CPU, node.Memory} {
			if u == nil {
				row = append(row, "-", "-")
				continue
			}
			deviation := fmt.Sprintf("%.1f", 100*u.StdDev)
			if r.isCurrent {
				deviation = "-"
			}
			row = append(row, fmt.Sprintf("%.1f", 100*u.Mean), deviation)
		}
		t.AddRow(row...)
	}
	t.Print(out, o)
	over := "means and deviations over " + format.Age(seconds(r.WindowSeconds))
	if r.isCurrent {
		over = "current use"
	}
	if r.Source != "" { // a file may lack it
		over += ", from " + base.Escape(r.Source)
	}
	fmt.Fprintf(out, "%s; %s, read %s ago\n", format.Of(len(r.Nodes), "node"), over, format.Age(seconds(r.AgeSeconds)))
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
