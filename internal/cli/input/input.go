// Package input reads the input of commands: manifests, recordings or a live cluster, the load of
// its nodes, and configuration files.
package input

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/plimsoll-k8s/plimsoll/api/metricprovider"
	"github.com/plimsoll-k8s/plimsoll/internal/cli/base"
	"github.com/plimsoll-k8s/plimsoll/internal/format"
	"github.com/plimsoll-k8s/plimsoll/internal/manifest"
	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/emulation"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/engine"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/load/provider"
)

// Objects are the flags --filename and --recording. One of them selects the objects.
type Objects struct {
	Files []string
	// Recording is read at the time At, or at its end if At is empty.
	Recording, At string
	// Strict refuses input that would be ignored with a warning.
	Strict bool
}

// AddFlags adds the flags. of completes the description of the manifests, such as " of nodes".
func (o *Objects) AddFlags(cmd *cobra.Command, of string) {
	cmd.Flags().StringArrayVarP(&o.Files, "filename", "f", nil,
		"file or directory with manifests"+of+", - for standard input; may be repeated")
	AddRecordingFlag(cmd, &o.Recording)
	AddStrictFlag(cmd, &o.Strict)
}

// AddStrictFlag adds the flag --strict.
func AddStrictFlag(cmd *cobra.Command, strict *bool) {
	cmd.Flags().BoolVar(strict, "strict", false,
		"refuse input that is otherwise ignored with a warning: objects of other kinds, unknown fields, pods of missing nodes")
}

// AddArguments makes arguments of a command values of --filename.
func AddArguments(cmd *cobra.Command) {
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		for _, file := range args {
			if err := cmd.Flags().Set("filename", file); err != nil {
				return err
			}
		}
		return nil
	}
}

// ExcludeLive makes flags of files and flags of a live cluster exclude each other. It must be called after these flags are added.
func ExcludeLive(cmd *cobra.Command, files ...string) {
	for _, live := range []string{"kubeconfig", "context", "timeout", "provider", "address", "load-source"} {
		for _, file := range files {
			if cmd.Flags().Lookup(live) != nil {
				cmd.MarkFlagsMutuallyExclusive(file, live)
			}
		}
	}
}

// Warn passes warnings about ignored input to warn, or returns them as an error if --strict is set.
func (o *Objects) Warn(warnings []string, warn func(string)) error {
	if o.Strict {
		return manifest.RefuseWarnings(warnings)
	}
	for _, warning := range warnings {
		warn(warning)
	}
	return nil
}

// AddRecordingFlag adds the flag --recording.
func AddRecordingFlag(cmd *cobra.Command, value *string) {
	cmd.Flags().StringVar(value, "recording", "",
		"file written by plimsoll snapshot or plimsoll record; FILE,from=24h,to=48h is a part of it")
	_ = cmd.MarkFlagFilename("recording", "ndjson.gz")
}

// AddAtFlag adds the flag --at.
func (o *Objects) AddAtFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.At, "at", "", "with --recording: time at which the cluster is read, such as 2026-11-21T12:00:00Z "+
		"(default the end of the recording)")
}

// Given reports whether one of the flags is set.
func (o *Objects) Given() bool { return len(o.Files) > 0 || o.Recording != "" }

// Validate returns an error unless exactly one of the flags is set. kinds are the objects that the
// command needs.
func (o *Objects) Validate(kinds string) error {
	if !o.Given() {
		return fmt.Errorf("--filename: required: files or directories with manifests of %s, or a --recording", kinds)
	}
	return o.ValidateExclusive()
}

// ValidateExclusive returns an error if several of the flags are set.
func (o *Objects) ValidateExclusive() error {
	switch {
	case len(o.Files) > 0 && o.Recording != "":
		return errors.New("--filename, --recording: only one of them may be set")
	case o.At != "" && o.Recording == "":
		return errors.New("--at: requires --recording")
	case o.Strict && !o.Given():
		return errors.New("--strict: requires --filename or --recording")
	}
	return nil
}

// Instant is the flags --load and --now.
type Instant struct{ Load, Now string }

// AddFlags adds the flags.
func (i *Instant) AddFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&i.Load, "load", "", "file with the load of the nodes, in the format of a load watcher (default the load "+
		"in the recording)")
	flags.StringVar(&i.Now, "now", "", "time from which the age of the load is computed, such as 2026-11-21T12:00:00Z "+
		"(default the time of the recording, or the current time)")
	_ = cmd.MarkFlagFilename("load", "json")
}

// ParseTime returns the time in a flag, or the argument otherwise if the flag is empty.
func ParseTime(flag, text string, otherwise time.Time) (time.Time, error) {
	if text == "" {
		return otherwise, nil
	}
	parsed, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return parsed, base.InvalidValue(flag, text, "a time such as 2026-11-21T12:00:00Z")
	}
	return parsed, nil
}

