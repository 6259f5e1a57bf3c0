package whatif

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

func TestParseShard(t *testing.T) {
	t.Setenv(indexVariable, "3")
	for text, want := range map[string]result.Shard{"": {}, "0/1": {Index: 0, Count: 1}, "2/8": {Index: 2, Count: 8}, "4": {Index: 3, Count: 4}} {
		if got, err := parseShard(text); err != nil || got != want {
			t.Errorf("%q: %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"8/8", "-1/8", "1/", "/8", "a/b", "1/2/3", "0/0"} {
		if _, err := parseShard(text); err == nil ||
			!strings.Contains(err.Error(), "must be I/N with I from 0 to N-1, or N with I in $JOB_COMPLETION_INDEX") {
			t.Errorf("%q: %v", text, err)
		}
	}
	const want = `--shard: invalid value "3/3": must be I/N with I from 0 to N-1, or N with I in $JOB_COMPLETION_INDEX`
	if _, err := parseShard("3"); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	t.Setenv(indexVariable, "")
	if _, err := parseShard("4"); err == nil {
		t.Error("an index without a Job")
	}
}

func TestReadResult(t *testing.T) {
	file := filepath.Join(t.TempDir(), "log")
	for content, want := range map[string]string{
		"warning: {\n{\"kind\": \"WhatIf\", \"apiVersion\": \"whatif.plimsoll.dev/v1\"}\nlater": "",
		"":                   "found no result: must be the output of plimsoll compare --shard with -o json",
		"{\"kind\": \"What":  "is cut off: run this shard again",
		"{\"seeds\": \"a\"}": "found no result",
		`{"kind": "WhatIf", "apiVersion": "whatif.plimsoll.dev/v1", "seeds": "a"}`: "found the result of another version",
		`{"kind": "WhatIf", "apiVersion": "whatif.plimsoll.dev/v2"}`:               `found kind "WhatIf" of apiVersion "whatif.plimsoll.dev/v2": must be`,
		`{"kind": "Recommendation", "apiVersion": "v1", "source": "a"}`:            `found kind "Recommendation" of apiVersion "v1": must be the output`,
		"{kind: list": "found no result: must be the output",
	} {
		must.Succeed(t, os.WriteFile(file, []byte(content), 0o600))
		r, err := readResult(file)
		if want == "" && (err != nil || r.Kind != "WhatIf") || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v, want %s", content, err, want)
		}
	}
}
