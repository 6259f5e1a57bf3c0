package snapshot

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plimsoll-k8s/plimsoll/load"
)

// usageReading is a reading of two pods.
func usageReading() load.PodReading {
	return load.PodReading{Source: "metrics-server", Time: instant, Window: 15 * time.Second, Pods: []load.PodUsage{
		{Namespace: "shop", Name: "p", CPU: 12.5, Memory: 1 << 20}, {Namespace: "shop", Name: "q"},
	}}
}

// TestUsage verifies that the usage of pods is in an archive, and that it has pseudonyms in a redacted one.
func TestUsage(t *testing.T) {
	s := smallSnapshot(t)
	s.SetUsage(usageReading())
	got, err := Read(bytes.NewReader(archiveOf(t, s)))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(s.Usage, got.Usage); diff != "" {
		t.Error(diff)
	}
	redacted, err := s.Redact([]byte("key"))
	if err != nil {
		t.Fatal(err)
	}
	archive := archiveOf(t, redacted)
	if got, err = Read(bytes.NewReader(archive)); err != nil {
		t.Fatal(err)
	}
	if len(got.Usage.Pods) != 2 || got.Usage.Pods[0].Namespace == "shop" || got.Usage.Pods[0].Name == "p" || got.Usage.Pods[0].CPU != 12.5 {
		t.Errorf("%+v", got.Usage.Pods)
	}
}

// TestInvalidUsage verifies the errors for usage that is damaged or does not match its description.
func TestInvalidUsage(t *testing.T) {
	for content, want := range map[string]string{
		`{"pods":[{"namespace":"a","name":"b","cpuMillicores":-1}]}`:           "pods[0]: invalid usage of -1 millicores",
		`{"pods":[{"namespace":"a","name":"b"},{"namespace":"a","name":"b"}]}`: "pods[1]: duplicate pod a/b",
		`{"pods":`: "unexpected EOF",
	} {
		if err := (&Snapshot{}).readUsage(strings.NewReader(content)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", content, err, want)
		}
	}
	s := smallSnapshot(t)
	s.SetUsage(usageReading())
	s.About.Usage.Pods = 3
	_, err := Read(bytes.NewReader(archiveOf(t, s)))
	if err == nil || !strings.Contains(err.Error(), "usage.json: found 2 pods, snapshot.json lists 3") {
		t.Errorf("%v", err)
	}
	s.About.Usage = nil
	if _, err := Read(
		bytes.NewReader(archiveOf(t, s)),
	); err == nil ||
		!strings.Contains(err.Error(), "usage.json: not described in snapshot.json") {
		t.Errorf("%v", err)
	}
}
