package score

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

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
