package recording

import (
	"path/filepath"
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
	whole, err := Open("../../../examples/recording/week.plrec")
	must.Succeed(t, err)
	folder := t.TempDir()
	if _, err := Open(folder); err == nil ||
		!strings.Contains(err.Error(), "found no recording: must be a file, or a folder with files NAME.plrec") {
		t.Errorf("an empty folder: %v", err)
	}
	end := whole.About.Seconds()
	split(t, whole, 0, 36000, filepath.Join(folder, "1.plrec"))
	split(t, whole, 36000, 72000, filepath.Join(folder, "2.plrec"))
	split(t, whole, 72000, end, filepath.Join(folder, "3.plrec"))
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
