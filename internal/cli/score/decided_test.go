package score

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-k8s/plimsoll/internal/cli/base"
	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/decisions"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// TestPrintDecided expects the totals in the table, and the plugins with equal scores in one line below it.
func TestPrintDecided(t *testing.T) {
	node := func(name string, total, load int64) decisions.ScoredNode {
		return decisions.ScoredNode{Name: name, Total: total, Scores: []decisions.Score{
			{Plugin: "TaintToleration", Weighted: 300}, {Plugin: "PredictedUtilization", Raw: load, Weighted: 5 * load},
		}}
	}
	next := node("b", 350, 10)
	for want, d := range map[string]decisions.Decision{
		"total 400 350 PredictedUtilization 100 (20) 50 (10) CPU requested": {Scored: 2, Node: node("a", 400, 20), Next: &next},
		"total 400 TaintToleration 300 (0) PredictedUtilization 100 (20) C": {Scored: 1, Node: node("a", 400, 20)},
		"none none the same on both nodes: TaintToleration":                 {Scored: 2, Node: node("a", 400, 20), Next: &next},
	} {
		var out bytes.Buffer
		printDecided(&out, &base.Output{}, &d)
		if got := strings.Join(strings.Fields(out.String()), " "); !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
}

// FuzzDecided explains decisions of any text, as another scheduler may serve them: the output has no control characters.
func FuzzDecided(f *testing.F) {
	for _, item := range []string{
		`{"namespace": "ns", "pod": "web", "scored": 2, "node": {"name": "a", "total": 7, "scores": [{"plugin": "P"}], "load": {}}, "next": {}}`,
		`{"namespace": "ns", "pod": "web", "node": {"name": "\u001b[2J", "pods": -1, "cpuRequested": -9223372036854775808}}`, `null`, `{`,
	} {
		f.Add(`{"plimsoll-decisions": {"items": [` + item + `]}}`)
	}
	f.Fuzz(func(t *testing.T, page string) {
		path := filepath.Join(t.TempDir(), "configz")
		must.Succeed(t, os.WriteFile(path, []byte(page), 0o600))
		var out bytes.Buffer
		cmd := &cobra.Command{}
		cmd.SetOut(&out)
		o := &explainOptions{decided: decidedOptions{from: path}}
		_ = o.explainDecided(cmd, types.NamespacedName{Namespace: "ns", Name: "web"})
		if bytes.ContainsAny(out.Bytes(), "\x1b\x00\r") {
			t.Errorf("control characters in %q", out.String())
		}
	})
}
