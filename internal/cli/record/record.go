// Package record has the command that records a cluster over time.
package record

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/spf13/cobra"

	"github.com/plimsoll-k8s/plimsoll/internal/cli/base"
	"github.com/plimsoll-k8s/plimsoll/internal/format"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/record"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
)

// options are the flags of plimsoll record.
type options struct {
	Following

	from, to, output string
	force, follow    bool
	rotate           time.Duration
}

// NewCommand returns the command plimsoll record.
func NewCommand() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "record (--prometheus URL | --follow) -o FILE",
		Short: "Record what happened in a cluster, as input of other commands",
		Long: `Record what happened in a cluster over a time: nodes and pods as they came and went,
and what each pod used. Everything is read from a Prometheus server, or another server
with its query API, that has the metrics of kube-state-metrics and of the kubelets'
cAdvisor. The cluster is not accessed, unless --follow is set.

The file is written when the recording is complete. What the server lacks is printed,
with how it is treated, and listed in the recording.

With --follow, the cluster itself is recorded until the command is interrupted, for
clusters without such a server: nodes and pods from its API server, and usage from
metrics-server or, with --prometheus, from Prometheus.

With --redact, all texts that Kubernetes does not define are replaced by pseudonyms, as
by plimsoll snapshot --redact.`,
		Example: `  # Record the last week.
  plimsoll record --prometheus http://localhost:9090 -o week.ndjson.gz

  # Record one of the clusters that a server knows, with pseudonyms.
  plimsoll record --prometheus https://thanos.example.com --selector 'cluster="a"' --from 1d --redact -o day.ndjson.gz

  # Record this cluster from now on, with usage from metrics-server.
  plimsoll record --follow -o /var/lib/recordings`,
		Args: base.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	o.addAllFlags(cmd)
	return cmd
}

func (o *options) addAllFlags(cmd *cobra.Command) {
	flags, c := cmd.Flags(), &o.config
	flags.SortFlags = false
	flags.StringVar(&o.from, "from", "7d", "start: a duration before now, such as 7d, or a time, such as 2026-01-31T00:00:00Z")
	flags.StringVar(&o.to, "to", "now", "end: now, a duration before now, or a time")
	flags.StringVarP(&o.output, "output", "o", "", "file to write")
	flags.BoolVar(&o.force, "force", false, "replace an existing file")
	flags.BoolVar(&o.follow, "follow", false,
		"record the cluster itself until interrupted; the file to write is a directory, in which recordings are started")
	flags.DurationVar(&o.rotate, "rotate", 24*time.Hour, "with --follow: time after which another recording is started")
	o.addFlags(cmd, "URL of the Prometheus server, such as http://localhost:9090", "10Gi",
		"with --follow: size of all recordings in the directory, above which the oldest are removed")
	flags.DurationVar(&c.Window, "chunk", record.DefaultWindow, "time that is read at once; shorter takes less memory")
	flags.DurationVar(&c.Timeout, "timeout", record.DefaultTimeout, "longest time of a query")
	flags.StringToStringVar(&c.Series, "series", nil,
		"names of series that differ from those of kube-state-metrics and cAdvisor, as NAME=OTHER; an empty one omits the series")
	flags.StringToStringVar(&c.Labels, "label", nil,
		"names of labels of kube-state-metrics that differ, as NAME=OTHER (default exported_NAME if the server has these)")
	flags.StringToStringVar(&c.UsageLabels, "usage-label", nil, "names of labels of cAdvisor that differ, such as pod=pod_name")
	flags.StringSliceVar(&c.LabelKeys, "label-key", nil,
		"keys of labels of nodes and pods that kube-state-metrics exports with underscores, such as example.com/team")
	_ = cmd.MarkFlagFilename("output", "ndjson.gz")
	base.CompleteWith(cmd, "to", "now")
	base.Rare(cmd, "chunk", "timeout", "series", "label", "usage-label", "label-key")
}

// parseTime parses a time: now, a duration before now or a time. The flag is for the error.
func parseTime(flag, text string, now time.Time) (time.Time, error) {
	if text == "now" {
		return now, nil
	}
	if d, err := model.ParseDuration(text); err == nil {
		return now.Add(-time.Duration(d)), nil
	}
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t, nil
	}
	return time.Time{}, base.InvalidValue(
		flag,
		text,
		"now, a duration before now such as 7d or 12h, or a time such as 2026-01-31T00:00:00Z",
	)
}

// fieldFlags are the flags of the fields that errors name.
var fieldFlags = map[string]string{
	"address": "--prometheus", "step": "--step", "window": "--chunk", "rateWindow": "--load-source: rateWindow", "timeout": "--timeout",
	"selector": "--selector", "maxBytes": "--max-size", "series": "--series", "label": "--label", "usageLabel": "--usage-label",
	"to": "--to", "token": "--load-source: token", "tokenFile": "--load-source: tokenFile", "headersFile": "--load-source: headersFile",
	"caFile":   "--load-source: caFile",
	"certFile": "--load-source: certFile",
	"keyFile":  "--load-source: keyFile", "certFile, keyFile": "--load-source: certFile, keyFile",
}

