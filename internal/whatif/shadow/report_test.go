package shadow

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recommend"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

var begin = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

// run returns a run of an hour with as many overloaded nodes in each of twelve intervals.
func run(overloaded ...float64) result.Run {
	r := result.Run{
		Scheduled:  10,
		TimeSeries: &result.TimeSeries{EverySeconds: 300, OverloadedNodes: make([]float64, 12), HighestLoads: make([]float64, 12)},
	}
	copy(r.TimeSeries.OverloadedNodes, overloaded)
	for i, n := range r.TimeSeries.OverloadedNodes {
		r.OverloadMinutes += 5 * n
		r.TimeSeries.HighestLoads[i] = 0.5 + n
	}
	r.Overloaded = &result.Overloaded{
		Nodes:     []result.OverloadTime{{Name: "node-a", Minutes: r.OverloadMinutes}},
		Workloads: []result.OverloadTime{{Name: "shop/web", Kind: "ReplicaSet", Minutes: 2 * r.OverloadMinutes}},
	}
	return r
}

// window returns the hour with a number, in which the usage of all pods was recorded.
func window(hour int, measured, current, candidate result.Run) *Window {
	from := begin.Add(time.Duration(hour) * time.Hour)
	return &Window{
		Part: result.Part{
			Source: result.Source{Nodes: 1, Pods: 10, UsageKnown: 10}, From: from, To: from.Add(time.Hour), Missing: []string{},
		},
		File:       fmt.Sprintf("%02d.ndjson.gz", hour),
		Measured:   measured,
		Current:    Profiled{Profile: "default", Run: current},
		Candidates: []Profiled{{Profile: "predicted", Run: candidate, Placed: 10, Elsewhere: 4}},
	}
}

