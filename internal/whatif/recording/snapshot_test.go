package recording

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/plimsoll-k8s/plimsoll/internal/manifest"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/engine"
	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// decisions returns the scores of all nodes for all pending pods, without names.
func decisions(t *rapid.T, objects *manifest.Objects, reading *load.Reading) []string {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	config, err := engine.DefaultConfig()
	must.Succeed(t, err)
	cluster := engine.Cluster{Nodes: objects.Nodes, Running: objects.Running, References: objects.Referred()}
	engine, err := engine.New(ctx, cluster, engine.Options{Config: config, Load: reading, Clock: func() time.Time { return instant }})
	must.Succeed(t, err)
	var out []string
	for i, pod := range objects.Pending {
		scores, err := engine.Score(ctx, pod, "")
		must.Succeed(t, err)
		for j, node := range scores.Nodes {
			plugins, err := json.Marshal(node.Plugins)
			must.Succeed(t, err)
			out = append(out, fmt.Sprintf("pod %d, node %d: selected %t, feasible %t, total %d, %s",
				i, j, node.Name == scores.Selected, node.Feasible, node.Total, plugins))
		}
	}
	return out
}

// roundTrip writes and reads a snapshot. It returns the snapshot and all its contents.
func roundTrip(t must.TB, s *Recording) (*Recording, []byte) {
	var file bytes.Buffer
	must.Succeed(t, s.Write(&file))
	read, err := Read(&file)
	must.Succeed(t, err)
	var content []byte
	for _, object := range read.Objects {
		content = append(content, object.JSON...)
	}
	about, err := json.Marshal(read.About)
	must.Succeed(t, err)
	if read.Load != nil {
		for _, name := range slices.Sorted(maps.Keys(read.Load.Nodes)) {
			content = append(content, name...)
		}
	}
	return read, append(content, about...)
}

// TestSnapshotPreservesDecisions checks that scheduling decisions for a snapshot and for a redacted
// snapshot equal the decisions for the cluster itself, that no snapshot has secrets, and that a redacted
// snapshot has no names.
func TestSnapshotPreservesDecisions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		generated, reading := cluster(t)
		complete, err := manifest.ReadFrom(generated.source, true)
		must.Succeed(t, err)
		want := decisions(t, complete, &reading)

		plain, _, err := ReadSnapshot(instant, generated.source)
		must.Succeed(t, err)
		plain.Load = &reading
		redacted, err := plain.Redact([]byte{rapid.Byte().Draw(t, "key")})
		must.Succeed(t, err)
		for name, s := range map[string]*Recording{"plain": plain, "redacted": redacted} {
			read, content := roundTrip(t, s)
			objects, err := read.Cluster()
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if len(objects.Warnings) > 0 {
				t.Errorf("%s: warnings %q", name, objects.Warnings)
			}
			if diff := cmp.Diff(want, decisions(t, objects, read.Load)); diff != "" {
				t.Errorf("%s: decisions differ (-cluster +snapshot):\n%s", name, diff)
			}
			if bytes.Contains(content, []byte(secret)) {
				t.Errorf("%s: has secrets", name)
			}
			if found := bytes.Contains(content, []byte(private)); found == (name == "redacted") {
				t.Errorf("%s: has names: %t", name, found)
			}
		}
	})
}

// TestPseudonymsDependOnKey checks that pseudonyms depend on the key only.
func TestPseudonymsDependOnKey(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		generated, reading := cluster(t)
		plain, _, err := ReadSnapshot(instant, generated.source)
		must.Succeed(t, err)
		plain.Load = &reading
		content := func(key string) string {
			redacted, err := plain.Redact([]byte(key))
			must.Succeed(t, err)
			_, all := roundTrip(t, redacted)
			return string(all)
		}
		if first, again := content("a"), content("a"); first != again {
			t.Error("the same key gives different pseudonyms")
		}
		if content("a") == content("b") {
			t.Error("different keys give the same pseudonyms")
		}
	})
}

// usageReading is a reading of two pods.
func usageReading() *load.PodReading {
	return &load.PodReading{Source: "metrics-server", Time: instant, Window: 15 * time.Second, Pods: []load.PodUsage{
		{Namespace: "shop", Name: "p", CPU: 13, Memory: 1 << 20}, {Namespace: "shop", Name: "q"},
	}}
}

