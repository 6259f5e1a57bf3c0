package source

import (
	"fmt"
	"strings"
	"time"

	"github.com/plimsoll-k8s/plimsoll/internal/algo/spec"
	"github.com/plimsoll-k8s/plimsoll/internal/manifest"
	"github.com/plimsoll-k8s/plimsoll/internal/recording"
	"github.com/plimsoll-k8s/plimsoll/internal/simulate/input"
)

// openRecording reads FILE and the options after it.
func openRecording(s Spec) (*Source, error) {
	in, name, err := OpenRecording(s.Recording)
	if err != nil {
		return nil, err
	}
	if s.Strict {
		if err := manifest.RefuseWarnings(in.Warnings()); err != nil {
			return nil, err
		}
	}
	if s.Pack < 0 {
		s.Pack = reschedulePack
	}
	return &Source{
		Name: name, Warnings: in.Warnings(), HasLimits: true, recording: in, measured: s.Measured, reschedule: s.Reschedule, pack: s.Pack,
	}, nil
}

// OpenRecording reads the recording, or the part of it, that the value of --recording specifies: FILE with, after
// commas, from=DURATION and to=DURATION since its start. It also returns its name for people.
func OpenRecording(text string) (*input.Recording, string, error) {
	file, options, _ := strings.Cut(text, ",")
	from, to, err := recordingPart(options)
	if err != nil {
		return nil, "", fmt.Errorf("--recording: %w", err)
	}
	read, err := recording.Open(file)
	if err != nil {
		return nil, "", fmt.Errorf("--recording: %w", err)
	}
	if end := read.About.Seconds(); max(from, to) > end {
		return nil, "", fmt.Errorf("--recording: %s: invalid value %q: must be at most %s, the length of the recording",
			file, options, time.Duration(end)*time.Second)
	}
	in, err := input.NewRecording(read, from, to)
	if err != nil {
		return nil, "", fmt.Errorf("--recording: %s: %w", file, err)
	}
	return in, "recording: " + text, nil
}

// recordingPart parses from=DURATION,to=DURATION. to is 0 for the end.
func recordingPart(text string) (from, to int64, err error) {
	fields, err := spec.Parse(text)
	if err != nil {
		return 0, 0, err
	}
	duration := func(key string) int64 {
		value := fields.Text(key, "0s")
		d, err := time.ParseDuration(value)
		if err != nil || d < 0 || d%time.Second != 0 {
			fields.Fail(key, value, "a duration of whole seconds such as 30m or 24h")
		}
		return int64(d / time.Second)
	}
	from, to = duration("from"), duration("to")
	if fields.Has("to") && to <= from {
		fields.Fail("to", fields.Text("to", ""), "more than from")
	}
	return from, to, fields.Err()
}
