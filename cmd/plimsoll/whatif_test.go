package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"

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
		if err == nil || !strings.HasPrefix(err.Error(), "interrupted: ") || report(err) != exitUsage {
			t.Errorf("error %v, want that it was interrupted", err)
		}
		if output == "table" {
			if !strings.Contains(out.String(), "default (2 of 2 runs not begun)") {
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

func TestNumbers(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 3: "+3", -3: "-3", 0.125: "+0.12", -0.0004: "0", 0.0123: "+0.012", -1234.5: "-1234", 99.999: "+100.00"} {
		if got := signed(v); got != want {
			t.Errorf("%v is shown as %s, want %s", v, got, want)
		}
	}
}

// How far a run is counts once, and a bar is only for those who look.
func TestProgressWithoutTerminal(t *testing.T) {
	var out bytes.Buffer
	p := newProgress(&out, 2)
	p.show(0, 1, 2)
	p.show(0, 2, 2)
	p.end()
	if out.Len() != 0 || p.done[0] != 1000 || p.done[1] != 0 {
		t.Errorf("%v, %q", p.done, out.String())
	}
}
