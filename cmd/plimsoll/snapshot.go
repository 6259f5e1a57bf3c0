package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/plimsoll-k8s/plimsoll/internal/kube"
	"github.com/plimsoll-k8s/plimsoll/internal/manifest"
	"github.com/plimsoll-k8s/plimsoll/internal/snapshot"
	"github.com/plimsoll-k8s/plimsoll/internal/snapshot/collect"
	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/load/flags"
)

// live is a cluster that is asked, and the source of its load.
type live struct {
	source        flags.Flags
	config        string
	schedulerName string
}

// add adds the flags.
func (l *live) add(cmd *cobra.Command, configUsage string) {
	l.source.Add(cmd)
	cmd.Flags().StringVar(&l.config, "config", "", configUsage)
	cmd.Flags().StringVar(&l.schedulerName, "scheduler-name", "", "the profile of that configuration (default the only one, or the one that fits)")
	_ = cmd.MarkFlagFilename("config", "yaml", "yml", "json")
}

// timeToReadLoad is how long load is waited for.
const timeToReadLoad = 30 * time.Second

// read reads the cluster, and its load if that can be had.
func (l *live) read(cmd *cobra.Command, folders []string, warn func(string)) (*collect.Cluster, error) {
	if err := l.useConfig(cmd); err != nil {
		return nil, err
	}
	config, err := kube.Config(l.source.Kubeconfig())
	if err != nil {
		return nil, err
	}
	bar := newCounter(cmd.ErrOrStderr())
	read, err := collect.Read(cmd.Context(), config, collect.Options{Folders: folders, Warn: warn, Progress: bar.show})
	bar.end()
	if err != nil {
		if cmd.Context().Err() != nil {
			err = errors.New("interrupted")
		}
		return nil, &failure{err}
	}
	reading, err := l.readLoad(cmd.Context(), config, read.Nodes)
	if err != nil {
		warn(fmt.Sprintf("load: %v; what needs it is judged without", err))
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

// useConfig takes the source of load from the scheduler's configuration, unless
// flags say where it is.
func (l *live) useConfig(cmd *cobra.Command) error {
	if l.config == "" || cmd.Flags().Changed("provider") {
		return nil
	}
	chosen, err := sourceOf(l.config, l.schedulerName)
	if errors.Is(err, errNoSource) {
		return nil
	}
	l.source.Use(chosen)
	return err
}

// readLoad reads the load of nodes.
func (l *live) readLoad(ctx context.Context, config *rest.Config, nodes []*v1.Node) (load.Reading, error) {
	ctx, cancel := context.WithTimeout(ctx, timeToReadLoad)
	defer cancel()
	access, err := l.source.AccessTo(config, nodes)
	if err != nil {
		return load.Reading{}, err
	}
	source, err := l.source.Source(access)
	if err != nil {
		return load.Reading{}, err
	}
	return source.Read(ctx)
}

// snapshotOptions are the flags of plimsoll snapshot.
type snapshotOptions struct {
	live

	files  []string
	output string
	redact bool
	force  bool
}

func newSnapshotCommand() *cobra.Command {
	var o snapshotOptions
	cmd := &cobra.Command{
		Use:   "snapshot -o FILE",
		Short: "Take a snapshot of a cluster, to ask what-if about",
		Long: `Take a snapshot of a cluster: what a scheduler looks at, what slack is planned by
and what placements are decided by, with the load of the nodes. The cluster is only
read, by lists in pages; what may not be listed, or is not there, is left out with a
warning, but for pods and nodes.

Secrets and ConfigMaps are not read. Of other objects only those fields are kept that
are looked at: no environment, arguments, addresses, managed fields, nor
annotations of others. With --redact names are pseudonyms too: of nodes, pods,
namespaces and all other objects, of images, and of labels' values and their keys,
but for the keys that all clusters have. The same name has the same pseudonym
throughout the snapshot, and another in the next one, so that a scheduler decides
over it as over the cluster, and nobody can tell whose it is.

The load is read as plimsoll load top reads it, with the same flags: from
metrics-server unless they say otherwise. A snapshot without load is one, too.

With -f the cluster is that of manifests, so that what kubectl has printed can be
redacted.`,
		Example: `  plimsoll snapshot -o s.tar.gz
  plimsoll compare --profile default --profile limits --snapshot s.tar.gz --reschedule

  # To show to others, with the load that this scheduler reads.
  plimsoll snapshot -o s.tar.gz --redact --config scheduler.yaml

  # Of another cluster, with load from Prometheus.
  plimsoll snapshot -o s.tar.gz --kubeconfig other.yaml --provider Prometheus --address http://localhost:9090`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	o.add(cmd, "a KubeSchedulerConfiguration, whose LowRiskOverCommitment says where load is read from, unless --provider does")
	flags := cmd.Flags()
	flags.StringArrayVarP(&o.files, "filename", "f", nil, "take it of the nodes and pods in this file or folder with manifests, and ask no cluster; - for standard input; may be repeated")
	flags.StringVarP(&o.output, "output", "o", "", "the file to write, a gzipped tar archive")
	flags.BoolVar(&o.redact, "redact", false, "replace names by pseudonyms")
	flags.BoolVar(&o.force, "force", false, "replace the file if it is there")
	_ = cmd.MarkFlagFilename("output", "tar.gz", "tgz")
	for _, flag := range []string{"kubeconfig", "provider", "config"} {
		cmd.MarkFlagsMutuallyExclusive("filename", flag)
	}
	return cmd
}

// snapshotMode lets nobody else read a snapshot: it says much about a cluster.
const snapshotMode = 0o600

func (o *snapshotOptions) run(cmd *cobra.Command) error {
	if o.output == "" {
		return errors.New("--output: nothing given, want the file to write, such as s.tar.gz")
	}
	file := newFile{flag: "--output", path: o.output, force: o.force, mode: snapshotMode}
	if err := file.check(); err != nil {
		return err
	}
	taken, err := o.take(cmd)
	if err != nil {
		return err
	}
	if o.redact {
		key := make([]byte, 32)
		_, _ = rand.Read(key) // never fails
		if taken, err = taken.Redact(key); err != nil {
			return &failure{err}
		}
	}
	if cmd.Context().Err() != nil {
		return &failure{errors.New("interrupted")}
	}
	if err := file.write(taken.Write); err != nil {
		return &failure{err}
	}
	printTaken(cmd.OutOrStdout(), o.output, taken)
	return nil
}

// take takes the snapshot, of manifests or of a cluster that is asked.
func (o *snapshotOptions) take(cmd *cobra.Command) (*snapshot.Snapshot, error) {
	if len(o.files) == 0 {
		read, err := o.read(cmd, nil, warnings(cmd.ErrOrStderr()))
		if err != nil {
			return nil, err
		}
		return read.Snapshot, nil
	}
	taken, err := snapshot.FromDocuments(time.Now(), manifest.Files(o.files, cmd.InOrStdin()))
	if err != nil {
		return nil, err
	}
	_, err = taken.Cluster() // which says what is wrong with it
	return taken, err
}

// printTaken says what a snapshot has.
func printTaken(out io.Writer, path string, s *snapshot.Snapshot) {
	fmt.Fprintf(out, "%s: %d nodes, %d pods", path, len(s.List("nodes")), len(s.List("pods")))
	if s.Load == nil {
		fmt.Fprint(out, ", no load")
	} else {
		fmt.Fprintf(out, ", load of %d nodes", len(s.Load.Nodes))
	}
	if s.About.Redacted {
		fmt.Fprint(out, "; names are pseudonyms")
	}
	fmt.Fprintln(out)
}
