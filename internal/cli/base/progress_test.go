package base

import (
	"bytes"
	"testing"
)

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