// TestSnapshotUsage verifies that the usage of pods is in a snapshot, and that it has pseudonyms in a redacted one.
func TestSnapshotUsage(t *testing.T) {
	s := NewSnapshot(instant, "", nil, nil)
	s.Load, s.Usage = &load.Reading{Time: instant}, usageReading()
	got, _ := roundTrip(t, s)
	if diff := cmp.Diff(s.Usage, got.Usage); diff != "" || got.Load != nil {
		t.Error(diff, got.Load)
	}
	redacted, err := s.Redact([]byte("key"))
	must.Succeed(t, err)
	got, _ = roundTrip(t, redacted)
	if len(got.Usage.Pods) != 2 || got.Usage.Pods[0].Namespace == "shop" || got.Usage.Pods[0].Name == "p" || got.Usage.Pods[0].CPU != 13 {
		t.Errorf("%+v", got.Usage.Pods)
	}
}

// TestLargeSnapshot verifies that a snapshot has the load and the usage of more nodes and pods than one record.
func TestLargeSnapshot(t *testing.T) {
	s := NewSnapshot(instant, "", nil, nil)
	s.Load, s.Usage = &load.Reading{Time: instant, Nodes: map[string]load.Node{}}, usageReading()
	for i := range 2 * loadNodes {
		s.Load.Nodes[fmt.Sprint("node-", i)] = load.Node{CPU: load.Utilization{Mean: 0.5}, HasCPU: true}
	}
	for i := range 10_000 {
		s.Usage.Pods = append(s.Usage.Pods, load.PodUsage{Namespace: "shop", Name: fmt.Sprint("pod-", i), CPU: 1})
	}
	got, _ := roundTrip(t, s)
	if diff := cmp.Diff(s.Load.Nodes, got.Load.Nodes) + cmp.Diff(s.Usage, got.Usage); diff != "" {
		t.Error(diff)
	}
}

// TestDamagedSnapshot verifies that a snapshot that is cut off is refused: commands would decide for another cluster.
func TestDamagedSnapshot(t *testing.T) {
	var file bytes.Buffer
	w, err := NewWriter(&file, NewSnapshot(instant, "", nil, nil).About)
	must.Succeed(t, err)
	must.Succeed(t, w.Flush())
	if _, err := Read(&file); err == nil || !strings.HasPrefix(err.Error(), "incomplete snapshot: the end of the recording: ") {
		t.Errorf("error %v", err)
	}
}

// FuzzReadSnapshot checks that a snapshot of any manifests can be redacted, written and read again.
func FuzzReadSnapshot(f *testing.F) {
	f.Add(`{"kind":"Pod","metadata":{"name":"a","labels":{"a":1}},"spec":{"containers":[{"resources":1}]}}`)
	f.Add("kind: List\nitems:\n- kind: Node\n  metadata: []\n- kind: Placement\n  spec: {predicates: [{}]}\n")
	f.Add(`{"kind":"PodList","items":[{"spec":{"affinity":{"nodeAffinity":[]}}}]}`)
	f.Fuzz(func(t *testing.T, content string) {
		s, _, err := ReadSnapshot(instant, manifest.Files([]string{"-"}, strings.NewReader(content)))
		if err != nil {
			return
		}
		for _, name := range []string{"", "k"} {
			if name != "" {
				if s, err = s.Redact([]byte(name)); err != nil {
					t.Fatal(err)
				}
			}
			var file bytes.Buffer
			must.Succeed(t, s.Write(&file))
			if _, err := Read(&file); err != nil {
				t.Error(err)
			}
		}
	})
}

// TestWindowOfEarlierSnapshots checks that one sample of metrics-server does not count as the configured window, which earlier versions
// wrote, and that other loads keep their window.
func TestWindowOfEarlierSnapshots(t *testing.T) {
	for source, want := range map[string]time.Duration{"KubernetesMetricsServer": time.Minute, "Prometheus": 15 * time.Minute} {
		s, _, err := ReadSnapshot(testStart, manifest.Files([]string{"../../../examples/limits/cluster.yaml"}, nil))
		must.Succeed(t, err)
		s.Load = &load.Reading{Source: source, Time: testStart, Window: 15 * time.Minute, Nodes: map[string]load.Node{"a": {HasCPU: true}}}
		file := filepath.Join(t.TempDir(), "s.ndjson.gz")
		must.Succeed(t, s.WriteFile(file))
		instant, err := OpenAt(file, time.Time{})
		if must.Succeed(t, err); instant.Load.Window != want {
			t.Errorf("%s: the load covers %s, want %s", source, instant.Load.Window, want)
		}
	}
}
