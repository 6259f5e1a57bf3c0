package record

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/plimsoll-k8s/plimsoll/api/metricprovider"
	"github.com/plimsoll-k8s/plimsoll/internal/cli/base"
	"github.com/plimsoll-k8s/plimsoll/internal/kube"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/record"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/snapshot"
	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/load/endpoint"
	"github.com/plimsoll-k8s/plimsoll/load/podmetrics"
	"github.com/plimsoll-k8s/plimsoll/load/prometheus"
)

// followOptions are the flags of plimsoll record --follow.
type followOptions struct {
	follow  bool
	access  kube.Access
	rotate  time.Duration
	maxSize string
}

func (o *followOptions) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVar(&o.follow, "follow", false,
		"record the cluster itself until interrupted; the file to write is a directory, in which recordings are started and continued")
	flags.DurationVar(&o.rotate, "rotate", 24*time.Hour, "with --follow: time after which another recording is started")
	flags.StringVar(&o.maxSize, "max-size", "10Gi",
		"with --follow: size of all recordings in the directory, above which the oldest are removed")
	o.access.AddFlags(cmd, "cluster to follow")
}

// folderMode makes a directory with recordings accessible to its owner only.
const folderMode = 0o700

// follow records the cluster until the command is interrupted.
func (o *options) follow(cmd *cobra.Command) error {
	for _, name := range []string{"from", "to", "force", "chunk", "series", "label", "usage-label", "label-key"} {
		if cmd.Flags().Changed(name) {
			return fmt.Errorf("--%s: not allowed together with --follow", name)
		}
	}
	if info, err := os.Stat(o.output); o.output == "" || err == nil && !info.IsDir() {
		return fmt.Errorf("--output: invalid value %q: must be a directory, with --follow", o.output)
	}
	size, err := resource.ParseQuantity(o.following.maxSize)
	if err != nil {
		return base.InvalidValue("max-size", o.following.maxSize, "a quantity such as 10Gi")
	}
	settings, err := o.settings(cmd, size.Value())
	if err != nil {
		return err
	}
	if err := os.MkdirAll(o.output, folderMode); err != nil {
		return base.Failure(fmt.Errorf("--output: %w", err))
	}
	return base.Failure(record.Follow(cmd.Context(), *settings))
}

// settings returns the configuration for recordings of a size in bytes.
func (o *options) settings(cmd *cobra.Command, size int64) (*record.FollowConfig, error) {
	config, err := o.following.access.Config()
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	usage, err := o.usage(client)
	if err != nil {
		return nil, flagNames(err)
	}
	errOut := cmd.ErrOrStderr()
	settings := &record.FollowConfig{
		Folder: o.output, Step: o.config.Step, Rotate: o.following.rotate, MaxBytes: size, Redact: o.redact,
		Client: client, Usage: usage,
		Objects: func(ctx context.Context) (*record.Cluster, error) {
			return record.ReadCluster(ctx, config, record.ReadOptions{Folders: []string{snapshot.FolderCluster}})
		},
		Log: func(line string) { fmt.Fprintln(errOut, base.Escape(line)) },
	}
	if err := settings.Validate(); err != nil {
		return nil, flagNames(err)
	}
	return settings, nil
}

// Following is the flags of a command that follows a cluster into recordings, as plimsoll record --follow does.
type Following struct{ o options }

// AddFlags adds the flags.
func (f *Following) AddFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.o.config.Server.Address, "prometheus", "",
		"URL of a Prometheus server with the usage of pods (default the metrics API, which metrics-server serves)")
	flags.StringVar(&f.o.config.Selector, "selector", "", `matchers for all series, such as cluster="a"`)
	flags.StringVar(
		&f.o.load,
		"load-source",
		"",
		"file with the address and credentials of the Prometheus server, in place of --prometheus",
	)
	flags.DurationVar(&f.o.config.Step, "step", record.DefaultStep, "time between two samples of usage")
	flags.StringVar(&f.o.following.maxSize, "max-size", "2Gi", "size of all recordings, above which the oldest are removed")
	flags.BoolVar(&f.o.redact, "redact", false, "replace names by pseudonyms")
	cmd.MarkFlagsMutuallyExclusive("load-source", "prometheus")
	_ = cmd.MarkFlagFilename("load-source", "yaml", "yml", "json")
	f.o.following.access.AddFlags(cmd, "cluster to follow")
}

// Settings returns the configuration of recordings in a folder, each of a duration.
func (f *Following) Settings(cmd *cobra.Command, folder string, rotate time.Duration) (*record.FollowConfig, error) {
	size, err := resource.ParseQuantity(f.o.following.maxSize)
	if err != nil {
		return nil, base.InvalidValue("max-size", f.o.following.maxSize, "a quantity such as 10Gi")
	}
	if err := f.o.readServer(); err != nil {
		return nil, err
	}
	f.o.output, f.o.following.rotate = folder, rotate
	return f.o.settings(cmd, size.Value())
}

// Prometheus returns a client of the Prometheus server and the matchers for its series, nil if none is configured.
func (f *Following) Prometheus() (client *prometheus.Client, selector string, err error) {
	if f.o.config.Server.Address == "" {
		return nil, "", nil
	}
	config := f.o.config.Server
	config.Type = metricprovider.Prometheus
	client, err = prometheus.NewClient(config, endpoint.Options{Type: metricprovider.Prometheus, MaxBytes: 1 << 20})
	return client, f.o.config.Selector, err
}

// usage returns the source of the usage of pods: Prometheus if its URL is set, and else the metrics API.
func (o *options) usage(client *kubernetes.Clientset) (load.PodSource, error) {
	if o.config.Server.Address == "" {
		return podmetrics.New(podmetrics.Open(client.CoreV1().RESTClient()))
	}
	c := o.config.Server
	c.Type, c.Selector = metricprovider.Prometheus, o.config.Selector
	c.Queries.PodCPU, c.Queries.PodMemory = o.config.CPUQuery, o.config.MemoryQuery
	c.RateWindow = metav1.Duration{Duration: o.config.RateWindow}
	return prometheus.NewPods(c)
}
