package plimsoll

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/plimsoll-k8s/plimsoll/internal/cli/base"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
)

// interrupting is an input that cancels a context at its end.
type interrupting struct {
	io.Reader
	cancel context.CancelFunc
}

// Read implements io.Reader.
func (i interrupting) Read(p []byte) (int, error) {
	n, err := i.Reader.Read(p)
	if err != nil {
		i.cancel()
	}
	return n, err
}

// Results of interrupted runs are printed and marked, in a table and in JSON. The exit code is 1, and
// the condition of --fail-on is not evaluated.
func TestInterrupted(t *testing.T) {
	for _, output := range []string{"table", "json"} {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var out bytes.Buffer
		cmd := newCommand()
		cmd.SetIn(interrupting{strings.NewReader("apiVersion: v1\nkind: Node\nmetadata: {name: a}\n"), cancel})
		cmd.SetOut(&out)
		cmd.SetArgs([]string{
			"compare", "--profile", "default", "--profile", "limits", "-f", "-", "--seeds", "2", "-o", output,
			"--fail-on", "victims>-1",
		})
		err := cmd.ExecuteContext(ctx)
		if err == nil || !strings.HasPrefix(err.Error(), "interrupted: ") || report(err) != base.ExitFailure {
			t.Errorf("error %v, want interrupted", err)
		}
		if output == "table" {
			for _, want := range []string{"default (2 of 2 runs not started)", "Cannot tell: the runs were interrupted."} {
				if !strings.Contains(out.String(), want) {
					t.Errorf("want %q in\n%s", want, out.String())
				}
			}
			continue
		}
		var r result.Result
		if err := json.Unmarshal(out.Bytes(), &r); err != nil || !r.Interrupted || len(r.Scenario.Profiles) != 2 {
			t.Errorf("%v in %s", err, out.String())
		}
	}
}
