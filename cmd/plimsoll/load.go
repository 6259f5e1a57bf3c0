package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"

	"github.com/plimsoll-k8s/plimsoll/api/config"
	"github.com/plimsoll-k8s/plimsoll/internal/snapshot"
	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/load/flags"
	"github.com/plimsoll-k8s/plimsoll/load/provider"
	"github.com/plimsoll-k8s/plimsoll/plugins/lowriskovercommitment"
)

func newLoadCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "load",
		Short: "Look at the load that nodes are judged by",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newLoadTopCommand())
	return cmd
}

// topOptions are the flags of plimsoll load top.
type topOptions struct {
	source    flags.Flags
	snapshot  string
	config    string
	scheduler string
	sortBy    string
	output    output
	watch     bool
	interval  time.Duration
}

func newLoadTopCommand() *cobra.Command {
	var o topOptions
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Read the load of all nodes as a scheduler would, and show it",
		Long: `Read the load of all nodes as a scheduler would, and show it: mean and deviation
of CPU and memory in percent of what the machine has, how old they are and where
they are from. What cannot be read is said, and the exit code is then 1.

metrics-server knows only the present: a deviation shows with --watch, when there
are samples enough.`,
		Example: `  # Does the data arrive that this scheduler is configured for?
  plimsoll load top --config scheduler.yaml

  # From Prometheus, the queries on trial.
  plimsoll load top --provider Prometheus --address http://localhost:9090 --selector 'cluster="prod"'

  # What a load-watcher service tells, again and again.
  plimsoll load top --provider Service --address http://localhost:2020 --watch

  # What was known when a snapshot was taken.
  plimsoll load top --snapshot s.tar.gz`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	o.source.Add(cmd)
	flags := cmd.Flags()
	flags.StringVar(&o.snapshot, "snapshot", "", "show the load that is in a snapshot, as old as it was then")
	_ = cmd.MarkFlagFilename("snapshot", "tar.gz", "tgz")
	flags.StringVar(&o.config, "config", "", "a KubeSchedulerConfiguration, whose LowRiskOverCommitment says where load is read from, in place of --provider")
	flags.StringVar(&o.scheduler, "scheduler-name", "", "the profile of that configuration (default the first that names a source)")
	flags.StringVar(&o.sortBy, "sort-by", "cpu", "cpu, memory (the highest first) or name")
	o.output.add(cmd)
	flags.BoolVarP(&o.watch, "watch", "w", false, "read again and again until Ctrl-C")
	flags.DurationVar(&o.interval, "interval", 15*time.Second, "time between two reads with --watch, at least 1s")
	for _, flag := range []string{"provider", "config", "kubeconfig", "watch"} {
		cmd.MarkFlagsMutuallyExclusive("snapshot", flag)
	}
	_ = cmd.RegisterFlagCompletionFunc("sort-by", cobra.FixedCompletions([]string{"cpu", "memory", "name"}, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.MarkFlagFilename("config", "yaml", "yml", "json")
	return cmd
}

// topResult is the answer in JSON and YAML.
type topResult struct {
	Source string    `json:"source"`
	Time   time.Time `json:"time"`
	// AgeSeconds and WindowSeconds of the reading.
	AgeSeconds    float64   `json:"ageSeconds"`
	WindowSeconds float64   `json:"windowSeconds"`
	Nodes         []topNode `json:"nodes"`
	// Rejected values, nodes with stale ones, and series that could not be read.
	Rejected int               `json:"rejected"`
	Stale    int               `json:"stale"`
	Lost     map[string]string `json:"lost,omitempty"`
}

type topNode struct {
	Name   string          `json:"name"`
	CPU    *topUtilization `json:"cpu"`
	Memory *topUtilization `json:"memory"`
}

// topUtilization is in fractions of the machine's capacity.
type topUtilization struct {
	Mean   float64 `json:"mean"`
	StdDev float64 `json:"stdDev"`
}

// validate says what is wrong with the flags that concern the output.
func (o *topOptions) validate() error {
	switch {
	case o.sortBy != "cpu" && o.sortBy != "memory" && o.sortBy != "name":
		return fmt.Errorf("--sort-by: found %q, want cpu, memory or name", o.sortBy)
	case o.interval < time.Second:
		return fmt.Errorf("--interval: found %s, want at least 1s", o.interval)
	}
	return o.output.validate()
}

func (o *topOptions) run(ctx context.Context, out, warnings io.Writer) error {
	if err := o.validate(); err != nil {
		return err
	}
	if o.snapshot != "" {
		return o.showSnapshot(out, warnings)
	}
	if o.config != "" {
		chosen, err := sourceOf(o.config, o.scheduler)
		if err != nil {
			return err
		}
		o.source.Use(chosen)
	}
	access, err := o.source.Access(ctx)
	if err != nil {
		return err
	}
	source, err := o.source.Source(access)
	if err != nil {
		return err
	}
	for {
		err := o.show(ctx, source, out, warnings)
		if !o.watch || ctx.Err() != nil {
			return err
		}
		if err != nil {
			fmt.Fprintln(warnings, "plimsoll: warning:", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(o.interval):
		}
	}
}

// errNoSource is that a scheduler reads no load.
var errNoSource = errors.New("no profile that names a source of load: want watcherAddress or metricProvider in the args of " + lowriskovercommitment.Name)

// sourceOf returns the source of load of a scheduler's configuration, or of one
// profile in it; errNoSource if there is none.
func sourceOf(path, schedulerName string) (provider.Config, error) {
	cfg, err := config.Load(path)
	if err != nil {
		return provider.Config{}, err
	}
	for _, profile := range cfg.Profiles {
		if schedulerName != "" && profile.SchedulerName != schedulerName {
			continue
		}
		for _, plugin := range profile.PluginConfig {
			if args, ok := plugin.Args.(*config.LowRiskOverCommitmentArgs); ok {
				if chosen, any := lowriskovercommitment.SourceConfig(args); any {
					return chosen, nil
				}
			}
		}
	}
	return provider.Config{}, fmt.Errorf("%s: %w", path, errNoSource)
}

// showSnapshot shows the load of a snapshot.
func (o *topOptions) showSnapshot(out, warnings io.Writer) error {
	read, err := snapshot.Open(o.snapshot)
	switch {
	case err != nil:
		return fmt.Errorf("--snapshot: %w", err)
	case read.Load == nil:
		return fmt.Errorf("--snapshot: %s: there is no load in it", o.snapshot)
	}
	now := read.About.Time
	if read.Load.Time.After(now) {
		now = read.Load.Time // which is read last
	}
	return o.print(*read.Load, now, out, warnings)
}

// show reads once and prints. An error means that something could not be read.
func (o *topOptions) show(ctx context.Context, source load.Source, out, warnings io.Writer) error {
	reading, err := source.Read(ctx)
	if err != nil {
		return &failure{fmt.Errorf("reading load from %s: %w", source, err)}
	}
	return o.print(reading, time.Now(), out, warnings)
}

// print prints a reading as old as it is at a time. An error means that something
// could not be read.
func (o *topOptions) print(reading load.Reading, now time.Time, out, warnings io.Writer) error {
	result := summarize(reading, now)
	slices.SortFunc(result.Nodes, func(a, b topNode) int { return cmp.Or(o.compare(a, b), cmp.Compare(a.Name, b.Name)) })
	if o.watch && o.output.form == asYAML {
		fmt.Fprintln(out, "---") // a document for each read
	}
	if err := o.output.print(out, result, result.print); err != nil {
		return err
	}
	if result.Rejected > 0 || result.Stale > 0 {
		fmt.Fprintf(warnings, "plimsoll: warning: left out: %d values that make no sense or belong to no node, %d nodes with old values only\n", result.Rejected, result.Stale)
	}
	if len(reading.Lost) == 0 {
		return nil
	}
	var errs []error
	for _, series := range load.AllSeries {
		if err := reading.Lost[series]; err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", series, err))
		}
	}
	return &failure{errors.Join(errs...)}
}

// compare orders two nodes, the busier one first.
func (o *topOptions) compare(a, b topNode) int {
	mean := func(u *topUtilization) float64 {
		if u == nil {
			return -1
		}
		return u.Mean
	}
	switch o.sortBy {
	case "cpu":
		return cmp.Compare(mean(b.CPU), mean(a.CPU))
	case "memory":
		return cmp.Compare(mean(b.Memory), mean(a.Memory))
	}
	return 0
}

func summarize(reading load.Reading, now time.Time) topResult {
	result := topResult{
		Source: reading.Source, Time: reading.Time.UTC(), AgeSeconds: now.Sub(reading.Time).Round(time.Millisecond).Seconds(),
		WindowSeconds: reading.Window.Seconds(), Nodes: []topNode{}, Rejected: reading.Rejected, Stale: reading.Stale,
	}
	for _, name := range slices.Sorted(maps.Keys(reading.Nodes)) {
		node := reading.Nodes[name]
		top := topNode{Name: name}
		if node.HasCPU {
			top.CPU = &topUtilization{node.CPU.Mean, node.CPU.StdDev}
		}
		if node.HasMemory {
			top.Memory = &topUtilization{node.Memory.Mean, node.Memory.StdDev}
		}
		result.Nodes = append(result.Nodes, top)
	}
	for series, err := range reading.Lost {
		if result.Lost == nil {
			result.Lost = map[string]string{}
		}
		result.Lost[string(series)] = err.Error()
	}
	return result
}

func (r *topResult) print(out io.Writer) {
	t := table.NewWriter()
	t.SetOutputMirror(out)
	t.SetStyle(table.StyleLight)
	t.Style().Format.Header = text.FormatDefault
	t.AppendHeader(table.Row{"node", "CPU %", "deviation", "memory %", "deviation", "age", "source"})
	age := time.Duration(r.AgeSeconds * float64(time.Second)).Round(time.Second)
	for _, node := range r.Nodes {
		row := table.Row{node.Name}
		for _, u := range []*topUtilization{node.CPU, node.Memory} {
			if u == nil {
				row = append(row, "-", "-")
				continue
			}
			row = append(row, fmt.Sprintf("%.1f", 100*u.Mean), fmt.Sprintf("%.1f", 100*u.StdDev))
		}
		t.AppendRow(append(row, age, r.Source))
	}
	right := make([]table.ColumnConfig, 0, 5)
	for i := 2; i <= 6; i++ {
		right = append(right, table.ColumnConfig{Number: i, Align: text.AlignRight})
	}
	t.SetColumnConfigs(right)
	t.Render()
	fmt.Fprintf(out, "%d nodes; means and deviations over %s\n", len(r.Nodes), time.Duration(r.WindowSeconds*float64(time.Second)))
}

// failure is that something could not be done that was asked for rightly.
type failure struct{ error }

// Unwrap returns what happened.
func (f *failure) Unwrap() error { return f.error }
