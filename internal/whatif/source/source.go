// Package source reads the input of a what-if from manifests, snapshots and traces, or
// generates it.
package source

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/plimsoll-k8s/plimsoll/internal/manifest"
	"github.com/plimsoll-k8s/plimsoll/internal/spec"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/input"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/snapshot"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/trace"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/trace/generate"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/trace/openb"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/usage"
	"github.com/plimsoll-k8s/plimsoll/load"
)

// Spec specifies the input. Exactly one of Files, Snapshot, Recording, Trace and Generate is set.
type Spec struct {
	// Files are files and directories with manifests; "-" is the content of Stdin.
	Files []string `json:"files,omitempty"`
	Stdin []byte   `json:"stdin,omitempty"`
	// Strict refuses manifests and snapshots with content that is ignored.
	Strict bool `json:"strict,omitempty"`
	// Snapshot is a file written by plimsoll snapshot.
	Snapshot string `json:"snapshot,omitempty"`
	// Recording is a file written by plimsoll record with, after commas, from=DURATION and to=DURATION since its start.
	Recording string `json:"recording,omitempty"`
	// Parts divides a recording into as many consecutive parts of equal length: the input of a seed is the part with the
	// number of the seed, modulo Parts. The recording is not divided if it is less than 2.
	Parts int `json:"parts,omitempty"`
	// Measured places the pods of a recording as they were recorded, without the scheduler.
	Measured bool `json:"measured,omitempty"`
	// Reschedule makes all pods of manifests, snapshots and recordings arrive again, including
	// those with a node at the start.
	Reschedule bool `json:"reschedule,omitempty"`
	// Trace is openb:NODES.csv,PODS.csv with, after commas, fill=F and over=SECONDS.
	Trace string `json:"trace,omitempty"`
	// Generate is a specification in the syntax of package generate.
	Generate string `json:"generate,omitempty"`
	// Pack is the number of pods that arrive per second, of a trace or with Reschedule. 0
	// keeps the arrival times of a trace, and makes all pods arrive at the start with
	// Reschedule. -1 is the default of the source.
	Pack int `json:"pack"`
}

// openbPack is the default of Pack for openb. With its own arrival times the trace never
// fills its cluster.
const openbPack = 1

// reschedulePack is the default of Pack with Reschedule: so low that the first pods have
// been measured before the last ones arrive.
const reschedulePack = 1

// Source is an input that was read.
type Source struct {
	// Name for people.
	Name string
	// Warnings about probable mistakes in the input.
	Warnings []string
	// HasLimits is set if the input has the limits of pods.
	HasLimits bool

	objects *manifest.Objects
	// usage of pods in a snapshot, nil if unknown.
	usage *load.PodReading
	// reschedule and pack are those of the Spec.
	reschedule bool
	pack       int
	cluster    *trace.Cluster
	churn      churn
	generated  generate.Spec
	recording  *input.Recording
	measured   bool
	parts      *parts // nil if a recording is not divided
}

// churn are the options of trace.Cluster.Churn. A fill of 0 is no churn.
type churn struct {
	fill    float64
	seconds int64
}

// Open reads an input. Errors name the flag or the file, and the line.
func Open(s Spec) (*Source, error) {
	switch {
	case len(s.Files) > 0:
		objects, err := manifest.Read(s.Files, bytes.NewReader(s.Stdin))
		if err != nil {
			return nil, err
		}
		return fromManifests("manifests: "+strings.Join(s.Files, ", "), objects, s)
	case s.Snapshot != "":
		read, err := snapshot.Open(s.Snapshot)
		if err != nil {
			return nil, fmt.Errorf("--snapshot: %w", err)
		}
		objects, err := read.Cluster()
		if err != nil {
			return nil, fmt.Errorf("--snapshot: %s: %w", s.Snapshot, err)
		}
		out, err := fromManifests(fmt.Sprintf("snapshot: %s, of %s", s.Snapshot, read.About.Time.Format(time.RFC3339)), objects, s)
		if err == nil {
			out.usage = read.Usage
		}
		return out, err
	case s.Recording != "":
		return openRecording(s)
	case s.Generate != "":
		generated, err := generate.Parse(s.Generate)
		if err != nil {
			return nil, fmt.Errorf("--generate: %w", err)
		}
		return &Source{Name: "generated: " + s.Generate, generated: generated}, nil
	}
	return openTrace(s)
}

