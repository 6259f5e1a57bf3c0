package plimsoll

import (
	"io"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plimsoll-k8s/plimsoll/internal/cli/base"
	"github.com/plimsoll-k8s/plimsoll/internal/manifest"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/load/provider"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// The example snapshot has the objects and the load of the example cluster. -update writes it.
func TestExampleSnapshot(t *testing.T) {
	t.Chdir("../../..")
	const path = "examples/snapshot/low-risk.ndjson.gz"
	reading, err := provider.NewFile("examples/low-risk/load.json").Read(t.Context())
	must.Succeed(t, err)
	want, _, err := recording.ReadSnapshot(
		reading.Time.Add(30*time.Second),
		manifest.Files([]string{"examples/low-risk/cluster.yaml"}, nil),
	)
	must.Succeed(t, err)
	want.Load = &reading
	want.Usage = &load.PodReading{Source: "metrics-server", Time: reading.Time, Window: time.Minute, Pods: []load.PodUsage{
		{Namespace: "default", Name: "pod1", CPU: 2000, Memory: 9 << 30}, {Namespace: "default", Name: "pod2", CPU: 2000, Memory: 9 << 30},
	}}
	if *update {
		if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		must.Succeed(t, (base.NewFile{Path: path, Mode: 0o644}).Write(func(out io.Writer) error { return want.Write(out) }))
	}
	got, err := recording.Open(path)
	must.Succeed(t, err)
	if diff := cmp.Diff(want.About, got.About); diff != "" {
		t.Errorf("%s is outdated (go test ./internal/cli/plimsoll -run ExampleSnapshot -update):\n%s", path, diff)
	}
	for _, kind := range []string{"nodes", "pods"} {
		if diff := cmp.Diff(want.List(kind), got.List(kind)); diff != "" {
			t.Errorf("%s: %s (go test ./internal/cli/plimsoll -run ExampleSnapshot -update):\n%s", path, kind, diff)
		}
	}
	if diff := cmp.Diff(want.Load.Nodes, got.Load.Nodes) + cmp.Diff(want.Usage.Pods, got.Usage.Pods); diff != "" {
		t.Errorf("%s: load and usage:\n%s", path, diff)
	}
}
