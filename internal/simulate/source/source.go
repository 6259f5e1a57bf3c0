// Package source reads what a what-if runs over: manifests, snapshots, traces, or a
// text that says what to make up.
package source

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/plimsoll-k8s/plimsoll/internal/algo/spec"
	"github.com/plimsoll-k8s/plimsoll/internal/algo/usage"
	"github.com/plimsoll-k8s/plimsoll/internal/manifest"
	"github.com/plimsoll-k8s/plimsoll/internal/simulate/input"
	"github.com/plimsoll-k8s/plimsoll/internal/snapshot"
	"github.com/plimsoll-k8s/plimsoll/internal/trace"
	"github.com/plimsoll-k8s/plimsoll/internal/trace/alibaba2018"
	"github.com/plimsoll-k8s/plimsoll/internal/trace/generate"
	"github.com/plimsoll-k8s/plimsoll/internal/trace/openb"
)

// Spec names what to read. One of Files, Snapshot, Trace and Generate is there.
type Spec struct {
	// Files and folders with manifests; "-" stands for what was given as Stdin.
	Files []string `json:"files,omitempty"`
	Stdin []byte   `json:"stdin,omitempty"`
	// Snapshot is a file that plimsoll snapshot has written.
	Snapshot string `json:"snapshot,omitempty"`
	// Reschedule: the pods of manifests and snapshots come anew, also those that
	// have a node.
	Reschedule bool `json:"reschedule,omitempty"`
	// Trace is openb:NODES.csv,PODS.csv or alibaba2018:DIR with, after commas,
	// from=SECOND, to=SECOND and memory-gib=N of the largest machine.
	Trace string `json:"trace,omitempty"`
	// Generate is a text as package generate reads it.
	Generate string `json:"generate,omitempty"`
	// Pack is how many pods of a trace, or of those that come anew, arrive in a second,
	// one after the other; 0 for when the trace has them arrive, and for all at once
	// where they come anew; -1 for what is usual.
	Pack int `json:"pack"`
}

// openbPack is how many pods of openb arrive in a second where nobody says. At its
// own times the trace never fills its cluster.
const openbPack = 1

// reschedulePack is how many pods come anew in a second where nobody says: so few
// that the first of them have been measured while others still come.
const reschedulePack = 1

// Source is what was read.
type Source struct {
	// Name says what it is, for people.
	Name string
	// Warnings are about what was read but looks mistaken.
	Warnings []string
	// HasLimits: what was read says which limits pods have.
	HasLimits bool

	objects *manifest.Objects
	// reschedule: all of the objects' pods come anew, pack of them a second.
	reschedule bool
	pack       int
	cluster    *trace.Cluster
	generated  generate.Spec
}

// Open reads. Errors name the flag or the file, and the line.
func Open(s Spec) (*Source, error) {
	switch {
	case len(s.Files) > 0:
		objects, err := manifest.Read(s.Files, bytes.NewReader(s.Stdin))
		if err != nil {
			return nil, err
		}
		return fromObjects("manifests: "+strings.Join(s.Files, ", "), objects, s), nil
	case s.Snapshot != "":
		read, err := snapshot.Open(s.Snapshot)
		if err != nil {
			return nil, fmt.Errorf("--snapshot: %w", err)
		}
		objects, err := read.Cluster()
		if err != nil {
			return nil, fmt.Errorf("--snapshot: %s: %w", s.Snapshot, err)
		}
		return fromObjects(fmt.Sprintf("snapshot: %s, of %s", s.Snapshot, read.About.Time.Format(time.RFC3339)), objects, s), nil
	case s.Generate != "":
		generated, err := generate.Parse(s.Generate)
		if err != nil {
			return nil, fmt.Errorf("--generate: %w", err)
		}
		return &Source{Name: "generated: " + s.Generate, generated: generated}, nil
	}
	kind, rest := spec.Cut(s.Trace)
	var cluster *trace.Cluster
	var err error
	switch kind {
	case "openb":
		cluster, err = readOpenb(rest)
		if s.Pack < 0 {
			s.Pack = openbPack
		}
	case "alibaba2018":
		cluster, err = readAlibaba(rest)
	default:
		return nil, fmt.Errorf("--trace: found %q, want openb:NODES.csv,PODS.csv or alibaba2018:DIR", s.Trace)
	}
	if err != nil {
		return nil, err
	}
	if s.Pack > 0 {
		cluster.Pack(s.Pack)
	}
	return &Source{Name: "trace: " + s.Trace, cluster: cluster}, nil
}