// openTrace reads a trace.
func openTrace(s Spec) (*Source, error) {
	kind, rest := spec.Cut(s.Trace)
	if kind != "openb" {
		return nil, fmt.Errorf("--trace: invalid value %q: must be openb:NODES.csv,PODS.csv", s.Trace)
	}
	cluster, steady, err := readOpenb(rest)
	switch {
	case err != nil:
		return nil, err
	case steady.fill > 0 && s.Pack > 0:
		return nil, fmt.Errorf("--pack: invalid value %d: must be 0 or absent with fill in --trace", s.Pack)
	case steady.fill > 0:
		s.Pack = 0
	case s.Pack < 0:
		s.Pack = openbPack
	}
	if steady.fill > 0 { // The number of pods does not depend on the seed.
		if _, err := cluster.Churn(steady.fill, steady.seconds, 0); err != nil {
			return nil, fmt.Errorf("--trace: fill: %w", err)
		}
	}
	if s.Pack > 0 {
		cluster.Pack(s.Pack)
	}
	return &Source{Name: "trace: " + s.Trace, cluster: cluster, churn: steady}, nil
}

// fromManifests returns a source of manifests.
func fromManifests(name string, objects *manifest.Objects, s Spec) (*Source, error) {
	if s.Strict {
		if err := manifest.RefuseWarnings(objects.Warnings); err != nil {
			return nil, err
		}
	}
	if s.Pack < 0 {
		s.Pack = reschedulePack
	}
	return &Source{
		Name: name, Warnings: objects.Warnings, HasLimits: true, objects: objects, reschedule: s.Reschedule, pack: s.Pack,
	}, nil
}

// Input returns the nodes and pods to simulate. Limits are those of pods without limits
// in a trace. Generated data depends on the seed.
func (s *Source) Input(seed uint64, limits usage.Limits) input.Cluster {
	switch {
	case s.recording != nil:
		return s.inputOfRecording(seed)
	case s.objects != nil:
		return s.inputOfObjects()
	case s.cluster != nil:
		cluster := s.cluster
		if s.churn.fill > 0 {
			cluster, _ = cluster.Churn(s.churn.fill, s.churn.seconds, seed) // Open has checked for errors
		}
		return input.FromTrace(cluster, limits, seed)
	default:
		return input.FromTrace(s.generated.Cluster(seed), limits, seed)
	}
}

// inputOfObjects returns the nodes and pods of manifests or of a snapshot.
func (s *Source) inputOfObjects() input.Cluster {
	var in input.Cluster
	if s.reschedule {
		in = input.Rescheduled(s.objects, s.pack)
	} else {
		in = input.FromManifests(s.objects)
	}
	if s.usage != nil {
		in.SetUsage(s.usage)
	}
	return in
}

// readOpenb reads NODES.csv,PODS.csv and the options after them.
func readOpenb(rest string) (*trace.Cluster, churn, error) {
	nodeFile, rest, _ := strings.Cut(rest, ",")
	podFile, options, _ := strings.Cut(rest, ",")
	if nodeFile == "" || podFile == "" {
		return nil, churn{}, fmt.Errorf("--trace: invalid value %q: must be openb:NODES.csv,PODS.csv", "openb:"+nodeFile)
	}
	steady, err := openbOptions(options)
	if err != nil {
		return nil, churn{}, fmt.Errorf("--trace: %w", err)
	}
	cluster, err := readOpenbFiles(nodeFile, podFile)
	return cluster, steady, err
}

// openbOptions parses the options of openb.
func openbOptions(text string) (churn, error) {
	const day, year = 24 * 3600, 365 * 24 * 3600
	fields, err := spec.Parse(text)
	if err != nil {
		return churn{}, err
	}
	c := churn{fill: fields.Float("fill", 0, 0.01, 100), seconds: int64(fields.Int("over", day, 1, year))}
	if c.fill == 0 && fields.Has("over") {
		fields.Fail("over", fmt.Sprint(c.seconds), "absent without fill")
	}
	return c, fields.Err()
}

func readOpenbFiles(nodeFile, podFile string) (*trace.Cluster, error) {
	nodes, err := os.Open(nodeFile)
	if err != nil {
		return nil, fmt.Errorf("--trace: %w", err)
	}
	defer nodes.Close()
	pods, err := os.Open(podFile)
	if err != nil {
		return nil, fmt.Errorf("--trace: %w", err)
	}
	defer pods.Close()
	return openb.Read(nodeFile, nodes, podFile, pods)
}
