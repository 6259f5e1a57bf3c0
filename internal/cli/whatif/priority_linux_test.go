package whatif

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// priorityVariable makes the test binary print the nice values of its threads with a low priority.
const priorityVariable = "PLIMSOLL_LOW_PRIORITY"

// TestLowPriority expects that all threads of a process yield, and not those of its parent.
func TestLowPriority(t *testing.T) {
	if os.Getenv(priorityVariable) != "" {
		must.Succeed(t, lowerPriority())
		t.Log("nice", niceValues(t))
		return
	}
	before := niceValues(t)
	command := exec.CommandContext(t.Context(), os.Args[0], "-test.run=TestLowPriority$", "-test.v")
	command.Env = append(os.Environ(), priorityVariable+"=1")
	out, err := command.CombinedOutput()
	_, values, _ := strings.Cut(string(out), "nice ")
	values, _, _ = strings.Cut(values, "\n")
	if err != nil || strings.Trim(values, "19 ") != "" || !strings.Contains(values, "19 19") {
		t.Errorf("nice values %q, want 19 of several threads: %v\n%s", values, err, out)
	}
	if after := niceValues(t); strings.Contains(after, "19 ") && !strings.Contains(before, "19 ") {
		t.Errorf("nice values of the parent: %s, before %s", after, before)
	}
}

// niceValues returns the nice values of the threads of this process.
func niceValues(t *testing.T) string {
	t.Helper()
	files, err := filepath.Glob("/proc/self/task/*/stat")
	must.Succeed(t, err)
	var b strings.Builder
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			continue // the thread has ended
		}
		_, fields, _ := strings.Cut(string(raw), ") ") // after the name of the program
		b.WriteString(strings.Fields(fields)[16] + " ")
	}
	return b.String()
}