// fromObjects returns a source of manifests.
func fromObjects(name string, objects *manifest.Objects, s Spec) *Source {
	if s.Pack < 0 {
		s.Pack = reschedulePack
	}
	return &Source{Name: name, Warnings: objects.Warnings, HasLimits: true, objects: objects, reschedule: s.Reschedule, pack: s.Pack}
}

// Input returns what to run. Limits are for pods of which nobody knows any, and
// what is generated depends on the seed.
func (s *Source) Input(seed uint64, limits usage.Limits) input.Cluster {
	switch {
	case s.objects != nil && s.reschedule:
		return input.Rescheduled(s.objects, s.pack)
	case s.objects != nil:
		return input.FromManifests(s.objects)
	case s.cluster != nil:
		in := input.FromTrace(s.cluster, limits, seed)
		for _, reason := range slices.Sorted(maps.Keys(s.cluster.Skipped)) {
			in.Assumptions = append(in.Assumptions, fmt.Sprintf("left out: %d x %s", s.cluster.Skipped[reason], reason))
		}
		return in
	default:
		return input.FromTrace(s.generated.Cluster(seed), limits, seed)
	}
}

func readOpenb(rest string) (*trace.Cluster, error) {
	nodeFile, podFile, ok := strings.Cut(rest, ",")
	if !ok || nodeFile == "" || podFile == "" {
		return nil, fmt.Errorf("--trace: found %q, want openb:NODES.csv,PODS.csv", "openb:"+rest)
	}
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

// readAlibaba reads the files of a folder by the names under which they were
// published. Of those after the machines, the ones that are there.
func readAlibaba(rest string) (*trace.Cluster, error) {
	dir, options, err := alibabaOptions(rest)
	if err != nil {
		return nil, err
	}
	var opened []io.Closer
	defer func() {
		for _, file := range opened {
			_ = file.Close() // was only read
		}
	}()
	open := func(name string, needed bool) (*alibaba2018.File, error) {
		path := filepath.Join(dir, name)
		file, err := os.Open(path)
		switch {
		case errors.Is(err, os.ErrNotExist) && !needed:
			return nil, nil
		case err != nil:
			return nil, fmt.Errorf("--trace: %w", err)
		}
		opened = append(opened, file)
		return &alibaba2018.File{Name: path, Source: file}, nil
	}
	machines, err := open("machine_meta.csv", true)
	if err != nil {
		return nil, err
	}
	files := alibaba2018.Files{Machines: *machines}
	for _, optional := range []struct {
		name string
		file **alibaba2018.File
	}{{"container_meta.csv", &files.Containers}, {"batch_task.csv", &files.Tasks}, {"batch_instance.csv", &files.Instances}} {
		if *optional.file, err = open(optional.name, false); err != nil {
			return nil, err
		}
	}
	if files.Containers == nil && files.Tasks == nil {
		return nil, fmt.Errorf("--trace: %s: neither container_meta.csv nor batch_task.csv is there", dir)
	}
	return alibaba2018.Read(files, options)
}

// alibabaOptions reads DIR and what comes after it.
func alibabaOptions(rest string) (string, alibaba2018.Options, error) {
	dir, text, _ := strings.Cut(rest, ",")
	var options alibaba2018.Options
	if dir == "" {
		return "", options, errors.New("--trace: found no folder, want alibaba2018:DIR")
	}
	fields, err := spec.Parse(text)
	if err != nil {
		return "", options, fmt.Errorf("--trace: %w", err)
	}
	options.From = int64(fields.Int("from", 0, 0, trace.MaxSecond))
	options.To = int64(fields.Int("to", 0, 0, trace.MaxSecond))
	options.MachineMemory = int64(fields.Int("memory-gib", 0, 0, trace.MaxMemory>>30)) << 30
	if options.To != 0 && options.To <= options.From {
		fields.Fail("to", fmt.Sprint(options.To), "more than from")
	}
	if err := fields.Err(); err != nil {
		return "", options, fmt.Errorf("--trace: %w", err)
	}
	return dir, options, nil
}
