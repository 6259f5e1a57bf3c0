package snapshot

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"io"
	"runtime"
	"strings"
	"testing"
)

// repeated is text between a start and an end.
type repeated struct {
	start, text string
	count       int
	end         string
}

// bomb returns a small archive with a large file of pods.
func bomb(t *testing.T, content repeated) []byte {
	t.Helper()
	var out bytes.Buffer
	zipped, err := gzip.NewWriterLevel(&out, gzip.BestSpeed)
	if err != nil {
		t.Fatal(err)
	}
	archive := tar.NewWriter(zipped)
	size := len(content.start) + len(content.text)*content.count + len(content.end)
	if err := archive.WriteHeader(&tar.Header{Name: "cluster/pods.json", Typeflag: tar.TypeReg, Size: int64(size)}); err != nil {
		t.Fatal(err)
	}
	write := func(text string) {
		if _, err := io.WriteString(archive, text); err != nil {
			t.Fatal(err)
		}
	}
	write(content.start)
	chunk := 1 + (64<<10)/len(content.text)
	for left := content.count; left > 0; left -= chunk {
		write(strings.Repeat(content.text, min(left, chunk)))
	}
	write(content.end)
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zipped.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestReadSmallFilesWithLargeContent checks that small files that unpack or decode to much memory are
// rejected, with the bound, before they take it.
func TestReadSmallFilesWithLargeContent(t *testing.T) {
	const start, end = `{"kind":"List","items":[`, `]}`
	containers := `{"kind":"Pod","spec":{"containers":[` + strings.Repeat("{},", 9999) + `{}]}},`
	for name, tc := range map[string]struct {
		content repeated
		want    string
	}{
		"numbers": {repeated{start, "0,", 50 << 20, "0" + end}, "cluster/pods.json: item 1: found 0: must be an object"},
		"objects": {
			repeated{start, "{},", 30 << 20, "{}" + end},
			"cluster/pods.json: found more than 1000000 items: must have at most 1000000",
		},
		"spaces between items": {repeated{start + "{},", " ", 80 << 20, "{}" + end}, "cluster/pods.json: item 2 exceeds the limit of 3 MiB"},
		"spaces before items":  {repeated{`{"kind":"List","items":`, " ", 80 << 20, "[]}"}, "cluster/pods.json: a value exceeds the limit of 3 MiB"},
		"spaces after the end": {repeated{start + end, " ", 80 << 20, ""}, "cluster/pods.json: a value exceeds the limit of 3 MiB"},
		"one large item":       {repeated{start + `{"a":"`, "x", 80 << 20, `"}` + end}, "cluster/pods.json: item 1 exceeds the limit of 3 MiB"},
		"one deep item":        {repeated{start, `{"a":`, 8 << 20, end}, "exceeded max depth"},
		"large items": {
			repeated{start, `{"a":"` + strings.Repeat("x", 1<<20) + `"},`, 80, "{}" + end},
			"cluster/pods.json: unpacked size exceeds the limit of 250 times the packed size (64 MiB are always permitted)",
		},
		"containers": {repeated{start, containers, 1000, "{}" + end}, "must have at most 1000000 and one for each byte of the file"},
		"another field": {
			repeated{`{"metadata":[`, "0,", 50 << 20, "0]}"}, "cluster/pods.json: a value exceeds the limit of 3 MiB",
		},
	} {
		t.Run(name, func(t *testing.T) {
			archive := bomb(t, tc.content)
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			_, err := Read(bytes.NewReader(archive))
			runtime.ReadMemStats(&after)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %s", err, tc.want)
			}
			if taken := (int64(after.HeapSys) - int64(before.HeapSys)) >> 20; taken > 200 {
				t.Errorf("took %d MiB for a file of %d KiB", taken, len(archive)>>10)
			}
		})
	}
}

func TestCountObjects(t *testing.T) {
	for text, want := range map[string]int64{
		"1": 0, "{}": 1, `{"a":{"b":[{},{}]}}`: 4, `{"{":"{\"{"}`: 1, `["\\",{}]`: 1, `"\\\"{"`: 0, "": 0, `"`: 0,
	} {
		if got := countObjects([]byte(text)); got != want {
			t.Errorf("%s: %d, want %d", text, got, want)
		}
	}
}
