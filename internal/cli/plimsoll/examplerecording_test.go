package plimsoll

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
)

// TestExampleRecording checks the example recording, of a simulated run of two days. -update writes it.
func TestExampleRecording(t *testing.T) {
	t.Chdir("../../..")
	const path = "examples/recording/week.plrec"
	made := filepath.Join(t.TempDir(), "made.plrec")
	cmd := newCommand()
	cmd.SetOut(io.Discard)
	cmd.SetArgs([]string{
		"simulate", "--generate", "nodes=4,pods=400,fill=2,over=172800,life=5400,best-effort=0.1", "--usage", "bursts:mean=0.7",
		"--write-recording", made,
	})
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	if *update {
		raw, err := os.ReadFile(made)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, raw, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := recording.Open(made)
	if err != nil {
		t.Fatal(err)
	}
	got, err := recording.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want.About, got.About); diff != "" {
		t.Errorf("%s is outdated (go test ./internal/cli/plimsoll -run ExampleRecording -update):\n%s", path, diff)
	}
	if len(want.Pods) != len(got.Pods) {
		t.Fatalf("%d pods, want %d", len(got.Pods), len(want.Pods))
	}
	for i := range want.Pods {
		a, b := &want.Pods[i], &got.Pods[i]
		if a.Object.Name != b.Object.Name || a.Created != b.Created || a.Scheduled != b.Scheduled || a.Node != b.Node ||
			a.CPU.Len() != b.CPU.Len() {
			t.Errorf("pod %s on %s from %d, want %s on %s from %d", b.Object.Name, b.Node, b.Scheduled, a.Object.Name, a.Node, a.Scheduled)
		}
	}
}
