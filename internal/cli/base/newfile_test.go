package base

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// TestReplacedFiles checks that --force replaces empty files and files of the kind that is written, and no others.
func TestReplacedFiles(t *testing.T) {
	page, recording, archive := "<!doctype html>\n<html>", "\x1f\x8b\x08\x04\x00", "\x1f\x8b\x08\x08\x00"
	for content, kinds := range map[string][]string{
		"": {HTMLPage, Recording}, page: {HTMLPage}, recording: {Recording}, archive: {}, "token": {}, "<": {}, "\x1f": {},
	} {
		path := filepath.Join(t.TempDir(), "file")
		must.Succeed(t, os.WriteFile(path, []byte(content), 0o600))
		replaced := map[string]bool{}
		for _, kind := range kinds {
			replaced[kind] = true
		}
		for _, kind := range []string{HTMLPage, Recording} {
			err := NewFile{Flag: "--output", Path: path, Kind: kind, Force: true}.Check()
			want := "--output: " + path + " exists and is no " + kind + ": must be another file"
			if replaced[kind] != (err == nil) || err != nil && err.Error() != want {
				t.Errorf("%q, %s: %v, want an error: %v", content, kind, err, !replaced[kind])
			}
		}
	}
}