// flagNames returns an error in which the name of the flag replaces the name of the field.
func flagNames(err error) error {
	text := err.Error()
	for _, field := range slices.Sorted(maps.Keys(fieldFlags)) {
		if rest, ok := strings.CutPrefix(text, field); ok && rest != "" && (rest[0] == ':' || rest[0] == ' ') {
			return errors.New(fieldFlags[field] + rest)
		}
	}
	return err
}

func (o *options) run(cmd *cobra.Command) error {
	refused, why := []string{"rotate", "max-size", "kubeconfig", "context"}, "requires --follow"
	if o.follow {
		refused = []string{"from", "to", "force", "chunk", "timeout", "series", "label", "usage-label", "label-key"}
		why = "not allowed together with --follow"
	}
	for _, name := range refused {
		if cmd.Flags().Changed(name) {
			return fmt.Errorf("--%s: %s", name, why)
		}
	}
	if o.follow {
		return o.followCluster(cmd)
	}
	if err := o.readServer(); err != nil {
		return err
	}
	switch {
	case o.config.Server.Address == "":
		return errors.New("--prometheus: required: the URL of a Prometheus server, such as http://localhost:9090, or --follow")
	case o.output == "":
		return errors.New("--output: required: the file to write, such as week.ndjson.gz")
	}
	file := base.NewFile{Flag: "--output", Path: o.output, Kind: base.Recording, Force: o.force, Mode: fileMode}
	err := file.Check()
	if err != nil {
		return err
	}
	now := time.Now()
	if o.config.From, err = parseTime("from", o.from, now); err != nil {
		return err
	}
	if o.config.To, err = parseTime("to", o.to, now); err != nil {
		return err
	}
	if o.config.To.After(now) {
		return base.InvalidValue("to", o.to, "at the latest now, "+now.UTC().Format(time.RFC3339))
	}
	if cmd.Flags().Changed("step") && o.config.Step == 0 {
		return base.InvalidValue("step", o.config.Step, "whole seconds, at least 1s")
	}
	if err := o.config.Validate(); err != nil {
		return flagNames(err)
	}
	return base.Failure(o.record(cmd, file))
}

// fileMode makes a recording readable by its owner only: it has details of the cluster.
const fileMode = 0o600

// record records and prints a summary of the recording.
func (o *options) record(cmd *cobra.Command, file base.NewFile) error {
	errOut := cmd.ErrOrStderr()
	options := record.Options{
		Redact: o.redact,
		Progress: func(p record.Progress) {
			fmt.Fprintf(errOut, "%3.0f %%  until %s: %s, %s, %s\n",
				100*p.Until.Sub(o.config.From).Seconds()/o.config.To.Sub(o.config.From).Seconds(), p.Until.Format(time.RFC3339),
				format.Of(p.Nodes, "node"), format.Of(p.Pods, "pod"), format.Bytes(p.Bytes)+"B")
		},
		Log: func(line string) { fmt.Fprintln(errOut, base.Escape(line)) },
	}
	var progress record.Progress
	var recordErr error
	err := file.Write(func(out io.Writer) error {
		progress, recordErr = record.Record(cmd.Context(), out, o.config, options)
		return recordErr
	})
	switch {
	case recordErr != nil && cmd.Context().Err() != nil:
		return base.Failure(errors.New("interrupted: no recording was written"))
	case recordErr != nil && o.load != "":
		return fmt.Errorf("--load-source: %s: %w", o.load, recordErr)
	case recordErr != nil:
		return fmt.Errorf("--prometheus: %w", recordErr)
	case err != nil:
		return err
	}
	printMissing(errOut, progress.Missing)
	fmt.Fprintf(cmd.OutOrStdout(), "%s: %s, %s from %s to %s, %s", base.Escape(o.output),
		format.Of(progress.Nodes, "node"), format.Of(progress.Pods, "pod"),
		o.config.From.Format(time.RFC3339), o.config.To.Format(time.RFC3339), format.Bytes(progress.Bytes)+"B")
	if o.redact {
		fmt.Fprint(cmd.OutOrStdout(), "; names are pseudonyms")
	}
	fmt.Fprintln(cmd.OutOrStdout())
	return nil
}

// printMissing prints the data that a recording lacks.
func printMissing(out io.Writer, missing []recording.Missing) {
	if len(missing) == 0 {
		return
	}
	fmt.Fprintln(out, "missing in the recording:")
	for _, m := range missing {
		fmt.Fprintf(out, "  %s: %s\n", base.Escape(m.What), base.Escape(m.Why))
	}
}