// TestVerdicts has windows of an hour. Of n equal windows the interval has no width.
func TestVerdicts(t *testing.T) {
	many := func(n int, each func(i int) *Window) (windows []*Window) {
		for i := range n {
			windows = append(windows, each(i))
		}
		return windows
	}
	for name, test := range map[string]struct {
		windows  []*Window
		answer   result.Answer
		sentence string
	}{
		// In each window 2 and 1 node are overloaded for 5 minutes, and 1 in another interval with the candidate: 15 avoided, 5 caused.
		"better": {
			many(4, func(i int) *Window { return window(i, run(2, 1), run(2, 1), run(0, 0, 1)) }), result.Better,
			"In the last 7 days predicted would have avoided 60 node minutes of overload, and caused 20. It would have placed 16 of 40 pods on another kind of node.",
		},
		"worse": {
			many(4, func(i int) *Window { return window(i, run(), run(), run(1)) }), result.Worse,
			"In the last 7 days predicted would have avoided 0 node minutes of overload, and caused 20.",
		},
		// Avoided 5 and 15: a standard deviation of 7.07, t(1) = 12.7: 20 ± 127.
		"chance": {
			[]*Window{window(0, run(1), run(1), run()), window(1, run(3), run(3), run())},
			result.CannotTell,
			"Cannot tell. The difference can be chance. In the last 7 days predicted would have avoided 20 ± 127 node minutes of overload, and caused 0.",
		},
		"error": {
			many(4, func(i int) *Window { return window(i, run(5), run(2), run()) }), result.CannotTell,
			"Cannot tell. The error of the model, 60 node minutes, is larger than the difference, 40. In the last 7 days predicted would",
		},
		"equal": {
			many(2, func(i int) *Window { return window(i, run(2), run(2), run(2)) }), result.Equal,
			"would have avoided 0 node minutes of overload, and caused 0. It would have placed 8 of 20 pods on another kind of node.",
		},
		"calm": {many(4, func(i int) *Window { return window(i, run(), run(), run()) }), result.Equal, "No node is overloaded with either profile."},
		"headroom": {
			many(4, func(i int) *Window {
				w := window(i, run(), run(), run())
				w.Current.Run.CPULoad.Max, w.Candidates[0].Run.CPULoad.Max = 0.83, 0.71
				return w
			}), result.MoreHeadroom, "CPU load of nodes, max: 71 % instead of 83 %, 12 points more headroom",
		},
		"saturated": {
			many(4, func(i int) *Window {
				w := window(i, run(), run(), run())
				w.Measured.CPUSaturationMinutes, w.Current.Run.CPUSaturationMinutes = 20, 20
				w.Current.Run.CPULoad.Max, w.Candidates[0].Run.CPULoad.Max = 0.97, 0.85
				return w
			}), result.Better, "Nodes are saturated for less time: 0 node minutes instead of 20",
		},
		"one":           {many(1, func(i int) *Window { return window(i, run(2), run(2), run()) }), result.CannotTell, "Cannot tell. There is only one pair of runs: a difference may be chance. Wait for more windows"},
		"unusual":       {many(3, func(i int) *Window { w := window(i, run(2), run(2), run()); w.UsageKnown = 4; return w }), result.CannotTell, "usage is missing: it was recorded for 4 of 10 pods."},
		"without usage": {many(3, func(i int) *Window { w := window(i, run(), run(), run()); w.UsageKnown = 0; return w }), result.CannotTell, "usage is missing"},
		// The profile in force changed: only the last windows are compared.
		"changed": {
			many(4, func(i int) *Window {
				w := window(i, run(2), run(2), run())
				if i < 2 {
					w.Current.Profile = "old"
				}
				return w
			}), result.Better, "avoided 20 node",
		},
		// Only the last three windows have the candidate: the model had an error of 2 x 5 x 5 node minutes before.
		"added": {
			many(8, func(i int) *Window {
				if i < 5 {
					w := window(i, run(2), run(4), run())
					w.Candidates = nil
					return w
				}
				return window(i, run(2), run(2), run())
			}), result.Better, "avoided 30 node",
		},
		"failed": {
			append(many(3, func(i int) *Window { return window(i, run(1), run(1), run()) }), &Window{Error: "damaged"}), result.Better, "avoided 15 node",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := NewReport(test.windows, begin, begin.AddDate(0, 0, 7))
			if len(r.Verdicts) != 1 || r.Verdicts[0].Answer != test.answer || !strings.Contains(r.Verdicts[0].Sentence, test.sentence) {
				t.Errorf("%+v, want %s: %s", r.Verdicts, test.answer, test.sentence)
			}
		})
	}
	failed := []*Window{{Error: "damaged"}, window(0, run(2), run(2), run())}
	failed[1].UsageKnown = 0
	if r := NewReport(failed, begin, begin.AddDate(0, 0, 1)); len(r.Excluded) != 2 || r.Basis() != "No window is compared." {
		t.Errorf("%q, excluded %q", r.Basis(), r.Excluded)
	}
	short := window(0, run(2), run(2), run())
	short.To = short.From.Add(2 * time.Minute)
	basis := NewReport([]*Window{short, short}, begin, begin.AddDate(0, 0, 1)).Basis()
	if !strings.HasPrefix(basis, "2 windows of 4 min in total") {
		t.Error(basis)
	}
	r := NewReport(nil, begin, begin.AddDate(0, 0, 1))
	if len(r.Verdicts) != 0 || !strings.HasPrefix(r.Basis(), "Cannot tell: no window is complete. The first") {
		t.Errorf("%+v", r)
	}
	basis = (&Report{Result: &result.Result{}, Began: begin}).Basis()
	if !strings.Contains(basis, begin.Format("The current window began at 2006-01-02 15:04 UTC: its")) {
		t.Error(basis)
	}
}

// TestVerdictIsConsistent checks that what is caused less what is avoided is the difference, and that a verdict of better or worse
// has an interval without 0 and an error that is not larger.
func TestVerdictIsConsistent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		runs := func() result.Run {
			return run(rapid.SliceOfN(rapid.Float64Range(0, 3), 12, 12).Draw(t, "nodes")...)
		}
		var windows []*Window
		for i := range rapid.IntRange(1, 8).Draw(t, "windows") {
			windows = append(windows, window(i, runs(), runs(), runs()))
		}
		r := NewReport(windows, begin, begin.AddDate(0, 0, 7))
		v := r.Verdicts[0]
		if math.Abs(v.Caused.Sum-v.Avoided.Sum-v.Difference.Sum) > 1e-6 {
			t.Errorf("caused %v, avoided %v, difference %v", v.Caused, v.Avoided, v.Difference)
		}
		if (v.Answer == result.Better || v.Answer == result.Worse) &&
			(v.Difference.Half == nil || *v.Difference.Half >= math.Abs(v.Difference.Sum) || math.Abs(r.Error.Sum) > math.Abs(v.Difference.Sum)) {
			t.Errorf("%s with difference %v and error %v", v.Answer, v.Difference, r.Error)
		}
	})
}

