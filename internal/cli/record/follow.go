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
	config, err := o.following.access.Config()
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	usage, err := o.usage(client)
	if err != nil {
		return flagNames(err)
	}
	errOut := cmd.ErrOrStderr()
	settings := record.FollowConfig{
		Folder: o.output, Step: o.config.Step, Rotate: o.following.rotate, MaxBytes: size.Value(), Redact: o.redact,
		Client: client, Usage: usage,
		Objects: func(ctx context.Context) (*record.Cluster, error) {
			return record.ReadCluster(ctx, config, record.ReadOptions{Folders: []string{snapshot.FolderCluster}})
		},
		Log: func(line string) { fmt.Fprintln(errOut, base.Escape(line)) },
	}
	if err := settings.Validate(); err != nil {
		return flagNames(err)
	}
	if err := os.MkdirAll(o.output, folderMode); err != nil {
		return base.Failure(fmt.Errorf("--output: %w", err))
	}
	return base.Failure(record.Follow(cmd.Context(), settings))
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
