package snapshot

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"
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
// rejected, with the bound, before they take the memory.
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
		if got := CountObjects([]byte(text)); got != want {
			t.Errorf("%s: %d, want %d", text, got, want)
		}
	}
}

// TestDecodedMemory checks that decoded objects take at most 1 KiB for each JSON object, so that limits.structs
// bounds the memory of a snapshot. It decodes the largest objects, and lists of the largest empty structs.
func TestDecodedMemory(t *testing.T) {
	const maxPerObject = 1 << 10
	// object returns an object with a spec, and its name, in three JSON objects or more.
	object := func(version, kind, spec string) string {
		return fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"name":"n%%d","namespace":"x"},"spec":%s}`, version, kind, spec)
	}
	empty := func(n int) string { return strings.Repeat("{},", n-1) + "{}" }
	template := func(spec string) string { return `{"selector":{},"template":{"spec":` + spec + `}}` }
	for name, tc := range map[string]struct {
		resource, item string
	}{
		"pods":                 {"pods", object("v1", "Pod", `{}`)},
		"containers":           {"pods", object("v1", "Pod", `{"containers":[`+empty(5000)+`]}`)},
		"one container each":   {"pods", object("v1", "Pod", `{"containers":[{}]}`)},
		"ephemeral containers": {"pods", object("v1", "Pod", `{"ephemeralContainers":[`+empty(5000)+`]}`)},
		"volumes":              {"pods", object("v1", "Pod", `{"volumes":[`+empty(5000)+`]}`)},
		"claim templates": {
			"statefulsets", object("apps/v1", "StatefulSet", `{"selector":{},"template":{},"volumeClaimTemplates":[`+empty(2000)+`]}`),
		},
		"anti-affinity": {
			"pods", object("v1", "Pod",
				`{"affinity":{"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[`+empty(5000)+`]}}}`),
		},
		"tolerations": {"pods", object("v1", "Pod", `{"tolerations":[`+empty(5000)+`]}`)},
		"nodes":       {"nodes", object("v1", "Node", `{}`)},
		"taints":      {"nodes", object("v1", "Node", `{"taints":[`+empty(5000)+`]}`)},
		"deployments": {"deployments", object("apps/v1", "Deployment", `{"selector":{},"template":{}}`)},
		"jobs":        {"jobs", object("batch/v1", "Job", `{"template":{}}`)},
		"templates":   {"replicasets", object("apps/v1", "ReplicaSet", template(`{"containers":[`+empty(5000)+`]}`))},
		"services":    {"services", object("v1", "Service", `{}`)},
		"volume":      {"persistentvolumes", object("v1", "PersistentVolume", `{}`)},
		"claims":      {"persistentvolumeclaims", object("v1", "PersistentVolumeClaim", `{}`)},
	} {
		t.Run(name, func(t *testing.T) {
			kind := kindOfFile("cluster/" + tc.resource + ".json")
			list, count := List{Kind: kind}, int64(0)
			for count < 20_000 {
				item := []byte(fmt.Sprintf(tc.item, len(list.Items)))
				list.Items, count = append(list.Items, item), count+CountObjects(item)
			}
			one := List{Kind: kindOfFile("cluster/nodes.json"), Items: []json.RawMessage{[]byte(object("v1", "Node", `{}`))}}
			s := New(time.Unix(1_800_000_000, 0), "", []List{one, list}, nil)
			live := func() int64 {
				var m runtime.MemStats
				runtime.GC()
				runtime.ReadMemStats(&m)
				return int64(m.HeapAlloc)
			}
			before := live()
			objects, err := s.Cluster()
			if err != nil {
				t.Fatal(err)
			}
			each := (live() - before) / count
			runtime.KeepAlive(objects)
			runtime.KeepAlive(s)
			t.Logf("%d bytes for each of %d JSON objects in %d objects", each, count, len(list.Items))
			if each > maxPerObject {
				t.Errorf("%d bytes for each JSON object, want at most %d", each, maxPerObject)
			}
		})
	}
}
