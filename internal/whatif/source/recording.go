package source

import (
	"fmt"
	"strings"
	"time"

	"github.com/plimsoll-k8s/plimsoll/internal/manifest"
	"github.com/plimsoll-k8s/plimsoll/internal/spec"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/input"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
)

// openRecording reads FILE and the options after it.
func openRecording(s Spec) (*Source, error) {
	read, span, err := readRecording(s.Recording)
	if err != nil {
		return nil, err
	}
	in, name, err := span.prepare(read)
	if err != nil {
		return nil, err
	}
	var divided *parts
	if s.Parts > 1 {
		divided = &parts{read, span.from, in.Seconds() / int64(s.Parts) / minPart * minPart, uint64(s.Parts)}
		if divided.seconds == 0 {
			return nil, fmt.Errorf("--seeds: invalid value %d: must be at most %d, as each seed has a part of at least 1m of the recording",
				s.Parts, in.Seconds()/minPart)
		}
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
		Name:       name,
		Warnings:   in.Warnings(),
		HasLimits:  true,
		recording:  in,
		parts:      divided,
		measured:   s.Measured,
		reschedule: s.Reschedule,
		pack:       s.Pack,
	}, nil
}

// OpenRecording reads the recording, or the part of it, that the value of --recording specifies: FILE with, after
// commas, from=DURATION and to=DURATION since its start. It also returns its name for people.
func OpenRecording(text string) (*input.Recording, string, error) {
	read, span, err := readRecording(text)
	if err != nil {
		return nil, "", err
	}
	return span.prepare(read)
}

// span is a part of a recording, as specified by text. to is 0 for the end.
type span struct {
	text, file string
	from, to   int64
}

// readRecording reads a file, and the part of it that is specified.
func readRecording(text string) (*recording.Recording, span, error) {
	file, options, _ := strings.Cut(text, ",")
	s := span{text: text, file: file}
	var err error
	if s.from, s.to, err = recordingPart(options); err != nil {
		return nil, s, fmt.Errorf("--recording: %w", err)
	}
	read, err := recording.Open(file)
	if err != nil {
		return nil, s, fmt.Errorf("--recording: %w", err)
	}
	if end := read.About.Seconds(); max(s.from, s.to) > end {
		return nil, s, fmt.Errorf("--recording: %s: invalid value %q: must be at most %s, the length of the recording",
			file, options, time.Duration(end)*time.Second)
	}
	return read, s, nil
}

// prepare returns the part as input, and its name for people.
func (s span) prepare(read *recording.Recording) (*input.Recording, string, error) {
	in, err := input.NewRecording(read, s.from, s.to)
	if err != nil {
		return nil, "", fmt.Errorf("--recording: %s: %w", s.file, err)
	}
	return in, "recording: " + s.text, nil
}

// minPart is the shortest part of a recording in seconds.
const minPart = 60

// parts divides a recording.
type parts struct {
	recording *recording.Recording
	// from is the second at which the first part starts, seconds the length of each part, and number how many there are.
	from, seconds int64
	number        uint64
}

// of returns the part of a seed.
func (p *parts) of(seed uint64) (*input.Recording, error) {
	from := p.from + int64(seed%p.number)*p.seconds
	return input.NewRecording(p.recording, from, from+p.seconds)
}

// inputOfRecording returns the nodes and pods of a recording, or of its part of a seed.
func (s *Source) inputOfRecording(seed uint64) input.Cluster {
	options := input.RecordingOptions{Measured: s.measured, Reschedule: s.reschedule, Pack: s.pack}
	if s.parts == nil {
		return s.recording.Input(options)
	}
	part, err := s.parts.of(seed)
	if err != nil { // openRecording has checked the length of parts and the objects
		part = s.recording
	}
	in := part.Input(options)
	in.Assumptions = append(in.Assumptions, fmt.Sprintf(
		"the recording is divided into %d parts of %s, one for each seed; numbers here are those of the first seed",
		s.parts.number, time.Duration(s.parts.seconds)*time.Second))
	return in
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
