package recording

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-k8s/plimsoll/internal/format"
	"github.com/plimsoll-k8s/plimsoll/internal/manifest"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// Source specifies an input of runs that is read. Either Files or Recording is set.
type Source struct {
	// Files are files and directories with manifests; "-" is the content of Stdin.
	Files []string `json:"files,omitempty"`
	Stdin []byte   `json:"stdin,omitempty"`
	// Strict refuses manifests and recordings with content that is ignored.
	Strict bool `json:"strict,omitempty"`
	// Recording is a file written by plimsoll record or plimsoll snapshot with, after commas, from=DURATION and to=DURATION since its
	// start.
	Recording string `json:"recording,omitempty"`
	// Measured places the pods of a recording as they were recorded, without the scheduler.
	Measured bool `json:"measured,omitempty"`
	// Reschedule makes all pods of manifests and recordings arrive again, also if they
	// have a node at the start.
	Reschedule bool `json:"reschedule,omitempty"`
	// Placed has the nodes of pods that run at the start, by namespace and name, in place of the recorded nodes: where an earlier run has
	// left them. It does not apply to Measured.
	Placed map[string]string `json:"-"`
	// NoSpare leaves out the pods that only reserve capacity.
	NoSpare bool `json:"noSpare,omitempty"`
	// Pack is the number of pods that arrive per second with Reschedule. 0 is one, or fewer if the pods of manifests or of a snapshot
	// would arrive in less than arrivalSeconds: the first pods have been measured before the last pods arrive.
	Pack int `json:"pack,omitempty"`
	// Requests replace the requests of the pods of workloads.
	Requests []WorkloadRequests `json:"requests,omitempty"`
	// Tail is how many seconds the run continues after the last arrival, unless the input is a recording over a time.
	Tail int64 `json:"tail,omitempty"`
}

// arrival returns the second at which the pod with a number arrives with Reschedule.
func (s Source) arrival(number int) int64 { return int64(number / max(s.Pack, 1)) }

// rate describes arrival.
func (s Source) rate() string { return fmt.Sprintf("%d per second", max(s.Pack, 1)) }

// Input reads the input. Pods whose usage is not known have none. Errors name the flag or the file, and the line.
func (s Source) Input() (Input, error) {
	in, err := s.input()
	if err == nil && s.Strict {
		err = manifest.RefuseWarnings(in.Warnings)
	}
	if err != nil {
		return Input{}, err
	}
	if all := len(in.Pods); s.NoSpare {
		in.Pods = slices.DeleteFunc(in.Pods, func(p InputPod) bool { return resources.IsSpare(p.Object) })
		spare := all - len(in.Pods)
		in.assumeIf(spare > 0, "%s left out: pods with a negative priority reserve capacity, as slack does",
			format.PartAre(spare, all, "pod"))
	}
	in.noteMissingUsage()
	if in.End == 0 {
		in.SetEnd(s.Tail)
	}
	in.SetRequests(s.Requests)
	swapping := 0
	for i := range in.Nodes {
		if resources.HasSwap(in.Nodes[i].Object) {
			swapping++
		}
	}
	in.assumeIf(swapping > 0,
		"%s %s swap, which is not simulated: more memory is in use than measured, and pods are killed that swap would save",
		format.Part(swapping, len(in.Nodes), "node"), format.Form(swapping, "has", "have"))
	return in, nil
}

// noteMissingUsage states first in Missing how many pods have neither requests nor known usage, unless they are few: placing them by their
// usage has no effect.
func (in *Input) noteMissingUsage() {
	unknown := 0
	for i := range in.Pods {
		if p := &in.Pods[i]; p.Usage == nil && (p.Resources.CPURequest == 0 || p.Resources.MemoryRequest == 0) {
			unknown++
		}
	}
	in.assumeIf(unknown > 0, noRequestsAssumption)
	if all := len(in.Pods); 100*unknown >= max(all, 1) {
		in.Missing = slices.Insert(slices.Clone(in.Missing), 0, fmt.Sprintf("%s %s no request for CPU or for memory, and %s usage is not "+
			"in the input: it is taken as about 100m and 200Mi, so that placing by usage shows no gain. Read the usage with plimsoll snapshot "+
			"or plimsoll record.",
			format.Part(unknown, all, "pod"), format.Form(unknown, "has", "have"), format.Form(unknown, "its", "their")))
	}
}

// input reads the input.
func (s Source) input() (in Input, err error) {
	if s.Recording != "" {
		return s.inputOfRecording()
	}
	objects, err := manifest.Read(s.Files, bytes.NewReader(s.Stdin))
	if err != nil {
		return in, err
	}
	in = s.FromManifests(objects)
	in.Name = "manifests: " + strings.Join(s.Files, ", ")
	return in, nil
}

