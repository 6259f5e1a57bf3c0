package recording

import (
	"slices"
	"time"
)

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
		if kill.Second -= offset; kill.Second >= 0 && kill.Second <= end-offset {
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
	return WithSpan(name, from-offset, to-offset), out.WriteFile(name)
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
