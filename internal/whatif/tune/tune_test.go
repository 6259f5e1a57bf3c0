package tune

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plimsoll-k8s/plimsoll/internal/whatif/compare"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/engine"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
	"github.com/plimsoll-k8s/plimsoll/plugins/predictedutilization"
)

// testOptions returns options whose runs have the overload that a function returns for the settings and the seed of a job.
func testOptions(t *testing.T, overload func(p Point, seed uint64) float64) Options {
	t.Helper()
	use, err := recording.ParseUsage("bursts")
	if err != nil {
		t.Fatal(err)
	}
	objective, err := ParseObjective("overloadMinutes=1", false)
	if err != nil {
		t.Fatal(err)
	}
	current, err := engine.ReadConfig("default")
	if err != nil {
		t.Fatal(err)
	}
	return Options{
		Compare: compare.Options{
			Source: recording.Source{
				Generate: "nodes=2,pods=4",
			},
			Limits:      []recording.Limits{{CPU: 2, Memory: 2}},
			Usage:       []recording.UsageSpec{use, use},
			Metrics:     result.Metrics{IntervalSeconds: 60, DelaySeconds: 60, WindowSeconds: 900},
			TailSeconds: 600,
			Seed:        7,
			Warn:        func(string) {},
		},
		Current: current, Objective: objective, Seeds: 10, Confirm: 8, Rounds: 4, MaxRuns: 10_000,
		Run: func(_ context.Context, jobs []compare.Job) ([]*result.Run, error) {
			runs := make([]*result.Run, len(jobs))
			for i, j := range jobs {
				point := mustCurrent(t, j.Profile.Name, string(j.Profile.Text)).point
				runs[i] = &result.Run{Seed: j.Seed, Outcome: result.Outcome{OverloadMinutes: overload(point, j.Seed)}}
			}
			return runs, nil
		},
		Report: func(Progress) {},
	}
}

