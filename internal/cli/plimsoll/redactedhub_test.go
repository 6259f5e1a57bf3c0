package plimsoll

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"github.com/plimsoll-k8s/plimsoll/internal/cli/base"
	"github.com/plimsoll-k8s/plimsoll/internal/fleet"
	"github.com/plimsoll-k8s/plimsoll/internal/manifest"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// The example placements have the same decisions and scores in both API versions. They select the same clusters from a snapshot of the
// hub, and the clusters with their pseudonyms from a redacted snapshot.
func TestPlacementsOverSnapshots(t *testing.T) {
	examples, err := filepath.Glob("../../../examples/placement/[1-6]-*")
	if err != nil || len(examples) == 0 {
		t.Fatal(examples, err)
	}
	for _, example := range examples {
		t.Run(filepath.Base(example), func(t *testing.T) {
			files := []string{example, "../../../examples/placement/fleet.yaml"}
			now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
			plain, _, err := recording.ReadSnapshot(now, manifest.Files(files, nil))
			must.Succeed(t, err)
			redacted, err := plain.Redact([]byte("key"))
			must.Succeed(t, err)
			args := []string{"--now", now.Format(time.RFC3339), "-f", files[1]}
			decided := decide(t, append(args, "-f", files[0])...)
			older := decide(t, append(args, "-f", filepath.Join(filepath.Dir(example), "v1alpha1", filepath.Base(example)+".yaml"))...)
			if diff := cmp.Diff(string(older), string(decided)); diff != "" {
				t.Errorf("-v1alpha1 +v1beta1\n%s", diff)
			}
			want := selected(t, decided)
			for name, s := range map[string]*recording.Recording{"plain": plain, "redacted": redacted} {
				path := filepath.Join(t.TempDir(), name)
				must.Succeed(t, (base.NewFile{Path: path, Mode: 0o600}).Write(s.Write))
				if got := selected(t, decide(t, "--recording", path)); !slices.Equal(got, want) {
					t.Errorf("%s: selected %q, want %q", name, got, want)
				}
			}
		})
	}
}

// decide returns the output of plimsoll placement decide in JSON.
func decide(t *testing.T, args ...string) []byte {
	t.Helper()
	return output(t, append([]string{"placement", "decide", "-o", "json"}, args...)...)
}

// selected returns the clusters that placements select in an output of plimsoll placement decide, by their indexes in the sorted names of
// all clusters.
func selected(t *testing.T, decided []byte) (out []string) {
	t.Helper()
	for _, placement := range ranked(t, decided) {
		clusters, _, _ := strings.Cut(placement, ":")
		out = append(out, clusters)
	}
	slices.Sort(out)
	return out
}

// ranked returns for each placement in an output of plimsoll placement decide the selected clusters, and then, if not the spec is
// misconfigured, the replicas, the total and the scores of all clusters. Clusters are indexes in the sorted names of all clusters.
func ranked(t *testing.T, decided []byte) (out []string) {
	t.Helper()
	var result struct {
		Placements []struct {
			Decisions  []string
			Clusters   []fleet.ClusterRanking
			Conditions []struct{ Reason string }
		}
	}
	if err := json.Unmarshal(decided, &result); err != nil {
		t.Fatalf("%v in %s", err, decided)
	}
	var names []string
	for _, placement := range result.Placements {
		for _, cluster := range placement.Clusters {
			names = append(names, cluster.Name)
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	for _, placement := range result.Placements {
		indexes := []int{}
		for _, name := range placement.Decisions {
			indexes = append(indexes, slices.Index(names, name))
		}
		text := fmt.Sprint(indexes, ": ", placement.Conditions[0].Reason)
		for _, c := range placement.Clusters {
			index, replicas := slices.Index(names, c.Name), ptr.Deref(c.Replicas, -1)
			text += fmt.Sprintf("; %d: %t %d of %d %v", index, c.Feasible, replicas, c.Total, c.Scores)
		}
		out = append(out, text)
	}
	slices.Sort(out)
	return out
}