// Read reads the objects and the load, and makes this process emulate the version of the cluster that had the objects. Configurations of
// schedulers must be read afterwards: their defaults depend on the version. Manifests may come from standard input, in.
func (o *Objects) Read(ctx context.Context, in io.Reader, at Instant, warn func(string)) (*engine.State, error) {
	s := &engine.State{}
	now, err := ParseTime("now", at.Now, time.Now())
	if err != nil {
		return nil, err
	}
	if o.Recording != "" {
		err = o.readRecording(s, at)
	} else {
		s.Now = now
		s.Objects, err = manifest.Read(o.Files, in)
	}
	if err != nil {
		return nil, err
	}
	if err := emulation.Use(s.Objects.Kubernetes); err != nil {
		return nil, err
	}
	if err := o.Warn(s.Objects.Warnings, warn); err != nil {
		return nil, err
	}
	loadFile := o.Recording
	if at.Load != "" {
		loadFile = at.Load
		reading, err := provider.NewFile(at.Load).Read(ctx)
		if err != nil && strings.Contains(at.Load, "://") {
			return nil, base.InvalidValue("load", at.Load, "a file with the message of a load watcher, as curl writes it")
		}
		if err != nil {
			return nil, fmt.Errorf("--load: %w", err)
		}
		s.Load = &reading
		warnNodes(at.Load, s, warn)
	}
	return s, validateLoad(s, loadFile, warn)
}

// readRecording reads a recording at a time into a state.
func (o *Objects) readRecording(s *engine.State, at Instant) error {
	instant, err := ParseTime("at", o.At, time.Time{})
	if err != nil {
		return err
	}
	read, err := recording.OpenAt(o.Recording, instant)
	if err != nil {
		return err
	}
	s.Objects, s.Load, s.Usage = read.Objects, read.Load, read.Usage
	s.Now, err = ParseTime("now", at.Now, read.Time)
	return err
}

// warnNodes warns about nodes that only one of the load and the input has.
func warnNodes(path string, s *engine.State, warn func(string)) {
	unknown, names, missing := maps.Clone(s.Load.Nodes), []string{}, []string{}
	for _, node := range s.Objects.Nodes {
		if _, ok := unknown[node.Name]; !ok {
			missing = append(missing, node.Name)
		}
		delete(unknown, node.Name)
		names = append(names, node.Name)
	}
	if len(missing) > 0 {
		warn(
			fmt.Sprintf(
				"%s: has no load of %s: %s",
				path,
				format.Part(len(missing), len(names), "node"),
				format.Abbreviate(missing, 3, ", "),
			),
		)
	}
	if list := slices.Sorted(maps.Keys(unknown)); len(list) > 0 {
		hint := format.Suggestion(list[0], names)
		warn(fmt.Sprintf("%s: no node of the input has the name %s%s", path, format.Abbreviate(list, 3, ", "), hint))
	}
}

// validateLoad warns about invalid and old load, and returns an error for load from the future.
func validateLoad(s *engine.State, path string, warn func(string)) error {
	if s.Load == nil {
		return nil
	}
	if s.Load.Rejected > 0 {
		warn(
			fmt.Sprintf(
				"%s: ignored %s: must have type CPU or Memory, operator AVG, STD or Latest, each once, and a value of 0 to 150 percent of the node",
				path,
				format.Of(s.Load.Rejected, "metric"),
			),
		)
	}
	return CheckLoad(s.Load, s.Now, path, warn)
}

// CheckLoad warns about load that seems to be in fractions, and about load that is too old at a time. It returns an error for load from
// the future.
func CheckLoad(reading *load.Reading, now time.Time, path string, warn func(string)) error {
	highest := 0.0
	for _, node := range reading.Nodes {
		highest = max(highest, node.CPU.Mean, node.Memory.Mean)
	}
	if highest > 0 && highest <= 0.01 {
		warn(fmt.Sprintf("%s: no load is above 1 %%: values must be percent, such as 50 for half of a node", path))
	}
	age := now.Sub(reading.Time)
	if age < -load.MaxAhead {
		return fmt.Errorf(
			"%s: timestamp: the load is from %s, %s after --now",
			path,
			reading.Time.UTC().Format(time.RFC3339),
			format.Age(-age),
		)
	}
	if age > metricprovider.DefaultMaxAge {
		warn(fmt.Sprintf("%s: the load is %s old; nodes are scored without it unless maxLoadAge allows it", path, format.Age(age)))
	}
	return nil
}

// Utilization is the utilization of a resource of a node, in fractions of its capacity.
type Utilization struct {
	Mean   float64 `json:"mean"`
	StdDev float64 `json:"stdDev"`
}

// UtilizationOf returns the utilization of a node, nil if it is unknown.
func UtilizationOf(node load.Node) (cpu, memory *Utilization) {
	if node.HasCPU {
		cpu = &Utilization{node.CPU.Mean, node.CPU.StdDev}
	}
	if node.HasMemory {
		memory = &Utilization{node.Memory.Mean, node.Memory.StdDev}
	}
	return cpu, memory
}
