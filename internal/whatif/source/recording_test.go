package source

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/usage"
)

// hour writes a recording of an hour, in which a pod is created every ten minutes, and returns its name.
func hour(t *testing.T) string {
	t.Helper()
	from := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	r := recording.Recording{
		About: recording.About{
			APIVersion: recording.APIVersion, Kind: recording.AboutKind, From: from, To: from.Add(time.Hour + 30*time.Second), Step: 60,
		},
		Nodes: []recording.Node{{Object: &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, Appeared: -1, Gone: recording.Never}},
	}
	for second := int64(0); second < 3600; second += 600 {
		r.Pods = append(r.Pods, recording.Pod{
			Object:  &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p" + time.Duration(second*1e9).String()}},
			Created: second, Scheduled: second, Started: second, Ended: second + 60, Node: "a",
		})
	}
	path := filepath.Join(t.TempDir(), "hour.plrec")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := r.Write(file); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestPartsOfRecording divides the last 40 minutes of an hour, with 4 pods, into 3 parts of 13 minutes: seed 3 has the first
// part, with the pods of minutes 20 and 30; seed 1 the second, from minute 33, with that of minute 40; and seed 2 that of minute 50.
func TestPartsOfRecording(t *testing.T) {
	s, err := Open(Spec{Recording: hour(t) + ",from=20m", Parts: 3})
	if err != nil {
		t.Fatal(err)
	}
	for seed, want := range map[uint64]string{1: "p40m0s", 2: "p50m0s", 3: "p20m0s p30m0s", 4: "p40m0s"} {
		in := s.Input(seed, usage.Limits{})
		var names []string
		for i := range in.Pods {
			names = append(names, in.Pods[i].Object.Name)
		}
		if got := strings.Join(names, " "); got != want || in.End != 13*60 {
			t.Errorf("seed %d: pods %s until %d, want %s", seed, got, in.End, want)
		}
	}
	if _, err := Open(
		Spec{Recording: hour(t), Parts: 61},
	); err == nil ||
		!strings.Contains(err.Error(), "--seeds: invalid value 61: must be at most 60") {
		t.Errorf("%v", err)
	}
}
