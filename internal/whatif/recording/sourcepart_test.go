package recording

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// hour writes a recording of an hour, in which a pod is created every ten minutes, and returns its name.
func hour(t *testing.T) string {
	t.Helper()
	from := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	r := Recording{
		About: About{APIVersion: APIVersion, Kind: aboutKind, From: from, To: from.Add(time.Hour + 30*time.Second), Step: 60},
		Nodes: []Node{{Object: &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, Appeared: -1, Gone: Never}},
	}
	for second := int64(0); second < 3600; second += 600 {
		r.Pods = append(r.Pods, Pod{
			Object:  &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p" + time.Duration(second*1e9).String()}},
			Created: second, Scheduled: second, Started: second, Ended: second + 60, Node: "a",
		})
	}
	path := filepath.Join(t.TempDir(), "hour.plrec")
	must.Succeed(t, r.WriteFile(path))
	return path
}

// TestPartsOfRecording divides the last 40 minutes of an hour, with 4 pods, into 3 parts of 13 minutes: seed 3 has the first part,
// with the pods of minutes 20 and 30; seed 1 the second part, from minute 33, with the pod of minute 40; and seed 2 the third part,
// with the pod of minute 50.
func TestPartsOfRecording(t *testing.T) {
	s := Source{Recording: hour(t) + ",from=20m", Parts: 3}
	for seed, want := range map[uint64]string{1: "p40m0s", 2: "p50m0s", 3: "p20m0s p30m0s", 4: "p40m0s"} {
		in, err := s.Input(seed, Limits{})
		must.Succeed(t, err)
		var names []string
		for i := range in.Pods {
			names = append(names, in.Pods[i].Object.Name)
		}
		if got := strings.Join(names, " "); got != want || in.End != 13*60 {
			t.Errorf("seed %d: pods %s until %d, want %s", seed, got, in.End, want)
		}
	}
	if _, err := (Source{Recording: hour(t), Parts: 61}).Input(1, Limits{}); err == nil ||
		!strings.Contains(err.Error(), "--seeds: invalid value 61: must be at most 60") {
		t.Errorf("%v", err)
	}
}
