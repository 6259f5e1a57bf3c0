package oncluster

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/plimsoll-k8s/plimsoll/internal/simulate/job"
	"github.com/plimsoll-k8s/plimsoll/internal/simulate/result"
	"github.com/plimsoll-k8s/plimsoll/internal/simulate/source"
)

// TestDivide verifies that every job belongs to one index, and that indexes differ by at most one job.
func TestDivide(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		jobs := rapid.IntRange(1, 500).Draw(t, "jobs")
		indexes := rapid.IntRange(1, jobs).Draw(t, "indexes")
		s := sweep{Jobs: make([]job.Job, jobs), Starts: divide(jobs, indexes)}
		next, least, most := 0, jobs, 0
		for index := range indexes {
			from, to, err := s.of(index)
			if err != nil || from != next {
				t.Fatalf("index %d starts at %d: %v", index, from, err)
			}
			next, least, most = to, min(least, to-from), max(most, to-from)
		}
		if _, _, err := s.of(indexes); next != jobs || least < 1 || most-least > 1 || err == nil {
			t.Fatalf("%d of %d jobs, from %d to %d", next, jobs, least, most)
		}
	})
}

// TestBundle verifies that jobs can be run elsewhere: their files have the same content, a file that several jobs read is packed once,
// and directories keep their structure.
func TestBundle(t *testing.T) {
	dir := t.TempDir()
	manifests := filepath.Join(dir, "manifests")
	for name, content := range map[string]string{
		"s.tar.gz": "snapshot", "manifests/a.yaml": "a", "manifests/more/b.yaml": "b", "nodes.csv": "n", "pods.csv": "p",
	} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	jobs := []job.Job{
		{Source: source.Spec{Snapshot: filepath.Join(dir, "s.tar.gz"), Reschedule: true}, Seed: 1},
		{Source: source.Spec{Snapshot: filepath.Join(dir, "s.tar.gz")}, Seed: 2},
		{Source: source.Spec{Files: []string{manifests, "-"}, Stdin: []byte("in")}},
		{Source: source.Spec{Trace: "openb:" + filepath.Join(dir, "nodes.csv") + "," + filepath.Join(dir, "pods.csv") + ",fill=0.5"}},
		{Source: source.Spec{Generate: "nodes=1,pods=1"}},
	}
	chunks, err := pack(sweep{Version: "v1", Jobs: jobs, Starts: []int{0, 2, 5}})
	if err != nil {
		t.Fatal(err)
	}
	work := t.TempDir()
	s, err := unpack(bytes.NewReader(slices.Concat(chunks...)), work)
	if err != nil {
		t.Fatal(err)
	}
	content := func(file string) string {
		raw, err := os.ReadFile(file)
		if err != nil || !strings.HasPrefix(file, work) {
			t.Errorf("%s: %v", file, err)
		}
		return string(raw)
	}
	unpacked := s.Jobs[2].Source.Files[0]
	if content(s.Jobs[0].Source.Snapshot) != "snapshot" || s.Jobs[0].Source.Snapshot != s.Jobs[1].Source.Snapshot ||
		content(filepath.Join(unpacked, "a.yaml")) != "a" || content(filepath.Join(unpacked, "more/b.yaml")) != "b" ||
		s.Jobs[2].Source.Files[1] != "-" || string(s.Jobs[2].Source.Stdin) != "in" {
		t.Errorf("%+v", s.Jobs)
	}
	nodes, rest, _ := strings.Cut(strings.TrimPrefix(s.Jobs[3].Source.Trace, "openb:"), ",")
	pods, options, _ := strings.Cut(rest, ",")
	if content(nodes) != "n" || content(pods) != "p" || options != "fill=0.5" {
		t.Errorf("%s", s.Jobs[3].Source.Trace)
	}
	if diff := cmp.Diff(jobs[4], s.Jobs[4]); diff != "" || s.Version != "v1" {
		t.Error(diff)
	}
	if _, err := pack(sweep{Jobs: []job.Job{{Source: source.Spec{Snapshot: filepath.Join(dir, "missing")}}}}); err == nil {
		t.Error("a missing file is packed")
	}
}

