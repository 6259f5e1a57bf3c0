package base

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

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
