package base

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// openTerminal returns both ends of a pseudo-terminal with a number of columns. Text that is written to the terminal can be read from
// other.
func openTerminal(t *testing.T, columns uint16) (terminal, other *os.File) {
	t.Helper()
	other, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	must.Succeed(t, err)
	t.Cleanup(func() { other.Close() })
	fd := int(other.Fd())
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	must.Succeed(t, err)
	must.Succeed(t, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0))
	must.Succeed(t, unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Col: columns, Row: 24}))
	terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	must.Succeed(t, err)
	t.Cleanup(func() { terminal.Close() })
	return terminal, other
}

// TestWidth checks the width of a real pseudo-terminal, with and without $COLUMNS.
func TestWidth(t *testing.T) {
	for name, tc := range map[string]struct {
		columns  uint16
		variable string
		want     int
	}{
		"measured": {100, "", 100}, "unknown width": {0, "", 80}, "COLUMNS": {100, "120", 120}, "bad COLUMNS": {100, "wide", 100},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("COLUMNS", tc.variable)
			file, _ := openTerminal(t, tc.columns)
			if got := widthOf(Escaped(file)); got != tc.want {
				t.Errorf("%d, want %d", got, tc.want)
			}
			if got := widthOf(NewStdout(file)); got != tc.want || !isTerminal(NewStdout(file)) {
				t.Errorf("standard output: %d, want %d", got, tc.want)
			}
		})
	}
	t.Setenv("COLUMNS", "")
	if got := widthOf(&bytes.Buffer{}); got != DefaultWidth {
		t.Errorf("%d for output that is no terminal", got)
	}
}

// TestPrintOnTerminal checks that lines outside of tables are wrapped on a terminal, but not those with a command.
func TestPrintOnTerminal(t *testing.T) {
	terminal, other := openTerminal(t, 20)
	t.Setenv("COLUMNS", "")
	must.Succeed(t, (&Output{Format: FormatTable}).Print(terminal, nil, func(out io.Writer) {
		table := NewTable("a")
		table.AddRow("a cell that is never wrapped")
		table.Print(out, &Output{})
		fmt.Fprintln(out, "  a sentence of several words")
		fmt.Fprintln(out, "remedy: kubectl get nodes -o wide")
	}))
	must.Succeed(t, other.SetReadDeadline(time.Now().Add(time.Minute)))
	const want = "A\r\na cell that is never wrapped\r\n  a sentence of\r\n  several words\r\nremedy: kubectl get nodes -o wide\r\n"
	got := make([]byte, len(want))
	if _, err := io.ReadFull(other, got); string(got) != want {
		t.Errorf("%v, got\n%q, want\n%q", err, got, want)
	}
}

// TestReportOnTerminal checks that an error that is wider than the terminal is wrapped, with its last part on a line of its own.
func TestReportOnTerminal(t *testing.T) {
	t.Setenv("COLUMNS", "")
	for message, want := range map[string]string{
		"--write: none":                      "plimsoll: --write: none\r\n",
		"the folder out does not exist here": "plimsoll: the folder out does\r\nnot exist here\r\n",
		"--write: the folder out does not exist: create it first, please": "plimsoll: --write: the folder\r\nout does not exist:\r\n" +
			"  create it first, please\r\n",
	} {
		terminal, other := openTerminal(t, 30)
		report(terminal, "plimsoll", errors.New(message))
		must.Succeed(t, other.SetReadDeadline(time.Now().Add(time.Minute)))
		got := make([]byte, len(want))
		if _, err := io.ReadFull(other, got); string(got) != want {
			t.Errorf("%v, got\n%q, want\n%q", err, got, want)
		}
	}
}

// TestRunProgressAtOnce checks that the bar is shown before the first run reports.
func TestRunProgressAtOnce(t *testing.T) {
	terminal, other := openTerminal(t, 80)
	p := NewRunProgress(terminal, 10)
	defer p.End()
	must.Succeed(t, other.SetReadDeadline(time.Now().Add(time.Minute)))
	var shown []byte
	for buffer := make([]byte, 256); !bytes.Contains(shown, []byte("running")); {
		n, err := other.Read(buffer)
		if err != nil {
			t.Fatalf("the terminal shows %q, %v", shown, err)
		}
		shown = append(shown, buffer[:n]...)
	}
}
