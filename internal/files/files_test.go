package files

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// TestRead reads regular files up to a size, through links, and no others: devices never end, and pipes wait for a writer.
func TestRead(t *testing.T) {
	folder := t.TempDir()
	name, link := filepath.Join(folder, "file"), filepath.Join(folder, "link")
	must.Succeed(t, os.WriteFile(name, []byte("abc"), 0o600))
	must.Succeed(t, os.Symlink(name, link))
	if raw, err := Read(link, 3); err != nil || string(raw) != "abc" {
		t.Errorf("%q, %v", raw, err)
	}
	for name, want := range map[string]string{
		link: "found more than 2 bytes: must have at most that", folder: "not a regular file", "/dev/zero": "not a regular file",
		filepath.Join(folder, "none"): "no such file",
	} {
		if _, err := Read(name, 2); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %s", name, err, want)
		}
	}
}

// TestText expects the text without its byte order mark, whatever its Unicode encoding. Other bytes are as they are.
func TestText(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "a": "a", "\xef\xbb\xbfa": "a", "\xff\xfea\x00\xe4\x00": "aä", "\xfe\xff\x00a": "a", "\x1f\x8b\xff": "\x1f\x8b\xff",
	} {
		if got, err := io.ReadAll(Text(strings.NewReader(text))); string(got) != want || err != nil {
			t.Errorf("%q: %q, %v, want %q", text, got, err, want)
		}
	}
}