// TestConcerned has 15 nodes that are overloaded as measured and with both candidates: each has a row.
func TestConcerned(t *testing.T) {
	var windows []*Window
	for hour := range 2 {
		w := window(hour, run(1), run(1), run(1))
		w.Candidates = append(w.Candidates, Profiled{Profile: "low-risk", Run: run(1)})
		for _, r := range []*result.Run{&w.Measured, &w.Current.Run, &w.Candidates[0].Run, &w.Candidates[1].Run} {
			r.Overloaded.Nodes = nil
			for i := range 15 {
				node := result.OverloadTime{Name: fmt.Sprintf("node-%02d", i), Minutes: float64(20 - i)}
				r.Overloaded.Nodes = append(r.Overloaded.Nodes, node)
			}
		}
		windows = append(windows, w)
	}
	section := NewReport(windows, begin, begin.AddDate(0, 0, 1)).Document().Sections[0]
	if diff := cmp.Diff([]string{"node-01", "38", "38", "38", "38"}, section.Rows[1]); diff != "" || len(section.Rows) != 15 {
		t.Errorf("%s: %d rows, %s", section.Title, len(section.Rows), diff)
	}
}

// TestStore keeps windows over restarts, removes old days, and rejects other files.
func TestStore(t *testing.T) {
	folder := t.TempDir()
	const keep = 4 * 24 * time.Hour
	s, err := OpenStore(folder, keep)
	must.Succeed(t, err)
	left := filepath.Join(folder, resultsFolder, ".plimsoll-123") // of a process that was killed
	must.Succeed(t, errors.Join(os.MkdirAll(left, 0o700), os.WriteFile(filepath.Join(left, "part"), nil, 0o600)))
	for _, hour := range []int{0, 30, 31, 29, 120} {
		must.Succeed(t, s.Add(window(hour, run(1), run(2), run(3)), begin.Add(time.Duration(hour+1)*time.Hour)))
	}
	if _, err := os.Stat(left); !os.IsNotExist(err) {
		t.Errorf("the temporary folder remains: error %v", err)
	}
	s, err = OpenStore(folder, keep)
	must.Succeed(t, err)
	var files []string
	for _, w := range s.Windows(begin) {
		files = append(files, w.File)
	}
	// Hour 0 is of the first day, which is older than four days at hour 121.
	if diff := cmp.Diff([]string{"29.ndjson.gz", "30.ndjson.gz", "31.ndjson.gz", "120.ndjson.gz"}, files); diff != "" {
		t.Error(diff)
	}
	if !s.Has("/x/30.ndjson.gz") || s.Has("00.ndjson.gz") || len(s.Windows(begin.Add(31*time.Hour))) != 2 {
		t.Error("wrong windows")
	}
	if diff := cmp.Diff(window(30, run(1), run(2), run(3)), s.Windows(begin)[1]); diff != "" {
		t.Error(diff)
	}
	path := filepath.Join(folder, resultsFolder, "2026-03-02.json")
	must.Succeed(t, os.WriteFile(path, []byte(`{"kind":"Other"}`), 0o600))
	must.Succeed(t, s.SetRecommendation(&recommend.Result{Verdict: result.Verdict{Sentence: "Use packed."}}))
	// A damaged day is renamed, and the others are read.
	s, err = OpenStore(folder, keep)
	if err != nil || len(s.Damaged) != 1 || !strings.Contains(s.Damaged[0].Error(), path+`: found kind "Other"`) {
		t.Fatalf("%v, damaged %v", err, s.Damaged)
	}
	if _, err := os.Stat(path + damagedSuffix); err != nil || !s.Has("/x/120.ndjson.gz") {
		t.Errorf("%v, or the other days are lost", err)
	}
	if r := s.Recommendation(); r == nil || r.Verdict.Sentence != "Use packed." {
		t.Errorf("recommendation %+v", r)
	}
}

// FuzzDay starts with results of any text: the store opens, and the page is written from what it has.
func FuzzDay(f *testing.F) {
	day, err := json.Marshal(&Day{APIVersion: APIVersion, Kind: dayKind, Windows: []*Window{window(0, run(1), run(2), run(3))}})
	if err != nil {
		f.Fatal(err)
	}
	for _, windows := range []string{`[`, `[null,`, `[{},`, `{`} {
		f.Add(strings.Replace(string(day), "[", windows, 1))
	}
	f.Fuzz(func(t *testing.T, text string) {
		folder := t.TempDir()
		path := filepath.Join(folder, resultsFolder, "2026-03-01.json")
		if err := errors.Join(os.Mkdir(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
		s, err := OpenStore(folder, 24*time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		var page bytes.Buffer
		if err := NewReport(s.Windows(time.Time{}), begin, begin.Add(24*time.Hour)).Document().Write(&page); err != nil {
			t.Error(err)
		}
	})
}
