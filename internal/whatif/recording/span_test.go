package recording

import (
	"fmt"
	"math"
	"path/filepath"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// TestWriteSpan checks that a run of a span reads the same from the file of the span as from the whole recording, also if the span does not
// begin at a step of the usage, the usage has a gap there, or ended before it.
func TestWriteSpan(t *testing.T) {
	folder, files := t.TempDir(), 0
	rapid.Check(t, func(t *rapid.T) {
		r := draw(t)
		r.Objects = nil
		r.About.Step = rapid.SampledFrom([]int{15, 60, 300}).Draw(t, "step")
		r.finish()
		from := rapid.Int64Range(0, 30*60).Draw(t, "from")
		to := from + 60*rapid.Int64Range(1, 20).Draw(t, "minutes")
		files++
		text, err := r.WriteSpan(filepath.Join(folder, fmt.Sprint(files, Extension)), from, to)
		must.Succeed(t, err)
		written, err := openFlag(text)
		must.Succeed(t, err)
		want, err := r.Part(from, to)
		must.Succeed(t, err)
		got, err := written.part(1, 0)
		must.Succeed(t, err)
		source := Source{Pack: 1, Reschedule: rapid.Bool().Draw(t, "reschedule")}
		if a, b := describe(want.Input(source)), describe(got.Input(source)); a != b {
			t.Errorf("from the recording:\n%s\nfrom the span:\n%s", a, b)
		}
	})
}

// TestPartOfSeries checks that each step of a part of a series has the same nearest value as in the series, also if the series begins after the
// part or ends before it.
func TestPartOfSeries(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.SampledFrom([]float64{1, 2, math.NaN()}), 1, 20).Draw(t, "values")
		s := NewSeries(rapid.IntRange(0, 40).Draw(t, "first"), values...)
		s.clip(s.End())
		from := rapid.IntRange(0, 40).Draw(t, "from")
		to := from + rapid.IntRange(1, 20).Draw(t, "steps")
		part := s.between(from, to)
		part.clip(to - from + 1)
		if (part.Len() == 0) != (s.Len() == 0) {
			t.Fatalf("%d values from %d to %d of %d values from %d on", part.Len(), from, to, s.Len(), s.First)
		}
		whole, _ := s.withoutGaps()
		filled, _ := part.withoutGaps()
		for step := from; s.Len() > 0 && step <= to; step++ {
			if want, got := whole.nearest(step), filled.nearest(step-from); got != want {
				t.Errorf("step %d: %v, want %v", step, got, want)
			}
		}
	})
}

// describe returns what a run reads of an input, with the usage of the pods until the end.
func describe(in Input) (text string) {
	text = in.Start.Format(time.RFC3339)
	for _, n := range in.Nodes {
		text += fmt.Sprintln(n.Object.Name, n.Appeared, n.Gone)
	}
	for i := range in.Pods {
		p := &in.Pods[i]
		text += fmt.Sprint(p.Object.Name, p.Object.Spec.NodeName, p.Arrival, p.Duration, *p.Recorded)
		for second := p.Arrival; p.Usage != nil && second < in.End; second += 10 {
			cpu, memory := p.Usage.At(second - p.Arrival)
			text += fmt.Sprint(" ", cpu, memory)
		}
		text += "\n"
	}
	return text
}
