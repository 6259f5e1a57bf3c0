package main

import (
	"bytes"
	"debug/buildinfo"
	"os"
	"path/filepath"
	"strings"
	"testing"

	spdxjson "github.com/spdx/tools-golang/json"
)

// The bill of this very test program has all that it was built from, and is the
// same each time.
func TestBill(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var first, second bytes.Buffer
	for _, out := range []*bytes.Buffer{&first, &second} {
		if err := run(program, "v1.2.3", "2026-11-21", out); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("two bills of one program differ")
	}
	document, err := spdxjson.Read(&first)
	if err != nil {
		t.Fatal(err)
	}
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, p := range document.Packages {
		got[p.PackageName] = p.PackageVersion
	}
	want := map[string]string{filepath.Base(program): "v1.2.3", "stdlib": info.GoVersion}
	for _, module := range info.Deps {
		want[module.Path] = module.Version
	}
	if len(info.Deps) == 0 || len(got) != len(want) {
		t.Errorf("found %d packages, want %d", len(got), len(want))
	}
	for name, version := range want {
		if got[name] != version {
			t.Errorf("%s: found %q, want %q", name, got[name], version)
		}
	}
	if document.CreationInfo.Created != "2026-11-21T00:00:00Z" || len(document.Relationships) != len(want) {
		t.Errorf("made %s, %d relationships", document.CreationInfo.Created, len(document.Relationships))
	}
}

// What makes no sense is said by the name of the argument.
func TestBadArguments(t *testing.T) {
	for want, args := range map[string][3]string{
		`DATE: invalid value "yesterday": must be a day`: {"main.go", "v1", "yesterday"},
		"PROGRAM: ": {"main.go", "v1", "2026-11-21"},
		"PROGRAM: could not read Go build info: open /nonexistent/this": {"/nonexistent/this", "v1", "2026-11-21"},
	} {
		if err := run(args[0], args[1], args[2], &bytes.Buffer{}); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("found %v, want %s", err, want)
		}
	}
}