// inputOfRecording returns the nodes and pods of a snapshot or of a recording.
func (s Source) inputOfRecording() (in Input, err error) {
	read, err := openFlag(s.Recording)
	if err != nil {
		return in, err
	}
	if read.About.isSnapshot() {
		objects, err := read.Cluster()
		if err != nil {
			return in, fmt.Errorf("--recording: %s: %w", read.file, err)
		}
		in = s.FromManifests(objects)
		if in.Name = fmt.Sprintf("snapshot: %s, of %s", read.file, read.About.From.Format(time.RFC3339)); read.Usage != nil {
			usage, estimated := demandAt(objects, read.Usage)
			in.setUsage(usage)
			estimated.note(&in, 0)
		}
		return in, nil
	}
	part, err := read.part()
	if err != nil {
		return in, err
	}
	in = part.Input(s)
	in.Name = "recording: " + s.Recording
	return in, nil
}

// longestSample is the longest time that one sample of metrics-server covers: earlier versions wrote the configured window to snapshots.
const longestSample = time.Minute

// OpenAt reads the cluster in the recording that the value of --recording specifies, FILE with, after commas, from=DURATION and
// to=DURATION since its start, and the load of its nodes, nil if it is unknown. It returns the time: a snapshot has its own, and a
// recording its end, unless at, the value of --at, is another.
func OpenAt(text string, at time.Time) (Instant, error) {
	read, err := openFlag(text)
	if err != nil {
		return Instant{}, err
	}
	if read.About.isSnapshot() {
		objects, err := read.Cluster()
		if err != nil {
			err = fmt.Errorf("--recording: %s: %w", read.file, err)
		} else if !at.IsZero() {
			err = fmt.Errorf("--at: not allowed: %s is a snapshot", read.file)
		}
		if read.Load != nil && read.Load.IsCurrent() {
			read.Load.Window = min(read.Load.Window, longestSample)
		}
		return Instant{objects, read.Load, read.Usage, read.measuredUntil()}, err
	}
	part, err := read.part()
	if err != nil {
		return Instant{}, err
	}
	start, end := part.Time(0), part.Time(part.seconds)
	switch {
	case at.IsZero():
		at = end
	case at.Before(start) || at.After(end):
		return Instant{}, format.InvalidValue("--at", at.Format(time.RFC3339),
			fmt.Sprintf("from %s to %s, the time of the recording", start.Format(time.RFC3339), end.Format(time.RFC3339)))
	}
	return part.At(int64(at.Sub(start) / time.Second)), nil
}

// measuredUntil returns the time at which a snapshot was complete. The load is read last.
func (r *Recording) measuredUntil() time.Time {
	if r.Load != nil && r.Load.Time.After(r.About.From) {
		return r.Load.Time
	}
	return r.About.From
}

// OpenFlag reads the recording that the value of --recording specifies. Its usage is that of the span.
func OpenFlag(text string) (*Recording, error) {
	read, err := openFlag(text)
	return read.Recording, err
}

// OpenSpan reads the recording that the value of --recording specifies, which must not be a snapshot, and returns its span in seconds since
// the start of the recording.
func OpenSpan(text string) (read *Recording, from, to int64, err error) {
	opened, err := openFlag(text)
	if err != nil {
		return nil, 0, 0, err
	}
	part, err := opened.part()
	if err != nil {
		return nil, 0, 0, err
	}
	return opened.Recording, part.from, part.from + part.seconds, nil
}

// WithSpan returns the value of --recording for the file of another value and a span in seconds since the start of the recording.
func WithSpan(text string, from, to int64) string {
	file, _, _ := strings.Cut(text, ",")
	return fmt.Sprintf("%s,from=%ds,to=%ds", file, from, to)
}

// spanOfFile is a recording in a file and the span of it that the value of --recording specifies, in seconds since its start.
type spanOfFile struct {
	*Recording
	file     string
	from, to int64
}

// openFlag reads the recording that the value of --recording specifies, with the usage in its span and an hour around it at least. A
// snapshot must have no span.
func openFlag(text string) (s spanOfFile, err error) {
	file, span, _ := strings.Cut(text, ",")
	s.file = file
	if s.from, s.to, err = parseSpan(span); err != nil {
		return s, fmt.Errorf("--recording: %w; must be one FILE, or FILE,from=24h,to=48h", err)
	}
	s.Recording, err = open(file, s.from, s.to)
	switch {
	case err != nil:
	case span != "" && s.About.isSnapshot():
		err = fmt.Errorf("%s: invalid value %q: not allowed for a snapshot", file, span)
	case max(s.from, s.to) > s.About.Seconds():
		err = fmt.Errorf("%s: invalid value %q: must be at most %s, the length of the recording",
			file, span, time.Duration(s.About.Seconds())*time.Second)
	case s.to == 0:
		s.to = s.About.Seconds()
	}
	if err != nil {
		err = fmt.Errorf("--recording: %w", err)
	}
	return s, err
}

