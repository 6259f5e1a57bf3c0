package recording

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// split writes the recording of the examples from a second until another, as a recorder that starts and stops then does.
func split(t *testing.T, r *Recording, from, to int64, file string) {
	t.Helper()
	part := &Recording{About: r.About}
	part.About.From, part.About.To = r.About.From.Add(time.Duration(from)*time.Second), r.About.From.Add(time.Duration(to)*time.Second)
	at := func(second int64) int64 {
		if second >= to {
			return Never
		}
		return second - from
	}
	for _, n := range r.Nodes {
		n.Appeared, n.Gone = n.Appeared-from, at(n.Gone)
		part.Nodes = append(part.Nodes, n)
	}
	for _, p := range r.Pods {
		if p.Created >= to || p.Ended <= from {
			continue
		}
		p.Created, p.Scheduled, p.Started, p.Ended = p.Created-from, at(p.Scheduled), at(p.Started), at(p.Ended)
		cut := func(s Series) (out Series) {
			for step := int(from) / r.About.Step; step < int(to)/r.About.Step; step++ {
				if value, ok := s.At(step); ok {
					out.Set(step-int(from)/r.About.Step, value)
				}
			}
			return out
		}
		p.CPU, p.Memory = cut(p.CPU), cut(p.Memory)
		part.Pods = append(part.Pods, p)
	}
	part.Objects = r.Objects
	must.Succeed(t, part.WriteFile(file))
}

// TestOpenFolder verifies that the recordings of a folder are read as the recording that was divided.
func TestOpenFolder(t *testing.T) {
	whole, err := Open("../../../examples/recording/week.ndjson.gz")
	must.Succeed(t, err)
	folder := t.TempDir()
	if _, err := Open(folder); err == nil ||
		!strings.Contains(err.Error(), "found no recording: must be a file, or a folder with files NAME.ndjson.gz") {
		t.Errorf("an empty folder: %v", err)
	}
	end := whole.About.Seconds()
	split(t, whole, 0, 36000, filepath.Join(folder, "1.ndjson.gz"))
	split(t, whole, 36000, 72000, filepath.Join(folder, "2.ndjson.gz"))
	split(t, whole, 72000, end, filepath.Join(folder, "3.ndjson.gz"))
	joined, err := Open(folder)
	must.Succeed(t, err)
	if len(joined.Pods) != len(whole.Pods) || len(joined.Nodes) != len(whole.Nodes) || !joined.About.To.Equal(whole.About.To) {
		t.Fatalf("%d pods and %d nodes until %s, want %d and %d until %s", len(joined.Pods), len(joined.Nodes), joined.About.To,
			len(whole.Pods), len(whole.Nodes), whole.About.To)
	}
	for i := range whole.Pods {
		want, got := whole.Pods[i], joined.Pods[i]
		if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(Pod{}, "CPU", "Memory")); diff != "" {
			t.Fatalf("%s: %s", want.Object.Name, diff)
		}
		for step := range whole.About.Steps() - 1 {
			before, has := want.CPU.At(step)
			after, hasAfter := got.CPU.At(step)
			if has != hasAfter || has && before != after {
				t.Fatalf("%s: use of CPU at step %d is %v, %v, want %v, %v", want.Object.Name, step, after, hasAfter, before, has)
			}
		}
	}
}

// TestJoinOverlap joins a recording until 600 s with two others that begin within it: the second ends within it, too, and the third has the
// last word about the time of both, in which a pod ended. No data of the first is lost.
func TestJoinOverlap(t *testing.T) {
	record := func(from, to int64, kill int64, pods ...Pod) *Recording {
		r := &Recording{About: newAbout(0), Nodes: []Node{{newNode("n"), -from - 60, Never}}, Pods: pods}
		r.About.complete()
		r.About.From, r.About.To = start.Add(time.Duration(from)*time.Second), start.Add(time.Duration(to)*time.Second)
		r.About.Kills = []Kill{{start.Add(time.Duration(kill) * time.Second), "default", "a"}}
		return r
	}
	pod := func(name string, from, ended int64, cpu Series) Pod {
		return Pod{Object: newPod(name), Created: -from, Scheduled: -from, Started: -from, Ended: ended, Node: "n", CPU: cpu}
	}
	joined, err := Join([]*Recording{
		record(0, 600, 500, pod("a", 0, Never, NewSeries(0, 1, 1, 1, 1, 1, 1)), pod("b", 0, 400, Series{}), pod("c", 0, Never, Series{})),
		record(120, 180, 130, pod("a", 120, Never, NewSeries(0, 2)), pod("b", 120, Never, Series{})),
		record(480, 900, 500, pod("a", 480, 240, NewSeries(0, 3, 3))),
	})
	must.Succeed(t, err)
	var ended []int64
	for _, p := range joined.Pods {
		ended = append(ended, p.Ended)
	}
	// c was seen last at the end of the first.
	if !slices.Equal(ended, []int64{720, 400, 600}) || len(joined.Nodes) != 1 || joined.About.Seconds() != 900 {
		t.Errorf("pods ended at %v, %d nodes, %d s", ended, len(joined.Nodes), joined.About.Seconds())
	}
	if len(joined.About.Kills) != 2 || len(joined.About.Missing) != 0 {
		t.Errorf("kills %v, missing %v", joined.About.Kills, joined.About.Missing)
	}
	var values []float64
	for step := range 10 {
		value, _ := joined.Pods[0].CPU.At(step)
		values = append(values, math.Round(value))
	}
	if want := []float64{1, 1, 2, 1, 1, 1, 0, 0, 3, 3}; fmt.Sprint(values) != strings.ReplaceAll(fmt.Sprint(want), "0", "NaN") {
		t.Errorf("usage %v", values)
	}
}
