package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"
	internalconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"

	"github.com/plimsoll-k8s/plimsoll/api/config"
	"github.com/plimsoll-k8s/plimsoll/internal/manifest"
	"github.com/plimsoll-k8s/plimsoll/internal/simulate"
	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/load/file"
)

// scoreOptions are the flags of plimsoll score.
type scoreOptions struct {
	files         []string
	config        string
	schedulerName string
	load          string
	now           string
	output        output
}

func newScoreCommand() *cobra.Command {
	var o scoreOptions
	cmd := &cobra.Command{
		Use:   "score -f FILE_OR_DIR...",
		Short: "Score every node for every pending pod, as the scheduler would",
		Long: `Score every node for every pending pod with the code of the real scheduler.

Nodes and pods come from manifests: pods with spec.nodeName run there, the
others are pending and are scored in the order of the files. Nothing is bound:
each pod is scored as if it came alone. Where totals are equal the scheduler
chooses at random; here the node given first is selected.

Without --config the scheduler's default profile is used, with all plugins of
Plimsoll's at weight 1.`,
		Example: `  # The cluster as it is, with the profile that is to be tried.
  kubectl get nodes,pods -A -o yaml | plimsoll score -f - --config scheduler.yaml

  # What load would change.
  plimsoll score -f cluster/ --load load.json --now 2026-11-21T12:00:00Z -o json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.files = append(o.files, args...)
			return o.run(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVarP(&o.files, "filename", "f", nil, "file or folder with manifests of nodes and pods, - for standard input; may be repeated")
	flags.StringVar(&o.config, "config", "", "a KubeSchedulerConfiguration (v1, v1beta3 or v1beta2)")
	flags.StringVar(&o.schedulerName, "scheduler-name", "", "the profile to score with (default the only one, or the one a pod names)")
	flags.StringVar(&o.load, "load", "", "a file with the nodes' load, as a load watcher sends it")
	flags.StringVar(&o.now, "now", "", "the time at which the age of the load is judged, as in 2026-11-21T12:00:00Z (default the present)")
	o.output.add(cmd)
	_ = cmd.MarkFlagFilename("config", "yaml", "yml", "json")
	_ = cmd.MarkFlagFilename("load", "json")
	return cmd
}

// scoreResult is the answer in JSON and YAML.
type scoreResult struct {
	Pods []simulate.PodScores `json:"pods"`
}

func (o *scoreOptions) run(ctx context.Context, in io.Reader, out, warnings io.Writer) error {
	warn := func(message string) { fmt.Fprintln(warnings, "plimsoll: warning:", message) }
	if err := o.output.validate(); err != nil {
		return err
	}
	if len(o.files) == 0 {
		return fmt.Errorf("--filename: nothing given, want files or folders with manifests of nodes and pods")
	}
	now := time.Now()
	if o.now != "" {
		var err error
		if now, err = time.Parse(time.RFC3339, o.now); err != nil {
			return fmt.Errorf("--now: found %q, want a time like 2026-11-21T12:00:00Z", o.now)
		}
	}
	cfg, err := o.configuration(warn)
	if err != nil {
		return err
	}
	reading, err := o.reading(ctx, now, warn)
	if err != nil {
		return err
	}
	objects, err := manifest.Read(o.files, in)
	if err != nil {
		return err
	}
	for _, warning := range objects.Warnings {
		warn(warning)
	}
	result, err := score(ctx, objects, simulate.Options{Config: cfg, Load: reading, Now: now}, o.schedulerName)
	if err != nil {
		return err
	}
	return o.output.print(out, result, func(out io.Writer) {
		if len(result.Pods) == 0 {
			warn("no pending pods in what was given: all have spec.nodeName")
		}
		for _, pod := range result.Pods {
			printScores(out, pod)
		}
	})
}

// configuration reads the scheduler's configuration.
func (o *scoreOptions) configuration(warn func(string)) (*internalconfig.KubeSchedulerConfiguration, error) {
	if o.config == "" {
		return simulate.DefaultConfig()
	}
	cfg, err := config.Load(o.config)
	if err != nil {
		return nil, err
	}
	if warning := config.LegacyWarning(cfg.APIVersion); warning != "" {
		warn(warning)
	}
	return cfg, nil
}

// reading reads the load, nil if none is given.
func (o *scoreOptions) reading(ctx context.Context, now time.Time, warn func(string)) (*load.Reading, error) {
	if o.load == "" {
		return nil, nil
	}
	reading, err := file.New(o.load).Read(ctx)
	if err != nil {
		return nil, err
	}
	if reading.Rejected > 0 {
		warn(fmt.Sprintf("%s: %d values are no sensible percentages and are left out", o.load, reading.Rejected))
	}
	age := now.Sub(reading.Time)
	if age < -load.MaxAhead {
		return nil, fmt.Errorf("%s: timestamp: the load is of %s, %s after the time it is judged at (--now)",
			o.load, reading.Time.UTC().Format(time.RFC3339), -age.Round(time.Second))
	}
	if age > config.DefaultMaxLoadAge {
		warn(fmt.Sprintf("%s: the load is %s old; unless maxLoadAge allows it, nodes are judged by limits only", o.load, age.Round(time.Second)))
	}
	return &reading, nil
}

func score(ctx context.Context, objects *manifest.Objects, options simulate.Options, schedulerName string) (scoreResult, error) {
	result := scoreResult{Pods: []simulate.PodScores{}}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	engine, err := simulate.New(ctx, simulate.Cluster{Nodes: objects.Nodes, Running: objects.Running, Others: objects.Others}, options)
	if err != nil {
		return result, err
	}
	for _, pod := range objects.Pending {
		scores, err := engine.Score(ctx, pod, schedulerName)
		if err != nil {
			return result, err
		}
		result.Pods = append(result.Pods, scores)
	}
	return result, nil
}

// printScores prints one table: the nodes, best first, and what the plugins
// that tell them apart add to their totals.
func printScores(out io.Writer, pod simulate.PodScores) {
	fmt.Fprintf(out, "%s/%s -> %s\n", pod.Namespace, pod.Name, cmp.Or(pod.Selected, "no node"))
	nodes := slices.Clone(pod.Nodes)
	slices.SortStableFunc(nodes, func(a, b simulate.NodeScores) int {
		if a.Feasible != b.Feasible {
			return cmp.Compare(len(a.Reason), len(b.Reason)) // feasible nodes have none
		}
		return cmp.Compare(b.Total, a.Total)
	})
	telling, same := tellingPlugins(nodes)

	t := table.NewWriter()
	t.SetOutputMirror(out)
	t.SetStyle(table.StyleLight)
	t.Style().Format.Header = text.FormatDefault
	header := table.Row{"node", "total"}
	for _, name := range telling {
		header = append(header, wrapName(name))
	}
	t.AppendHeader(append(header, "why not"))
	for _, node := range nodes {
		row := table.Row{node.Name, node.Total}
		if !node.Feasible {
			row[1] = "-"
		}
		for _, name := range telling {
			row = append(row, describeScore(node.Plugins, name))
		}
		t.AppendRow(append(row, node.Reason))
	}
	t.SuppressEmptyColumns()
	t.Render()
	if len(same) > 0 {
		fmt.Fprintln(out, "the same on every node:", strings.Join(same, ", "))
	}
	if reason := pod.Reason(pod.Selected); pod.Selected != "" {
		fmt.Fprintln(out, reason)
	}
	fmt.Fprintln(out)
}

// tellingPlugins parts the plugins that score some nodes otherwise than others
// from those that do not.
func tellingPlugins(nodes []simulate.NodeScores) (telling, same []string) {
	scores := map[string]map[int64]bool{}
	for _, node := range nodes {
		for name, plugin := range node.Plugins {
			if scores[name] == nil {
				scores[name] = map[int64]bool{}
			}
			scores[name][plugin.Score] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(scores)) {
		if len(scores[name]) > 1 {
			telling = append(telling, name)
		} else {
			same = append(same, name)
		}
	}
	return telling, same
}

// describeScore returns what a plugin said: its score, its weight unless that
// is 1, and the raw score where it is another.
func describeScore(plugins map[string]simulate.PluginScore, name string) string {
	s, ok := plugins[name]
	if !ok {
		return "-"
	}
	description := fmt.Sprint(s.Score)
	if s.Weight != 1 {
		description += fmt.Sprintf(" x%d", s.Weight)
	}
	if s.Raw != s.Score {
		description += fmt.Sprintf("\n(%d)", s.Raw)
	}
	return description
}

// wrapName breaks the long names of plugins where a word begins, so that a
// table of them fits a terminal.
func wrapName(name string) string {
	var b strings.Builder
	width := 0
	for i, c := range name {
		if i > 0 && c >= 'A' && c <= 'Z' && width >= 8 {
			b.WriteByte('\n')
			width = 0
		}
		b.WriteRune(c)
		width++
	}
	return b.String()
}
