package record

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/plimsoll-k8s/plimsoll/internal/cli/base"
	"github.com/plimsoll-k8s/plimsoll/internal/cli/input"
	"github.com/plimsoll-k8s/plimsoll/internal/format"
	"github.com/plimsoll-k8s/plimsoll/internal/manifest"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
)

// snapshotOptions are the flags of plimsoll snapshot.
type snapshotOptions struct {
	live   input.LiveCluster
	files  []string
	strict bool
	output string
	redact bool
	usage  bool
	force  bool
}

// NewSnapshotCommand returns the command plimsoll snapshot.
func NewSnapshotCommand() *cobra.Command {
	var o snapshotOptions
	cmd := &cobra.Command{
		Use:   "snapshot -o FILE",
		Short: "Write a snapshot of a cluster, as input of other commands",
		Long: `Write a snapshot of a cluster: the objects that scheduling, slack and placements
depend on, and the load of the nodes. Except for pods and nodes, objects that cannot be
listed or do not exist are skipped with a warning.

Secrets and ConfigMaps are not read. Other objects are written without environment
variables, commands, arguments, addresses, messages, managed fields and unrelated
annotations. With --redact, all texts that Kubernetes does not define are replaced by
pseudonyms, which differ between snapshots.

The load of the nodes and the current usage of each pod are read as by plimsoll load top,
with the same flags: from metrics-server by default. If they cannot be read, a warning
says what to do, and the snapshot is written without them: simulations then generate
usage. With --usage=false, the usage of pods is not read.

With -f, the objects are read from manifests instead, for example to redact the output
of kubectl.`,
		Example: `  plimsoll snapshot -o s.ndjson.gz
  plimsoll compare --profile default --profile predicted --recording s.ndjson.gz

  # Replace names by pseudonyms, and read the load from the source of this scheduler.
  plimsoll snapshot -o s.ndjson.gz --redact --config scheduler.yaml

  # Use another cluster, and load from Prometheus.
  plimsoll snapshot -o s.ndjson.gz --kubeconfig other.yaml --provider Prometheus --address http://localhost:9090`,
		Args: base.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	o.live.AddFlags(cmd, "file with a KubeSchedulerConfiguration; the arguments of its plugins select the source of "+
		"load unless --provider is set", "profile in that configuration (default the first with a source)")
	flags := cmd.Flags()
	flags.StringArrayVarP(&o.files, "filename", "f", nil, "file or directory with manifests of nodes and pods to use instead "+
		"of a cluster, - for standard input; may be repeated")
	input.AddStrictFlag(cmd, &o.strict)
	flags.StringVarP(&o.output, "output", "o", "", "file to write")
	flags.BoolVar(&o.usage, "usage", true, "include what pods use, from metrics-server or Prometheus")
	flags.BoolVar(&o.redact, "redact", false, "replace names by pseudonyms")
	flags.BoolVar(&o.force, "force", false, "replace an existing file")
	_ = cmd.MarkFlagFilename("output", "ndjson.gz")
	for _, flag := range []string{"filename", "provider", "address", "load-source"} {
		cmd.MarkFlagsMutuallyExclusive("config", flag)
	}
	cmd.MarkFlagsMutuallyExclusive("filename", "usage")
	input.ExcludeLive(cmd, "filename")
	return cmd
}

// snapshotMode makes a snapshot readable by its owner only: it has details of the cluster.
const snapshotMode = 0o600

func (o *snapshotOptions) run(cmd *cobra.Command) error {
	if o.output == "" {
		return errors.New("--output: required: the file to write, such as s.ndjson.gz")
	}
	if err := cmp.Or(base.Requires(cmd, "scheduler-name", "config"), base.Requires(cmd, "strict", "filename")); err != nil {
		return err
	}
	file := base.NewFile{Flag: "--output", Path: o.output, Kind: base.Recording, Force: o.force, Mode: snapshotMode}
	if err := file.Check(); err != nil {
		return err
	}
	s, err := o.read(cmd)
	if err != nil {
		return err
	}
	if o.redact {
		key := make([]byte, 32)
		_, _ = rand.Read(key) // never fails
		if s, err = s.Redact(key); err != nil {
			return base.Failure(err)
		}
	}
	if cmd.Context().Err() != nil {
		return base.Failure(errors.New("interrupted"))
	}
	if err := file.Write(s.Write); err != nil {
		return base.Failure(err)
	}
	printSummary(cmd.OutOrStdout(), o.output, s)
	return nil
}

// read returns a snapshot of manifests or of a live cluster.
func (o *snapshotOptions) read(cmd *cobra.Command) (*recording.Recording, error) {
	if len(o.files) == 0 {
		read, err := o.live.Read(cmd, base.Warnings(cmd.ErrOrStderr()))
		if err == nil && o.usage && len(read.Nodes) > 0 { // a hub has none
			err = o.live.ReadUsage(cmd.Context(), read, base.Warnings(cmd.ErrOrStderr()))
		}
		if err != nil {
			return nil, err
		}
		return read.Recording, nil
	}
	var stdin []byte
	if slices.Contains(o.files, "-") {
		var err error
		if stdin, err = manifest.Buffer(cmd.InOrStdin()); err != nil {
			return nil, err
		}
	}
	s, ignored, err := recording.ReadSnapshot(time.Now(), manifest.Files(o.files, bytes.NewReader(stdin)))
	if err != nil {
		return nil, err
	}
	warnings, err := validate(s, manifest.Files(o.files, bytes.NewReader(stdin)))
	if err != nil {
		return nil, err
	}
	isOfReader := func(text string) bool { return strings.HasPrefix(text, "ignored: ") } // a snapshot has more kinds
	warnings = slices.DeleteFunc(warnings, isOfReader)
	if text := ignored.String(); text != "" {
		warnings = append(warnings, text)
	}
	given := input.Objects{Strict: o.strict}
	return s, given.Warn(warnings, base.Warnings(cmd.ErrOrStderr()))
}

// validate decodes the manifests of a cluster, or of a hub without nodes, and returns warnings, such as about fields that are unknown.
func validate(s *recording.Recording, source manifest.Source) ([]string, error) {
	if len(s.List("nodes")) == 0 && len(s.List("placements")) > 0 {
		hub, err := manifest.ReadHubFrom(source, true)
		if err != nil {
			return nil, err
		}
		return hub.Warnings, nil
	}
	objects, err := manifest.ReadFrom(source, true)
	if err != nil {
		return nil, err
	}
	return objects.Warnings, nil
}

// printSummary prints the numbers of objects in a snapshot.
func printSummary(out io.Writer, path string, s *recording.Recording) {
	fmt.Fprintf(out, "%s: %s, %s", base.Escape(path), format.Of(len(s.List("nodes")), "node"), format.Of(len(s.List("pods")), "pod"))
	if s.Load == nil {
		fmt.Fprint(out, ", no load")
	} else {
		fmt.Fprintf(out, ", load of %s", format.Of(len(s.Load.Nodes), "node"))
	}
	if s.Usage != nil {
		fmt.Fprintf(out, ", usage of %s", format.Of(len(s.Usage.Pods), "pod"))
	}
	if s.About.Redacted {
		fmt.Fprint(out, "; names are pseudonyms")
	}
	fmt.Fprintln(out)
}
