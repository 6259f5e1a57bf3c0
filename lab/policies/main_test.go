package main

import (
	"bytes"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
)

// TestRun verifies the table over a generated cluster whose pods arrive in bursts: no slack is the cheapest, and pods wait for nodes to boot;
// where a policy of any kind is the best, it costs no more than the best rate.
func TestRun(t *testing.T) {
	file := filepath.Join(t.TempDir(), "bursts.plrec")
	generate := "nodes=4,shapes=16x64,pods=2000,over=216600,life=7200,bursts=60,burst-share=0.5,batch=1"
	if err := recording.RecordSimulated(file, recording.Source{Generate: generate}, "constant:mean=0.5", 1); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := run(t.Context(), []string{file, "shape=16x64,boot=120,cost=1"}, &out); err != nil {
		t.Fatal(err)
	}
	relative := map[string]float64{}
	for _, line := range strings.Split(strings.TrimSpace(out.String()), "\n")[2:] {
		cells := strings.Split(line, " | ")
		if len(cells) == 7 {
			cost, err := strconv.ParseFloat(cells[5], 64)
			if err != nil {
				t.Fatalf("%v in %s", err, line)
			}
			relative[strings.TrimPrefix(cells[0], "| ")+" "+cells[1]] = cost
		}
	}
	if relative["- none"] != 1 || relative["1m0s best rate"] < 1 || relative["1m0s best of all"] < 0.9 || len(relative) < 4 {
		t.Errorf("%s", out.String())
	}
	if err := run(
		t.Context(),
		[]string{file + ",to=50h", "shape=16x64"},
		&out,
	); err == nil ||
		!strings.Contains(err.Error(), "at least 216000") {
		t.Errorf("50 hours: %v", err)
	}
	if err := run(t.Context(), []string{file}, &out); err == nil || !strings.HasPrefix(err.Error(), "usage: ") {
		t.Errorf("one argument: %v", err)
	}
}
