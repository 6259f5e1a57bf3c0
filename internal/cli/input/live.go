package input

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/plimsoll-k8s/plimsoll/api/metricprovider"
	"github.com/plimsoll-k8s/plimsoll/internal/cli/base"
	"github.com/plimsoll-k8s/plimsoll/internal/format"
	"github.com/plimsoll-k8s/plimsoll/internal/kube"
	"github.com/plimsoll-k8s/plimsoll/internal/manifest"
	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/emulation"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/engine"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/record"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording/kinds"
	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/load/flags"
)

// LiveCluster is the flags of a command that reads a live cluster and the load of its nodes.
type LiveCluster struct {
	LoadSource flags.Flags
	Scheduler  Scheduler
}

// AddFlags adds the flags.
func (l *LiveCluster) AddFlags(cmd *cobra.Command, configUsage, nameUsage string) {
	l.LoadSource.AddShort(cmd)
	isType := func(text string) bool { return slices.Contains(metricprovider.Types, text) }
	base.CheckFlag(cmd, "provider", "one of "+strings.Join(metricprovider.Types, ", "), isType)
	l.Scheduler.AddFlags(cmd, configUsage, nameUsage)
}

// Read reads the cluster, and its load if it is available.
func (l *LiveCluster) Read(cmd *cobra.Command, warn func(string)) (*record.Cluster, error) {
	if err := l.useConfig(cmd); err != nil {
		return nil, err
	}
	read, config, err := readObjects(cmd, &l.LoadSource, nil, warn)
	if err != nil {
		return nil, err
	}
	l.readLoad(cmd.Context(), config, read, warn)
	return read, nil
}

// ReadState reads the objects that scheduling depends on, and the load, if it is available. sources, if it is not nil, returns the
// sources from which the load is read first.
func (l *LiveCluster) ReadState(
	cmd *cobra.Command, warn func(string), sources func(*rest.Config, *manifest.Objects) ([]metricprovider.Config, error),
) (*engine.State, error) {
	if err := l.useConfig(cmd); err != nil {
		return nil, err
	}
	read, config, state, err := readState(cmd, &l.LoadSource, warn)
	if err != nil {
		return nil, err
	}
	var first []metricprovider.Config
	if sources != nil {
		if first, err = sources(config, state.Objects); err != nil {
			return nil, base.Failure(err)
		}
	}
	l.readLoad(cmd.Context(), config, read, warn, first...)
	state.Load = read.Load
	ctx, cancel := context.WithTimeout(cmd.Context(), usageTimeout)
	defer cancel()
	// Not every source of load has the usage of pods, nor every profile reads it: without it, expectations state their basis.
	if usage, err := l.readUsage(ctx, config, read.Nodes); err == nil {
		state.Usage = &usage
	}
	return state, nil
}

// ReadObjects reads the objects that scheduling and slack depend on.
func ReadObjects(cmd *cobra.Command, cluster *kube.Access, warn func(string)) (*engine.State, error) {
	_, _, state, err := readState(cmd, cluster, warn)
	return state, err
}

// readState reads the objects that scheduling and slack depend on.
func readState(
	cmd *cobra.Command, cluster base.ClusterAccess, warn func(string),
) (*record.Cluster, *rest.Config, *engine.State, error) {
	read, config, err := readObjects(cmd, cluster, []string{kinds.AreaCluster}, warn)
	if err != nil {
		return nil, nil, nil, err
	}
	objects, err := read.Cluster()
	if err != nil {
		return nil, nil, nil, base.Failure(err)
	}
	for _, warning := range objects.Warnings {
		warn(warning)
	}
	return read, config, &engine.State{Objects: objects, Now: time.Now()}, nil
}

// requestTimeout bounds each request: kube-apiserver ends a list after as long by default.
const requestTimeout = time.Minute