// part returns the span.
func (s *spanOfFile) part() (*Part, error) {
	part, err := s.Part(s.from, s.to)
	if err != nil {
		return nil, fmt.Errorf("--recording: %s: %w", s.file, err)
	}
	return part, nil
}

// parseSpan parses from=DURATION,to=DURATION into seconds.
func parseSpan(text string) (from, to int64, err error) {
	var span struct {
		From metav1.Duration `json:"from"`
		To   metav1.Duration `json:"to"`
	}
	set, err := resources.DecodePairs(text, &span)
	start, end := span.From.Duration, span.To.Duration
	switch {
	case err != nil:
		return 0, 0, err
	case start < 0 || start%time.Second != 0 || end%time.Second != 0:
		return 0, 0, fmt.Errorf("invalid value %q: must be durations of whole seconds such as 30m or 24h", text)
	case set["to"] != nil && end <= start:
		return 0, 0, format.InvalidValue("to", end, "more than from")
	}
	return int64(start / time.Second), int64(end / time.Second), nil
}

// earlierSeconds is the longest time before a part from which a scheduler learns. After a day, a reading counts half.
const earlierSeconds = 24 * 3600

// Earlier returns the source of the time before a part of the recording, a day at most, with the recorded placements. It returns false
// without a part, or if the recording starts with it.
func (s Source) Earlier(part *Part) (Source, bool) {
	if part == nil || part.from < Step {
		return s, false
	}
	s.Recording, s.Measured, s.Reschedule = WithSpan(s.Recording, max(part.from-earlierSeconds, 0), part.from), true, false
	return s, true
}

// spanMargin is how many seconds after its end a span is written: usage of a pod that is placed earlier than it was.
const spanMargin = 3600

// WriteSpan writes what the recording has from one time until another, in seconds since its start, to a file, and returns the value of
// --recording for the span in the file. Runs that need a small part of a recording read that instead of all of it.
func (r *Recording) WriteSpan(name string, from, to int64) (text string, err error) {
	step := int64(r.About.Step)
	offset, end := from/step*step, min(to+spanMargin, r.About.Seconds())
	out := Recording{About: r.About, Objects: r.Objects}
	out.About.From = r.About.From.Add(time.Duration(offset) * time.Second)
	out.About.To = r.About.From.Add(time.Duration(end) * time.Second)
	out.About.Kills = nil
	for _, kill := range r.About.Kills {
		if !kill.Time.Before(out.About.From) && !kill.Time.After(out.About.To) {
			out.About.Kills = append(out.About.Kills, kill)
		}
	}
	for _, n := range r.Nodes {
		if n.Appeared < end && n.Gone > from {
			n.Appeared, n.Gone = later(n.Appeared, -offset), later(n.Gone, -offset)
			out.Nodes = append(out.Nodes, n)
		}
	}
	for _, p := range r.Pods {
		if p.Created < end && p.Ended > from {
			p.Created, p.Scheduled = later(p.Created, -offset), later(p.Scheduled, -offset)
			p.Started, p.Ended = later(p.Started, -offset), later(p.Ended, -offset)
			p.CPU, p.Memory = p.CPU.between(int(offset/step), int(end/step)), p.Memory.between(int(offset/step), int(end/step))
			out.Pods = append(out.Pods, p)
		}
	}
	return WithSpan(name, from-offset, to-offset), out.writeFile(name, gzip.BestSpeed)
}

// between returns the series from a step, which becomes step 0, until another. If it has no value at the first step, the value before
// is repeated there; if it has none until the end, its first value is at the end. So the nearest values remain.
func (s *Series) between(from, to int) Series {
	codes := s.codes[:min(len(s.codes), max(to-s.First, 0)+1)]
	if from <= s.First || len(codes) == 0 {
		return Series{First: min(s.First, to) - from, codes: codes}
	}
	skipped := min(from-s.First, len(codes)-1)
	last := skipped
	for last > 0 && codes[last] == gapCode {
		last--
	}
	value := codes[last]
	if codes = codes[skipped:]; last < skipped {
		codes = slices.Clone(codes)
		codes[0] = value
	}
	return Series{codes: codes}
}
