package chaos

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/plimsoll-k8s/plimsoll/test/support/apiproxy"
)

// expectError fails unless an error contains a text, or is nil if the text is empty.
func expectError(t *testing.T, name string, err error, want string) {
	t.Helper()
	if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
		t.Errorf("%s: error %v, want %q", name, err, want)
	}
}

func TestCheckSelections(t *testing.T) {
	ab, b, bc := selection{"a", "b"}, selection{"b"}, selection{"b", "c"}
	for name, tc := range map[string]struct {
		changes []selection
		want    string
	}{
		"none":     {nil, ""},
		"replaced": {[]selection{bc}, ""},
		"a gap":    {[]selection{b, bc}, "decision lost: placement p has 1 clusters after change 1 (b), want at least 2"},
		"flapping": {[]selection{bc, ab, bc}, "flapping: the decision of placement p changed 3 times, want at most 2"},
	} {
		expectError(t, name, checkSelections("p", tc.changes, 2, 2), tc.want)
	}
}

func TestCheckCounts(t *testing.T) {
	for name, tc := range map[string]struct {
		changes []int64
		want    string
	}{
		"none":     {nil, ""},
		"grown":    {[]int64{4, 5}, ""},
		"doubled":  {[]int64{10, 5}, "placeholders doubled: policy p has up to 10, want at most 5"},
		"flapping": {[]int64{4, 5, 4}, "flapping: the placeholders of policy p changed 3 times, want at most 2"},
	} {
		expectError(t, name, checkCounts("p", tc.changes, 5, 2), tc.want)
	}
}

// TestCheckPromises checks a cluster of 10 cores with the promises a of 4 and b of 6 replicas.
func TestCheckPromises(t *testing.T) {
	a, b := promise{workload: "a", Replicas: 4, Since: 100}, promise{workload: "b", Replicas: 6, Since: 200}
	later := func(p promise, seconds int64) promise { p.Since += seconds; return p }
	for name, tc := range map[string]struct {
		made, known []promise
		shown       map[string]int64
		most        int64
		want        string
	}{
		"none":                {nil, nil, nil, 0, ""},
		"room for both":       {[]promise{a, b}, nil, nil, 10, ""},
		"one core less":       {[]promise{a, b}, []promise{a}, nil, 9, "the placements of c have 10 replicas with the promise b: 6"},
		"in one second":       {[]promise{a, later(b, -100)}, nil, nil, 9, "room promised twice"},
		"the cluster shrank":  {[]promise{a, b}, []promise{a, b}, nil, 0, ""},
		"the first has ended": {[]promise{a, later(b, 501)}, []promise{a}, nil, 6, ""},
		// 6 + 3 of 4 pods of a that run
		"ended, with pods": {[]promise{a, later(b, 501)}, []promise{a}, map[string]int64{"a": 3}, 8, "the placements of c have 9"},
		"no capacity":      {[]promise{a}, nil, nil, 0, "room promised twice"},
	} {
		expectError(t, name, checkPromises("c", tc.made, tc.known, tc.shown, tc.most), tc.want)
	}
}

func TestCheckKept(t *testing.T) {
	a, b := promise{workload: "a", Replicas: 4, Since: 100}, promise{workload: "b", Replicas: 6, Since: 200}
	again := promise{workload: "a", Replicas: 4, Since: 300, Before: 4}
	for name, tc := range map[string]struct {
		made, known []promise
		want        string
	}{
		"kept":  {[]promise{a, b}, []promise{a}, ""},
		"ended": {[]promise{b}, []promise{a, b}, ""},
		"again": {[]promise{again, b}, []promise{a, b}, "promise lost: cluster c had the promise a: 4 since 100, and has a: 4 since 300"},
	} {
		expectError(t, name, checkKept("c", tc.made, tc.known), tc.want)
	}
}

func TestCheckLeader(t *testing.T) {
	start := time.Now()
	at := func(second float64) time.Time { return start.Add(time.Duration(second * float64(time.Second))) }
	write := func(second float64, path string) apiproxy.Write {
		return apiproxy.Write{Received: at(second), Answered: at(second), Method: "PUT", Path: path, Status: 200}
	}
	lease := func(second float64) apiproxy.Write { return write(second, "/leases/plimsoll-controller") }
	rejected := write(9, "/placements")
	rejected.Status = 409
	for name, tc := range map[string]struct {
		starts [2][]float64
		a, b   []apiproxy.Write
		want   string
	}{
		"leader": {a: []apiproxy.Write{lease(1), write(2, "/placements"), lease(3)}},
		"other replica after a release": {
			a: []apiproxy.Write{lease(1), lease(3)}, b: []apiproxy.Write{lease(4), write(5, "/placements")},
		},
		"never acquired": {
			a: []apiproxy.Write{lease(1)}, b: []apiproxy.Write{write(5, "/placements")}, want: "b has not acquired the lease",
		},
		"not acquired since the restart": {
			starts: [2][]float64{{0, 4}, {}}, a: []apiproxy.Write{lease(1), write(5, "/placements")},
			want: "a has not acquired the lease",
		},
		"expired": {a: []apiproxy.Write{lease(1), write(18, "/placements")}, want: "the lease of a expired 2s before"},
		"two leaders": {
			a: []apiproxy.Write{lease(1), write(10, "/placements")}, b: []apiproxy.Write{lease(5)},
			want: "b has acquired the lease",
		},
		"within the margin":      {a: []apiproxy.Write{lease(1), write(5.5, "/placements")}, b: []apiproxy.Write{lease(5)}},
		"events":                 {b: []apiproxy.Write{write(5, "/apis/events.k8s.io/v1/namespaces/default/events")}},
		"a write that conflicts": {a: []apiproxy.Write{lease(1), rejected}, b: []apiproxy.Write{lease(5)}},
	} {
		logs := []replicaLog{{name: "a", writes: tc.a}, {name: "b", writes: tc.b}}
		for i, starts := range tc.starts {
			for _, second := range starts {
				logs[i].starts = append(logs[i].starts, at(second))
			}
		}
		expectError(t, name, checkLeader(logs, start), tc.want)
	}
}

// TestSchedule expects that generated schedules survive their text form, depend on the seed only and use
// each step, and that errors name the line.
func TestSchedule(t *testing.T) {
	verbs := map[string]bool{}
	for seed := range uint64(20) {
		s := generate(seed, 20)
		parsed, err := parseSchedule(strings.NewReader("# a comment\n\n" + s.String()))
		if err != nil || parsed.String() != s.String() || generate(seed, 20).String() != s.String() {
			t.Fatalf("seed %d: %v, %s\nwant\n%s", seed, err, parsed, s)
		}
		for _, round := range s {
			for _, step := range round {
				verbs[step.verb] = true
			}
		}
	}
	for verb := range stepArgs {
		if !verbs[verb] {
			t.Errorf("no schedule has the step %s", verb)
		}
	}
	for _, line := range []string{
		"fly", "kill", "kill both", "fault leader hang", "fault leader fire 1s", "fault leader hang soon", "pods many", "pods -1",
		"rate general 20", "rate general x%", "compact now", "fit two 3", "capacity cluster-8 3", "uncapacity cluster-1 wrong", "start 3",
	} {
		_, err := parseSchedule(strings.NewReader("round\n" + line))
		expectError(t, line, err, fmt.Sprintf("line 2: invalid step %q", line))
	}
	_, err := parseSchedule(strings.NewReader("compact"))
	expectError(t, "no round", err, "line 1")
}