// readObjects reads the objects of a cluster of some areas, all if areas is nil. As Objects.Read, it makes this process
// emulate the version of the cluster.
func readObjects(
	cmd *cobra.Command, cluster base.ClusterAccess, areas []string, warn func(string),
) (*record.Cluster, *rest.Config, error) {
	config, err := cluster.Config()
	if err != nil {
		return nil, nil, err
	}
	config.Timeout = requestTimeout
	progress := base.NewReadProgress(cmd.ErrOrStderr())
	read, err := record.ReadCluster(cmd.Context(), config, record.ReadOptions{Areas: areas, Warn: warn, Progress: progress.Show})
	progress.End()
	if err != nil {
		if cmd.Context().Err() != nil {
			err = errors.New("interrupted")
		}
		return nil, nil, base.Failure(cluster.Explain(err))
	}
	return read, config, emulation.Use(read.About.Kubernetes)
}

// useConfig selects the load source in --config unless flags select another.
func (l *LiveCluster) useConfig(cmd *cobra.Command) error {
	if err := l.LoadSource.ReadFile(); err != nil {
		return err
	}
	if slices.ContainsFunc([]string{"load-source", "provider", "address"}, cmd.Flags().Changed) {
		return l.LoadSource.Validate()
	}
	if l.Scheduler.Config == "" {
		return nil
	}
	source, err := l.Scheduler.LoadSource()
	if errors.Is(err, errNoLoadSource) {
		return nil
	}
	l.LoadSource.Use(source)
	return err
}

// readLoad reads the load of the nodes and adds it to a snapshot. The sources are tried in order, the
// source of the flags last. If it cannot be read from any source, the snapshot lists it as missing.
func (l *LiveCluster) readLoad(
	ctx context.Context, config *rest.Config, read *record.Cluster, warn func(string), sources ...metricprovider.Config,
) {
	attempts := []flags.Flags{}
	for _, source := range sources {
		attempt := l.LoadSource
		attempt.Use(source)
		attempts = append(attempts, attempt)
	}
	for _, attempt := range append(attempts, l.LoadSource) {
		reading, err := readLoad(ctx, &attempt, config, read.Nodes)
		if err != nil {
			warn(fmt.Sprintf("load: %v", err))
			continue
		}
		for _, series := range load.AllSeries {
			if err := reading.Lost[series]; err != nil {
				warn(fmt.Sprintf("load: %s: %v", series, err))
			}
		}
		read.Load = &reading
		return
	}
	warn("load: continuing without load")
	read.About.Missing = append(read.About.Missing, recording.Missing{What: "load", Why: "it could not be read"})
}

// ReadUsage reads the usage of pods and adds it to a snapshot. If it cannot be read, the snapshot lists it as missing.
func (l *LiveCluster) ReadUsage(ctx context.Context, read *record.Cluster, warn func(string)) error {
	config, err := l.LoadSource.Config()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, usageTimeout)
	defer cancel()
	reading, err := l.readUsage(ctx, config, read.Nodes)
	if err != nil {
		warn(fmt.Sprintf("usage of pods: %v; continuing without it: install metrics-server, use --provider Prometheus --address URL, or "+
			"set --usage=false", err))
		read.About.Missing = append(read.About.Missing, recording.Missing{What: "usage of pods", Why: "it could not be read"})
		return nil
	}
	if reading.Rejected > 0 {
		warn("usage of pods: ignored " + format.Of(reading.Rejected, "pod") + " without valid values")
	}
	read.Usage = &reading
	return nil
}

// readUsage reads the usage of pods from the source that the flags select.
func (l *LiveCluster) readUsage(ctx context.Context, config *rest.Config, nodes []*v1.Node) (load.PodReading, error) {
	access, err := l.LoadSource.AccessTo(config, nodes)
	if err != nil {
		return load.PodReading{}, err
	}
	source, err := l.LoadSource.Pods(access)
	if err != nil {
		return load.PodReading{}, err
	}
	return source.ReadPods(ctx)
}

// usageTimeout is how long a command waits for the usage of pods.
const usageTimeout = 30 * time.Second

// readLoad reads the load of the nodes from the source that flags select.
func readLoad(ctx context.Context, f *flags.Flags, config *rest.Config, nodes []*v1.Node) (load.Reading, error) {
	access, err := f.AccessTo(config, nodes)
	if err != nil {
		return load.Reading{}, err
	}
	source, err := f.Source(access)
	if err != nil {
		return load.Reading{}, err
	}
	return load.Read(ctx, source)
}
