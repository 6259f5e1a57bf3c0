package input

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/plimsoll-k8s/plimsoll/internal/cli/base"
	"github.com/plimsoll-k8s/plimsoll/internal/kube"
	"github.com/plimsoll-k8s/plimsoll/internal/snapshot"
	"github.com/plimsoll-k8s/plimsoll/internal/snapshot/collect"
	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/load/flags"
)

// LiveCluster is the flags of a command that reads a live cluster and the load of its nodes.
type LiveCluster struct {
	LoadSource flags.Flags
	Scheduler  Scheduler
}

// AddFlags adds the flags.
func (l *LiveCluster) AddFlags(cmd *cobra.Command, configUsage string) {
	l.LoadSource.Add(cmd)
	l.Scheduler.AddFlags(cmd, configUsage, "profile in that configuration (default the only one, or the first that fits)")
}

// Read reads the cluster, and its load if that is available.
func (l *LiveCluster) Read(cmd *cobra.Command, folders []string, warn func(string)) (*collect.Cluster, error) {
	if err := l.useConfig(cmd); err != nil {
		return nil, err
	}
	config, err := l.Config()
	if err != nil {
		return nil, err
	}
	progress := base.NewReadProgress(cmd.ErrOrStderr())
	read, err := collect.Read(cmd.Context(), config, collect.Options{Folders: folders, Warn: warn, Progress: progress.Show})
	progress.End()
	if err != nil {
		if cmd.Context().Err() != nil {
			err = errors.New("interrupted")
		}
		return nil, base.Failure(err)
	}
	reading, err := l.readLoad(cmd.Context(), config, read.Nodes)
	if err != nil {
		warn(fmt.Sprintf("load: %v; continuing without load", err))
		read.About.Missing = append(read.About.Missing, snapshot.Missing{What: "load", Why: "it could not be read"})
		return read, nil
	}
	for _, series := range load.AllSeries {
		if err := reading.Lost[series]; err != nil {
			warn(fmt.Sprintf("load: %s: %v", series, err))
		}
	}
	read.SetLoad(reading)
	return read, nil
}

// Config returns access to the cluster.
func (l *LiveCluster) Config() (*rest.Config, error) {
	return kube.Config(l.LoadSource.Kubeconfig())
}

// useConfig selects the load source of the scheduler's configuration unless flags select another.
func (l *LiveCluster) useConfig(cmd *cobra.Command) error {
	if l.Scheduler.Config == "" || cmd.Flags().Changed("provider") {
		return nil
	}
	source, err := l.Scheduler.LoadSource()
	if errors.Is(err, ErrNoLoadSource) {
		return nil
	}
	l.LoadSource.Use(source)
	return err
}

// loadTimeout is how long a command waits for the load.
const loadTimeout = 30 * time.Second

// readLoad reads the load of the nodes.
func (l *LiveCluster) readLoad(ctx context.Context, config *rest.Config, nodes []*v1.Node) (load.Reading, error) {
	ctx, cancel := context.WithTimeout(ctx, loadTimeout)
	defer cancel()
	access, err := l.LoadSource.AccessTo(config, nodes)
	if err != nil {
		return load.Reading{}, err
	}
	source, err := l.LoadSource.Source(access)
	if err != nil {
		return load.Reading{}, err
	}
	return source.Read(ctx)
}
