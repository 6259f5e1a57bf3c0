package record

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/kubernetes"

	"github.com/plimsoll-k8s/plimsoll/api/metricprovider"
	"github.com/plimsoll-k8s/plimsoll/internal/cli/base"
	"github.com/plimsoll-k8s/plimsoll/internal/kube"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/record"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording/kinds"
	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/load/flags"
	"github.com/plimsoll-k8s/plimsoll/load/metricsserver"
	"github.com/plimsoll-k8s/plimsoll/load/prometheus"
)

// Following is the flags of a command that follows a cluster into recordings, as plimsoll record --follow does.
type Following struct {
	config record.Config
	// load is the file with the server.
	load    string
	access  kube.Access
	maxSize string
	redact  bool
}

// AddFlags adds the flags.
func (f *Following) AddFlags(cmd *cobra.Command) {
	f.addFlags(cmd, "URL of a Prometheus server with the usage of pods (default the metrics API, which metrics-server serves)",
		"2Gi", "size of all recordings, above which the oldest are removed")
}

// addFlags adds the flags, with the descriptions of --prometheus and --max-size.
func (f *Following) addFlags(cmd *cobra.Command, prometheusUsage, maxSize, maxSizeUsage string) {
	flags := cmd.Flags()
	flags.StringVar(&f.config.Server.Address, "prometheus", "", prometheusUsage)
	flags.StringVar(&f.config.Server.Selector, "selector", "", `matchers for all series, such as cluster="a"`)
	flags.StringVar(
		&f.load,
		"load-source",
		"",
		"file with the Prometheus server, its credentials, rateWindow and queries, in place of --prometheus",
	)
	flags.DurationVar(&f.config.Step, "step", record.DefaultStep, "time between two samples of usage")
	flags.StringVar(&f.maxSize, "max-size", maxSize, maxSizeUsage)
	flags.BoolVar(&f.redact, "redact", false, "replace names by pseudonyms")
	cmd.MarkFlagsMutuallyExclusive("load-source", "prometheus")
	_ = cmd.MarkFlagFilename("load-source", "yaml", "yml", "json")
	f.access.AddFlags(cmd, "cluster to follow")
}

// readServer reads the file with the server, if one is set. The flag --selector replaces the field of the file.
func (f *Following) readServer() error {
	set := &f.config.Server
	if f.load != "" {
		server, err := flags.ReadFile(f.load)
		if err != nil {
			return fmt.Errorf("--load-source: %w", err)
		}
		if server.Type != "" && server.Type != metricprovider.Prometheus {
			return fmt.Errorf("--load-source: %s: type: invalid value %q: must be %s", f.load, server.Type, metricprovider.Prometheus)
		}
		server.Selector = cmp.Or(set.Selector, server.Selector)
		*set = server
	}
	if set.Type = metricprovider.Prometheus; set.Address == "" && set.Selector != "" {
		return errors.New("--selector: requires --prometheus or --load-source")
	}
	return nil
}

// Settings returns the configuration of recordings in a folder, each of the duration that a flag has set.
func (f *Following) Settings(cmd *cobra.Command, folder, rotateFlag string, rotate time.Duration) (*record.FollowConfig, error) {
	size, err := resource.ParseQuantity(f.maxSize)
	if err != nil {
		return nil, base.InvalidValue("max-size", f.maxSize, "a quantity such as 10Gi")
	}
	if err := f.readServer(); err != nil {
		return nil, err
	}
	config, err := f.access.Config()
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	usage, err := f.usage(cmd.Context(), client)
	if err != nil {
		return nil, flagNames(err)
	}
	errOut := cmd.ErrOrStderr()
	settings := &record.FollowConfig{
		Folder: folder, Step: f.config.Step, Rotate: rotate, MaxBytes: size.Value(), Redact: f.redact,
		Client: client, Usage: usage,
		Objects: func(ctx context.Context) (*record.Cluster, error) {
			return record.ReadCluster(ctx, config, record.ReadOptions{Areas: []string{kinds.AreaCluster, kinds.AreaRequests}})
		},
		Log: func(line string) { fmt.Fprintln(errOut, base.Escape(line)) },
	}
	if err := settings.Validate(); err != nil {
		if rest, ok := strings.CutPrefix(err.Error(), "rotate: "); ok {
			return nil, fmt.Errorf("--%s: %s", rotateFlag, rest)
		}
		return nil, flagNames(err)
	}
	return settings, nil
}

// mayPass are failures that a Prometheus server can have for a time.
var mayPass = []load.Reason{load.Empty, load.Unreachable, load.Timeout, load.Throttled, load.TooLarge}

// usage returns the source of the usage of pods: Prometheus if its URL is set, and else the metrics API. It returns an error if the server
// at the URL responds three times as no Prometheus does that works: a recording without usage has no use.
func (f *Following) usage(ctx context.Context, client *kubernetes.Clientset) (load.PodSource, error) {
	if f.config.Server.Address == "" {
		return metricsserver.NewPods(metricsserver.OpenPods(client.CoreV1().RESTClient()))
	}
	source, err := prometheus.NewPods(f.config.Server)
	if err != nil {
		return nil, err
	}
	for range 3 {
		bounded, cancel := context.WithTimeout(ctx, 30*time.Second)
		_, err = source.ReadPods(bounded)
		cancel()
		if err == nil || slices.Contains(mayPass, load.ReasonOf(err)) {
			return source, nil
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	return nil, base.Failure(fmt.Errorf("usage of pods: %s: %w", source, err))
}

// followCluster records the cluster until the command is interrupted.
func (o *options) followCluster(cmd *cobra.Command) error {
	if o.output == "" {
		return errors.New("--output: required: a directory for recordings")
	}
	if err := base.CheckFileName("--output", o.output); err != nil {
		return err
	}
	if info, err := os.Stat(o.output); err == nil && !info.IsDir() {
		return fmt.Errorf("--output: invalid value %q: must be a directory, with --follow", o.output)
	}
	settings, err := o.Settings(cmd, o.output, "rotate", o.rotate)
	if err != nil {
		return err
	}
	settings.Lock, err = record.LockFolder(o.output)
	if err != nil {
		return base.Failure(fmt.Errorf("--output: %w", err))
	}
	defer settings.Lock.Close()
	return base.Failure(o.access.Explain(record.Follow(cmd.Context(), *settings)))
}
