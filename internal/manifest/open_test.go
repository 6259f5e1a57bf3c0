package manifest

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

func TestOpen(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "file")
	must.Succeed(t, os.WriteFile(file, []byte("content"), 0o600))
	read := func(in io.Reader) (string, error) {
		raw, err := io.ReadAll(in)
		return string(raw), err
	}
	fail := func(io.Reader) (string, error) { return "", errors.New("no snapshot") }
	for name, tc := range map[string]struct {
		file          string
		read          func(io.Reader) (string, error)
		content, want string
	}{
		"file":    {file, read, "content", ""},
		"invalid": {file, fail, "", file + ": no snapshot"},
		"folder":  {folder, read, "", folder + ": not a regular file"},
		"missing": {file + "2", read, "", "open " + file + "2: no such file or directory"},
	} {
		t.Run(name, func(t *testing.T) {
			content, err := Open(tc.file, tc.read)
			got := ""
			if err != nil {
				got = err.Error()
			}
			if content != tc.content || got != tc.want {
				t.Errorf("content %q, error %q, want %q", content, got, tc.want)
			}
		})
	}
}
