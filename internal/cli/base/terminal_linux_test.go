package base

import (
	"bytes"
	"fmt"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// openTerminal returns both ends of a pseudo-terminal with a number of columns. The other end returns what is written.
func openTerminal(t *testing.T, columns uint16) (terminal, other *os.File) {
	t.Helper()
	other, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { other.Close() })
	fd := int(other.Fd())
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Col: columns, Row: 24}); err != nil {
		t.Fatal(err)
	}
	terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { terminal.Close() })
	return terminal, other
}

// TestTerminal checks the width and color of a real pseudo-terminal, with and without $COLUMNS, $NO_COLOR and $TERM.
func TestTerminal(t *testing.T) {
	tests := map[string]struct {
		columns uint16
		env     map[string]string
		want    terminal
	}{
		"measured":       {100, nil, terminal{100, true}},
		"unknown width":  {0, nil, terminal{80, true}},
		"COLUMNS":        {100, map[string]string{"COLUMNS": "120"}, terminal{120, true}},
		"bad COLUMNS":    {100, map[string]string{"COLUMNS": "wide"}, terminal{100, true}},
		"narrow":         {5, nil, terminal{minWidth, true}},
		"NO_COLOR":       {100, map[string]string{"NO_COLOR": "1"}, terminal{100, false}},
		"empty NO_COLOR": {100, map[string]string{"NO_COLOR": ""}, terminal{100, true}},
		"dumb":           {100, map[string]string{"TERM": "dumb"}, terminal{100, false}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			for _, variable := range []string{"COLUMNS", "NO_COLOR", "TERM"} {
				t.Setenv(variable, tc.env[variable])
			}
			file, _ := openTerminal(t, tc.columns)
			if got := terminalOf(Fitted(Escaped(file))); got != tc.want {
				t.Errorf("%+v, want %+v", got, tc.want)
			}
			if got := terminalOf(&screen{out: file}); got != tc.want {
				t.Errorf("screen: %+v, want %+v", got, tc.want)
			}
			if got := terminalOf(Escaped(NewStdout(file))); got != tc.want || !isTerminal(NewStdout(file)) {
				t.Errorf("standard output: %+v, want %+v", got, tc.want)
			}
		})
	}
	t.Setenv("COLUMNS", "")
	if got := terminalOf(&bytes.Buffer{}); got != (terminal{}) {
		t.Errorf("%+v for output that is no terminal", got)
	}
}

// TestColors checks that a terminal gets colors, and that text cannot contain its own.
func TestColors(t *testing.T) {
	for _, variable := range []string{"COLUMNS", "NO_COLOR", "TERM"} {
		t.Setenv(variable, "")
	}
	file, other := openTerminal(t, 40)
	tab := NewTable(Fitted(file), "name", "state")
	tab.AppendRow([]any{"a\x1b[31m", Colored{"bad", Bad}})
	tab.Render()
	PrintLine(file, "  ", Colored{"PROBLEM", Bad}, " text\x1b[32m")
	if err := other.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Log(err) // the terminal cannot be polled: the read below still ends when the text is there
	}
	var out bytes.Buffer
	buffer := make([]byte, 4096)
	for !bytes.Contains(out.Bytes(), []byte("text")) {
		n, err := other.Read(buffer)
		if err != nil {
			t.Fatal(err)
		}
		out.Write(buffer[:n])
	}
	for _, want := range []string{"\x1b[31;1mbad\x1b[0m", "\x1b[31;1mPROBLEM\x1b[0m text", `a\u001b[31m`} {
		if !bytes.Contains(out.Bytes(), []byte(want)) {
			t.Errorf("%q is missing in %q", want, out.String())
		}
	}
	if bytes.Contains(out.Bytes(), []byte("\x1b[32m")) {
		t.Errorf("text has its own color in %q", out.String())
	}
}

// TestRunProgressAtOnce checks that the bar is shown before the first run reports.
func TestRunProgressAtOnce(t *testing.T) {
	terminal, other := openTerminal(t, 80)
	p := NewRunProgress(terminal, 10)
	defer p.End()
	if err := other.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	var shown []byte
	for buffer := make([]byte, 256); !bytes.Contains(shown, []byte("running")); {
		n, err := other.Read(buffer)
		if err != nil {
			t.Fatalf("the terminal shows %q, %v", shown, err)
		}
		shown = append(shown, buffer[:n]...)
	}
}