// FuzzUnpack verifies that no input writes outside of the directory, and that none panics.
func FuzzUnpack(f *testing.F) {
	chunks, err := pack(sweep{Jobs: []job.Job{{Source: source.Spec{Generate: "nodes=1,pods=1"}}}, Starts: []int{0, 1}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(chunks[0])
	f.Add([]byte("no archive"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		parent := t.TempDir()
		dir := filepath.Join(parent, "work")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		_, _ = unpack(bytes.NewReader(raw), dir)
		if entries, err := os.ReadDir(parent); err != nil || len(entries) != 1 {
			t.Errorf("found %v: %v", entries, err)
		}
	})
}

// TestResults verifies that outcomes survive as they are, that large ones have several parts, and that a missing, damaged or additional part
// is found.
func TestResults(t *testing.T) {
	random := make([]byte, 0, 3*chunkSize)
	for i := 0; len(random) < cap(random); i++ { // does not compress well
		random = append(random, byte('a'+(i*i*7919+i*31)%53%26), byte('a'+(i*104729)%26))
	}
	want := []outcome{{Run: &result.Run{Seed: 1, Seconds: 60, Outcome: result.Outcome{OverloadMinutes: 1.0 / 3}}}, {Error: string(random)}}
	list, err := encode(want, 8)
	if err != nil {
		t.Fatal(err)
	}
	count, err := countParts(list[0], 8)
	if err != nil || count != len(list) {
		t.Errorf("%d parts, want %d: %v", count, len(list), err)
	}
	got, err := decode(list)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v: %s", err, diff)
	}
	damaged := slices.Clone(list)
	damaged[0] = part{list[0].text, map[string][]byte{dataKey: append([]byte("x"), list[0].binary[dataKey][1:]...)}}
	for name, parts := range map[string][]part{"damaged": damaged, "additional": append(slices.Clone(list), list[0]), "empty": {{}}} {
		if _, err := decode(parts); err == nil {
			t.Errorf("%s parts are decoded", name)
		}
	}
	if _, err := countParts(part{}, 8); err == nil {
		t.Error("an empty first part has a number of parts")
	}
	if _, err := encode(want, 0); err == nil || !strings.Contains(err.Error(), "must have at most 0 KiB") {
		t.Errorf("error %v", err)
	}
}

func TestParseIndexes(t *testing.T) {
	for text, want := range map[string][]int{
		"": nil, "3": {3}, "0,2-4,7": {0, 2, 3, 4, 7}, "x,1,-2,4-3": {1}, "0-100000000": nil,
	} {
		if got := parseIndexes(text); !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

// FuzzParseIndexes verifies that the number of indexes is bounded.
func FuzzParseIndexes(f *testing.F) {
	f.Add("0,2-4,7")
	f.Add("0-3999,0-3999,0-3999")
	f.Fuzz(func(t *testing.T, text string) {
		if n := len(parseIndexes(text)); n > maxIndexes {
			t.Errorf("%d indexes", n)
		}
	})
}

// TestPodInput verifies the errors of a pod whose input is missing, damaged, of another version or has no such index.
func TestPodInput(t *testing.T) {
	chunks, err := pack(sweep{Version: "v1", Jobs: make([]job.Job, 2), Starts: []int{0, 1, 2}})
	if err != nil {
		t.Fatal(err)
	}
	for want, tc := range map[string]struct {
		input   []byte
		version string
		index   int
	}{
		"found no part of the input":          {nil, "v1", 0},
		"the input is not a bundle":           {[]byte("text"), "v1", 0},
		"--image: has version v2: must have ": {chunks[0], "v2", 0},
		"index 2: invalid value":              {chunks[0], "v1", 2},
	} {
		p := Pod{Input: t.TempDir(), Work: t.TempDir(), Version: tc.version, Index: tc.index}
		if tc.input != nil {
			if err := os.WriteFile(filepath.Join(p.Input, chunkFile(0)), tc.input, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := p.Run(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}