func mustTune(ctx context.Context, t *testing.T, o Options) *result.Result {
	t.Helper()
	tuning, err := New(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	r, err := tuning.Run(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// seedNoise returns two numbers in [0, 1): the first depends on the seed, the second on the seed and the settings.
func seedNoise(p Point, seed uint64) (common, own float64) {
	common = float64(seed*2654435761%1000) / 1000
	hash := seed
	for _, index := range p {
		hash = (hash*31 + uint64(index) + 17) * 2654435761 % (1 << 31)
	}
	return common, float64(hash%1000) / 1000
}

// bowl is an objective whose smallest value in the space is 100, with predicted 10 and deviations 0.5: it grows with the steps from there.
func bowl(p Point, seed uint64) float64 {
	common, own := seedNoise(p, seed)
	steps := 0
	for d, index := range map[int]int{6: 3, 7: 1} {
		steps += max(p[d]-index, index-p[d])
	}
	return 100 + 40*float64(steps) + 300*common + 5*own
}

// TestFindsTheBest verifies that the search finds the same settings as an exhaustive comparison of a space of two dimensions, that they are
// confirmed with other seeds, and that the document describes the search.
func TestFindsTheBest(t *testing.T) {
	o := testOptions(t, bowl)
	for _, plugin := range Plugins() {
		if plugin != predictedutilization.Name {
			o.Exclude = append(o.Exclude, plugin)
		}
	}
	r := mustTune(t.Context(), t, o)
	best, least := Point{}, 1e9
	center := mustCurrent(t, "default", configurations["default"]).point
	for weight := range Space[6].Values {
		for deviations := range Space[7].Values {
			p, sum := center, 0.0
			p[6], p[7] = weight, deviations
			for seed := range uint64(10) {
				sum += bowl(p, 7+seed)
			}
			if sum < least {
				best, least = p, sum
			}
		}
	}
	tuning := r.Tuning
	if tuning.Settings != best.String() || tuning.Verdict.Answer != result.Better {
		t.Errorf("%+v: %s, want %s", tuning.Verdict, tuning.Settings, best)
	}
	if !slices.Equal(r.Seeds, []uint64{17, 18, 19, 20, 21, 22, 23, 24}) || tuning.Search.Seeds[9] != 16 {
		t.Errorf("seeds %v after those of the search %v", r.Seeds, tuning.Search.Seeds)
	}
	if got := mustCurrent(t, "tuned", tuning.Configuration).point; got != best {
		t.Errorf("the configuration has the settings %s:\n%s", got, tuning.Configuration)
	}
	// predicted has 15 points with a weight and 1 point without a weight.
	if tuning.Search.Points != 16 || tuning.Difference.Interval.High >= 0 ||
		math.Abs(*tuning.Winner-*tuning.Current-tuning.Difference.Mean) > 1e-6 {
		t.Errorf("%+v", tuning)
	}
	if diff := cmp.Diff([]string{"default", winnerName}, r.Profiles); diff != "" {
		t.Error(diff)
	}
}

// TestWholeSpace verifies that the search finds the best values of the two dimensions that matter in the whole space, with few of its points.
func TestWholeSpace(t *testing.T) {
	r := mustTune(t.Context(), t, testOptions(t, bowl))
	if r.Tuning.Verdict.Answer != result.Better || !strings.Contains(r.Tuning.Settings, "predicted 10 (deviations 0.5)") {
		t.Errorf("%+v: %s with %v instead of %v", r.Tuning.Verdict, r.Tuning.Settings, *r.Tuning.Winner, *r.Tuning.Current)
	}
	if n := len(r.Tuning.Search.Candidates); n > 120 || r.Tuning.Search.Points != 76_799 {
		t.Errorf("%d candidates of %d points", n, r.Tuning.Search.Points)
	}
}

// TestKeeps verifies the verdict where no configuration is better: all configurations are equal, all are equally good but noisy, or the
// configuration in force is the best. The result is then the configuration in force.
func TestKeeps(t *testing.T) {
	for name, overload := range map[string]func(p Point, seed uint64) float64{
		"equal": func(_ Point, seed uint64) float64 { return float64(seed) },
		"noise": func(p Point, seed uint64) float64 { common, own := seedNoise(p, seed); return 100*common + own },
		"best": func(p Point, seed uint64) float64 {
			if strings.HasPrefix(p.String(), "fit 1 (LeastAllocated), balanced 1") && p[6] == 0 && p[4] == 0 {
				return float64(seed)
			}
			return float64(2 * seed)
		},
	} {
		o := testOptions(t, overload)
		r := mustTune(t.Context(), t, o)
		if r.Tuning.Verdict.Answer == result.Better || r.Tuning.Profile != o.Current.Name || r.Tuning.Configuration != string(o.Current.Text) || len(r.Scenarios[0].Profiles) != 2 {
			t.Errorf("%s: %+v: %s", name, r.Tuning.Verdict, r.Tuning.Configuration)
		}
	}
}

// TestBounds verifies that the search stops at its runs and rounds, and says so.
func TestBounds(t *testing.T) {
	for name, tc := range map[string]struct {
		change     func(*Options)
		runs       int
		rounds     int
		candidates int
		exhausted  bool
	}{
		// Two scenarios and four seeds: no race of the first round fits into 50 runs.
		"runs":   {func(o *Options) { o.MaxRuns = 50 }, 0, 1, 10, true},
		"rounds": {func(o *Options) { o.Rounds = 1 }, 10_000, 1, 10, false},
	} {
		o := testOptions(t, bowl)
		tc.change(&o)
		search := mustTune(t.Context(), t, o).Tuning.Search
		last := search.Candidates[len(search.Candidates)-1]
		if search.Runs > tc.runs || last.Round != tc.rounds || len(search.Candidates) != tc.candidates || search.Exhausted != tc.exhausted {
			t.Errorf(
				"%s: %d runs, %d rounds, %d candidates, exhausted %t",
				name,
				search.Runs,
				last.Round,
				len(search.Candidates),
				search.Exhausted,
			)
		}
	}
}

// TestInterrupted verifies that a search that is interrupted keeps the best configuration of the races so far, unconfirmed.
func TestInterrupted(t *testing.T) {
	for _, after := range []int64{1, 2, 3} {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		o := testOptions(t, bowl)
		run, calls := o.Run, atomic.Int64{}
		o.Run = func(ctx context.Context, jobs []compare.Job) ([]*result.Run, error) {
			if calls.Add(1) >= after {
				cancel()
			}
			if ctx.Err() == nil {
				return run(ctx, jobs)
			}
			return make([]*result.Run, len(jobs)), nil
		}
		r := mustTune(ctx, t, o)
		want := winnerName
		if after == 1 { // nothing is known
			want = o.Current.Name
		}
		if !r.Interrupted || r.Tuning.Verdict.Answer != result.CannotTell || r.Tuning.Profile != want {
			t.Errorf("after %d: interrupted %t, %+v for %s, want %s", after, r.Interrupted, r.Tuning.Verdict, r.Tuning.Profile, want)
		}
		if _, err := newCurrent(engine.NamedConfig{Name: "result", Text: []byte(r.Tuning.Configuration)}); err != nil {
			t.Errorf("after %d: %v", after, err)
		}
		if marked := strings.Contains(r.Tuning.Configuration, "not confirmed"); marked != (want == winnerName) {
			t.Errorf("after %d: the configuration is marked: %t", after, marked)
		}
	}
}

// TestDeterministic verifies that the same options give the same document.
func TestDeterministic(t *testing.T) {
	var documents [2]string
	for i := range documents {
		raw, err := json.Marshal(mustTune(t.Context(), t, testOptions(t, bowl)))
		if err != nil {
			t.Fatal(err)
		}
		documents[i] = string(raw)
	}
	if documents[0] != documents[1] {
		t.Error("two documents differ")
	}
}

func TestErrors(t *testing.T) {
	for want, change := range map[string]func(*Options){
		`--exclude: invalid value "Fit": must be one of NodeResourcesFit, `: func(o *Options) { o.Exclude = []string{"Fit"} },
		"--exclude: nothing is left to change":                              func(o *Options) { o.Exclude = Plugins() },
		"--current: bad: ":                                                  func(o *Options) { o.Current = engine.NamedConfig{Name: "bad", Text: []byte("a: b")} },
		"--current: two: found the profiles a, b: must be one profile, or":  func(o *Options) { o.Current = engine.NamedConfig{Name: "two", Text: []byte(twoOthers)} },
		"--generate: pods":                                                  func(o *Options) { o.Compare.Source.Generate = "nodes=1" },
		`--current: invalid value "tuned": must have another name than`:     func(o *Options) { o.Current.Name = winnerName },
	} {
		o := testOptions(t, bowl)
		change(&o)
		if _, err := New(t.Context(), o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
	failing := testOptions(t, bowl)
	failing.Run = func(context.Context, []compare.Job) ([]*result.Run, error) { return nil, fmt.Errorf("no process") }
	tuning, err := New(t.Context(), failing)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tuning.Run(t.Context()); err == nil || err.Error() != "no process" {
		t.Errorf("error %v", err)
	}
}

const twoOthers = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles: [{schedulerName: a}, {schedulerName: b}]\n"
