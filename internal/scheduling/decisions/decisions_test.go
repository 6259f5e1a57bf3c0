package decisions

import (
	"encoding/json"
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"

	"github.com/plimsoll-k8s/plimsoll/test/support/schedtest"
)

func pod(i int) *v1.Pod {
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint("p", i), UID: types.UID(fmt.Sprint(i))}}
}

// scores returns the scores of nodes n0, n1 and so on: their totals, each by one plugin with half as raw score.
func scores(totals ...int64) []fwk.NodePluginScores {
	var out []fwk.NodePluginScores
	for i, total := range totals {
		out = append(out, fwk.NodePluginScores{
			Name: fmt.Sprint("n", i), TotalScore: total,
			RawScores: []fwk.PluginScore{{Name: "P", Score: total / 2}}, Scores: []fwk.PluginScore{{Name: "P", Score: total}},
		})
	}
	return out
}

// nodes lists a node n0 with 4 CPUs.
func nodes() fwk.NodeInfoLister {
	return cache.NewSnapshot(nil, []*v1.Node{schedtest.Node("n0", "cpu", "4", "memory", "8Gi")}).NodeInfos()
}

// TestRecorder keeps the last three of five decisions, the newest first.
func TestRecorder(t *testing.T) {
	r := New(3, func(node string) *Load {
		if node == "n0" {
			return &Load{CPU: 0.5}
		}
		return nil
	})
	for i := range 5 {
		r.setScored(types.UID(fmt.Sprint(i)), scores(10, 30, 20))
		r.add(pod(i), "n0", nodes())
	}
	list := r.List()
	var names string
	for _, d := range list.Items {
		names += d.Pod + " "
	}
	d := list.Items[0]
	if names != "p4 p3 p2 " || d.Node.Total != 10 || d.Scored != 3 || d.Next.Name != "n1" || d.Next.Total != 30 ||
		d.Node.Scores[0] != (Score{"P", 5, 10}) ||
		d.Node.CPUAllocatable != 4000 ||
		d.Node.Load.CPU != 0.5 ||
		d.Next.Load != nil {
		t.Errorf("%s, %+v", names, d)
	}
	raw, err := json.Marshal(map[string]any{"x": r})
	if err != nil || len(raw) < 100 {
		t.Errorf("%s, %v", raw, err)
	}
}

// TestUnscored records a pod whose nodes were not scored, after another pod whose nodes were.
func TestUnscored(t *testing.T) {
	r := New(3, func(string) *Load { return nil })
	r.setScored("1", scores(10, 30))
	r.add(pod(2), "n0", nodes())
	if d := r.List().Items[0]; d.Scored != 0 || d.Next != nil || d.Node.Scores != nil || d.Node.Name != "n0" {
		t.Errorf("%+v", d)
	}
}

// BenchmarkAdd records a decision over 500 scored nodes.
func BenchmarkAdd(b *testing.B) {
	r, all, p, lister := New(DefaultKept, func(string) *Load { return nil }), scores(make([]int64, 500)...), pod(1), nodes()
	for b.Loop() {
		r.setScored("1", all)
		r.add(p, "n0", lister)
	}
}
