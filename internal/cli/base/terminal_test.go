package base

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// TestWatch checks that a result is shown once without --watch, and otherwise in intervals until the context ends,
// with errors as warnings.
func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failed := errors.New("failed")
		calls := 0
		show := func(_ context.Context, out io.Writer) error {
			calls++
			fmt.Fprintln(out, calls)
			return failed
		}
		var out bytes.Buffer
		once := Watch{Interval: time.Second}
		if err := once.Run(t.Context(), &out, nil, show); !errors.Is(err, failed) || out.String() != "1\n" {
			t.Errorf("once: %v, %q", err, out.String())
		}
		ctx, cancel := context.WithTimeout(t.Context(), 25*time.Second)
		defer cancel()
		var warnings []string
		repeated := Watch{Enabled: true, Interval: 10 * time.Second}
		out.Reset()
		if err := repeated.Run(ctx, &out, func(text string) { warnings = append(warnings, text) }, show); err != nil {
			t.Error(err)
		}
		// At 0, 10 and 20 seconds.
		if out.String() != "2\n3\n4\n" || len(warnings) != 3 || warnings[0] != "failed" {
			t.Errorf("%q, %v", out.String(), warnings)
		}
	})
}

// Repeated updates of a run count once, and nothing is printed without a terminal.
func TestRunProgressWithoutTerminal(t *testing.T) {
	var out bytes.Buffer
	p := NewRunProgress(&out, 2)
	p.Show(0, 1, 2)
	p.Show(0, 2, 2)
	p.End()
	if out.Len() != 0 || p.permille[0] != 1000 || p.permille[1] != 0 {
		t.Errorf("%v, %q", p.permille, out.String())
	}
}

// TestStdout checks that standard output passes on text, and keeps the first error of functions that return none, such as
// Table.Print.
func TestStdout(t *testing.T) {
	for name, print := range map[string]func(*Stdout){
		"text": func(out *Stdout) { fmt.Fprintln(Escaped(Escaped(out)), "node-1") },
		"table": func(out *Stdout) {
			table := NewTable("node")
			table.AddRow("node-1")
			table.Print(Escaped(out), &Output{})
		},
	} {
		path := filepath.Join(t.TempDir(), "out")
		file, err := os.Create(path)
		must.Succeed(t, err)
		out := NewStdout(file)
		print(out)
		if text, err := os.ReadFile(path); err != nil || out.Err() != nil || !strings.Contains(string(text), "node-1") {
			t.Errorf("%s: wrote %q, errors %v and %v", name, text, err, out.Err())
		}
		must.Succeed(t, file.Close())
		print(out)
		if out.Err() == nil || !strings.Contains(out.Err().Error(), "file already closed") {
			t.Errorf("%s: error %v of a closed file", name, out.Err())
		}
	}
}
