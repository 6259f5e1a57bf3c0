package plimsoll

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/plimsoll-k8s/plimsoll/internal/cli/base"
	"github.com/plimsoll-k8s/plimsoll/internal/simulate/result"
)

// interrupting is an input after which the user wants no more.
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

// What was interrupted is shown and marked, in a table and in JSON; it is an error,
// of exit code 2, and no gate is asked.
func TestInterrupted(t *testing.T) {
	for _, output := range []string{"table", "json"} {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var out bytes.Buffer
		cmd := newCommand()
		cmd.SetIn(interrupting{strings.NewReader("apiVersion: v1\nkind: Node\nmetadata: {name: a}\n"), cancel})
		cmd.SetOut(&out)
		cmd.SetArgs([]string{"compare", "--profile", "default", "--profile", "limits", "-f", "-", "--seeds", "2", "-o", output, "--fail-on", "true"})
		err := cmd.ExecuteContext(ctx)
		if err == nil || !strings.HasPrefix(err.Error(), "interrupted: ") || report(err) != base.ExitUsage {
			t.Errorf("error %v, want that it was interrupted", err)
		}
		if output == "table" {
			if !strings.Contains(out.String(), "default (2 of 2 runs not started)") {
				t.Errorf("not marked:\n%s", out.String())
			}
			continue
		}
		var r result.Result
		if err := json.Unmarshal(out.Bytes(), &r); err != nil || !r.Interrupted || len(r.Scenarios) != 1 {
			t.Errorf("%v in %s", err, out.String())
		}
	}
}
