package manifest

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
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

// TestFilesAsWritten checks that files of PowerShell and with extensions in capitals are read, that files in gzip are not, and that a copy
// of an object without a UID is named.
func TestFilesAsWritten(t *testing.T) {
	const second = "---\napiVersion: v1\nkind: Node\nmetadata: {name: node-2}\n"
	folder, utf16 := t.TempDir(), []byte{0xff, 0xfe}
	for _, letter := range node + second {
		utf16 = append(utf16, byte(letter), 0)
	}
	must.Succeed(t, os.WriteFile(filepath.Join(folder, "NODES.YAML"), utf16, 0o600))
	read, err := Read([]string{folder}, nil)
	must.Succeed(t, err)
	if len(read.Nodes) != 2 {
		t.Errorf("%d nodes, want 2", len(read.Nodes))
	}
	file := write(t, "x.yaml", "\x1f\x8b\x08")
	if _, err := Read(
		[]string{file},
		nil,
	); err == nil ||
		err.Error() != file+": found a file in gzip: must have manifests; --recording reads "+
			"snapshots and recordings" {
		t.Errorf("%v of a file in gzip", err)
	}
	file = write(t, "copy.yaml", node+"---\n"+node)
	read, err = Read([]string{file}, nil)
	must.Succeed(t, err)
	if want := file + ", document 2: Node node-1 is ignored: it was read in " + file + ", document 1"; !slices.Contains(
		read.Warnings,
		want,
	) {
		t.Errorf("%q, want %q", read.Warnings, want)
	}
}
