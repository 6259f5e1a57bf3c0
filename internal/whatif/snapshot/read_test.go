package snapshot

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/plimsoll-k8s/plimsoll/internal/manifest"
	"github.com/plimsoll-k8s/plimsoll/load"
)

// smallSnapshot returns a snapshot with two nodes, a pod and a missing kind.
func smallSnapshot(t testing.TB) *Snapshot {
	t.Helper()
	pods, nodes := kindOf("", "Pod"), kindOf("", "Node")
	item := func(kind *Kind, name string) json.RawMessage {
		raw, err := kind.Trim(map[string]any{"metadata": map[string]any{"name": name}})
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	s := New(instant, "v1.37.1", []List{
		{Kind: pods, Items: []json.RawMessage{item(pods, "p")}},
		{Kind: nodes, Items: []json.RawMessage{item(nodes, "a"), item(nodes, "b")}},
	}, []Missing{{"resourceslacks.plimsoll.dev", "not served by the API server"}})
	s.SetLoad(
		load.Reading{
			Source: "Prometheus", Time: instant, Nodes: map[string]load.Node{"a": {
				CPU:    load.Utilization{Mean: 0.5, StdDev: 0.25},
				HasCPU: true,
			}},
		},
	)
	return s
}

// archiveOf returns the archive of a snapshot.
func archiveOf(t testing.TB, s *Snapshot) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := s.Write(&out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestRoundTrip(t *testing.T) {
	want := smallSnapshot(t)
	got, err := Read(bytes.NewReader(archiveOf(t, want)))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want.About, got.About); diff != "" {
		t.Errorf("about:\n%s", diff)
	}
	if diff := cmp.Diff(want.Load.Nodes, got.Load.Nodes); diff != "" {
		t.Errorf("load:\n%s", diff)
	}
	if !bytes.Equal(archiveOf(t, want), archiveOf(t, got)) {
		t.Error("the second archive has different bytes")
	}
	objects, err := got.Cluster()
	if err != nil {
		t.Fatal(err)
	}
	if len(objects.Nodes) != 2 || len(objects.Pending) != 1 {
		t.Errorf("%d nodes and %d pods, want 2 and 1", len(objects.Nodes), len(objects.Pending))
	}
}

// TestWriteIsDeterministic checks that the same snapshot gives the same bytes.
func TestWriteIsDeterministic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		generated, reading := cluster(t)
		var first []byte
		for range 3 {
			s, err := FromDocuments(instant, generated.source)
			if err != nil {
				t.Fatal(err)
			}
			s.SetLoad(reading)
			var out bytes.Buffer
			if err := s.Write(&out); err != nil {
				t.Fatal(err)
			}
			if first == nil {
				first = out.Bytes()
			}
			if !bytes.Equal(first, out.Bytes()) {
				t.Fatal("different bytes")
			}
		}
	})
}

// entry is an entry of an archive.
type entry struct {
	name, content string
	kind          byte
}

// pack returns an archive with the entries.
func pack(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	archive := tar.NewWriter(zipped)
	for _, e := range entries {
		header := &tar.Header{Name: e.name, Typeflag: e.kind, Mode: 0o644, Size: int64(len(e.content))}
		if e.kind == 0 {
			header.Typeflag = tar.TypeReg
		}
		if header.Typeflag == tar.TypeSymlink || header.Typeflag == tar.TypeLink {
			header.Linkname = "/etc/passwd"
		}
		if err := archive.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		if _, err := archive.Write([]byte(e.content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zipped.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

const (
	about = `{"apiVersion":"snapshot.plimsoll.dev/v1","kind":"Snapshot","time":"2026-11-21T12:00:00Z",` +
		`"files":[{"name":"cluster/nodes.json","objects":1}]}`
	oneNode = `{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"Node","metadata":{"name":"a"}}]}`
)

func TestReadBadArchives(t *testing.T) {
	complete := archiveOf(t, smallSnapshot(t))
	first, nodes := entry{name: "snapshot.json", content: about}, entry{name: "cluster/nodes.json", content: oneNode}
	tight := limits{
		entries: 4, file: 10 << 10, total: 20 << 10, ratio: 1000, free: 1 << 20, item: 2 << 10, items: 3, structs: 10,
	}
	list := func(items string) entry {
		return entry{name: "cluster/nodes.json", content: `{"kind":"List","items":[` + items + `]}`}
	}
	blank := strings.Repeat(" ", 9<<10)
	for _, tc := range []struct {
		name    string
		archive []byte
		want    string
	}{
		{"empty", nil, "not a snapshot: must be a file of plimsoll snapshot (--recording reads a recording): EOF"},
		{"text", []byte("apiVersion: v1\nkind: List\n"), "not a snapshot: must be a file of plimsoll snapshot (--recording reads a recording): gzip: invalid header"},
		{"truncated", complete[:len(complete)*2/3], "truncated"},
		{"without its checksum", complete[:len(complete)-8], "incomplete snapshot: truncated"},
		{"gzipped, no tar", gzipped(t, strings.Repeat("no tar ", 200)), "incomplete snapshot: archive/tar: invalid tar header"},
		{"parent folder", pack(t, first, entry{name: "../../etc/passwd"}), `"../../etc/passwd": path leads out of the archive`},
		{
			"parent folder inside", pack(t, first, entry{name: "cluster/../snapshot.json"}),
			`"cluster/../snapshot.json": path leads out of the archive`,
		},
		{"absolute", pack(t, first, entry{name: "/cluster/nodes.json"}), `"/cluster/nodes.json": path leads out of the archive`},
		{"backslashes", pack(t, first, entry{name: `..\nodes.json`}), `"..\\nodes.json": path leads out of the archive`},
		{
			"symbolic link", pack(t, first, entry{name: "cluster/nodes.json", kind: tar.TypeSymlink}),
			`"cluster/nodes.json": unsupported entry type '2': must be a file or a directory`,
		},
		{
			"hard link", pack(t, first, entry{name: "cluster/nodes.json", kind: tar.TypeLink}),
			`"cluster/nodes.json": unsupported entry type '1': must be a file or a directory`,
		},
		{
			"device", pack(t, first, entry{name: "cluster/nodes.json", kind: tar.TypeChar}),
			`"cluster/nodes.json": unsupported entry type '3': must be a file or a directory`,
		},
		{
			"pipe", pack(t, first, entry{name: "cluster/nodes.json", kind: tar.TypeFifo}),
			`"cluster/nodes.json": unsupported entry type '6': must be a file or a directory`,
		},
		{
			"duplicate", pack(t, first, nodes, entry{name: "./cluster/nodes.json", content: oneNode}),
			`"./cluster/nodes.json": duplicate file`,
		},
		{"unknown", pack(t, first, entry{name: "cluster/secrets.json"}), `"cluster/secrets.json": unknown file`},
		{
			"many entries",
			pack(
				t, entry{name: "a/", kind: tar.TypeDir}, entry{name: "b/", kind: tar.TypeDir}, entry{name: "c/", kind: tar.TypeDir},
				entry{name: "d/", kind: tar.TypeDir}, first,
			),
			"archive has more than 4 entries",
		},
		{
			"large file", pack(t, first, entry{name: "cluster/nodes.json", content: blank + blank}),
			`"cluster/nodes.json": exceeds the limit of 10240 bytes`,
		},
		{
			"bomb",
			pack(
				t, first, entry{name: "cluster/nodes.json", content: oneNode + blank},
				entry{name: "cluster/pods.json", content: `{"kind":"List","items":[]}` + blank}, entry{name: "load.json", content: blank},
			),
			"unpacked size exceeds the limit of 20480 bytes",
		},
		{
			"bomb after the archive", append(bytes.Clone(pack(t, first, nodes)), gzipped(t, strings.Repeat(" ", 30<<10))...),
			"unpacked size exceeds the limit of 20480 bytes",
		},
		{"no description", pack(t, nodes), "not a snapshot: snapshot.json is missing"},
		{"description is text", pack(t, entry{name: "snapshot.json", content: "time: now"}), "snapshot.json: invalid character"},
		{
			"a later version", pack(t, entry{
				name:    "snapshot.json",
				content: `{"apiVersion":"snapshot.plimsoll.dev/v9","kind":"Snapshot"}`,
			}),
			`snapshot.json: found kind "Snapshot" of apiVersion "snapshot.plimsoll.dev/v9": must be kind Snapshot of apiVersion ` +
				`snapshot.plimsoll.dev/v1`,
		},
		{
			"no time", pack(t, entry{name: "snapshot.json", content: `{"apiVersion":"snapshot.plimsoll.dev/v1","kind":"Snapshot"}`}),
			"snapshot.json: time: required value",
		},
		{"missing file", pack(t, first), "cluster/nodes.json: missing, but listed in snapshot.json"},
		{
			"missing objects", pack(t, first, entry{name: "cluster/nodes.json", content: `{"kind":"List","items":[]}`}),
			"cluster/nodes.json: found 0 objects, snapshot.json lists 1",
		},
		{
			"not a list", pack(t, first, entry{name: "cluster/nodes.json", content: `{"kind":"Node"}`}),
			`cluster/nodes.json: found kind "Node": must be List`,
		},
		{
			"not JSON", pack(t, first, entry{name: "cluster/nodes.json", content: `{"kind":`}),
			"cluster/nodes.json: unexpected end of JSON input",
		},
		{"many items", pack(t, first, list(`{},{},{},{}`)), "cluster/nodes.json: found more than 3 items: must have at most 3"},
		{"an item that is a number", pack(t, first, list(`{},1`)), "cluster/nodes.json: item 2: found 1: must be an object"},
		{"an item that is null", pack(t, first, list(`null`)), "cluster/nodes.json: item 1: found null: must be an object"},
		{
			"a large item", pack(t, first, list(`{},{"a":"`+strings.Repeat("x", 3<<10)+`"}`)),
			"cluster/nodes.json: item 2 exceeds the limit of 2048 bytes",
		},
		{"items that are an object", pack(t, first, entry{name: "cluster/nodes.json", content: `{"items":{}}`}), "found {: must be a list of items"},
		{"a list", pack(t, first, entry{name: "cluster/nodes.json", content: `[]`}), "cluster/nodes.json: found [: must be an object"},
		{"two lists", pack(t, first, entry{name: "cluster/nodes.json", content: oneNode + "{}"}), "cluster/nodes.json: found a second value"},
		{"large description", pack(t, entry{name: "snapshot.json", content: about + blank + blank}), "exceeds the limit of 10240 bytes"},
		{"invalid load", pack(t, first, nodes, entry{name: "load.json", content: `{}`}), "load.json: timestamp: invalid value 0"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := tight.read(bytes.NewReader(tc.archive))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %s", err, tc.want)
			}
		})
	}
}

// TestReadRepackedArchive checks that an archive may have directories and names that start with "./",
// as tar creates from an unpacked snapshot.
func TestReadRepackedArchive(t *testing.T) {
	s, err := Read(bytes.NewReader(pack(t, entry{name: "./", kind: tar.TypeDir}, entry{name: "./snapshot.json", content: about},
		entry{name: "./cluster/", kind: tar.TypeDir}, entry{name: "./cluster/nodes.json", content: oneNode})))
	if err != nil {
		t.Fatal(err)
	}
	if n := len(s.List("nodes")); n != 1 {
		t.Errorf("%d nodes, want 1", n)
	}
}

// gzipped returns a compressed text.
func gzipped(t testing.TB, text string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// FuzzRead checks that reading any archive succeeds or returns an error with a message, and that a
// snapshot that was read can be redacted, written and read again.
func FuzzRead(f *testing.F) {
	for _, content := range []string{about, "", oneNode} {
		f.Add("cluster/nodes.json", content, oneNode, byte(tar.TypeReg))
	}
	f.Add("../x", about, `{"kind":"List","items":[null,1,"x",{}]}`, byte(tar.TypeReg))
	f.Add("hub/placements.json", about, oneNode, byte(tar.TypeSymlink))
	f.Fuzz(func(t *testing.T, name, first, second string, kind byte) {
		var out bytes.Buffer
		zipped := gzip.NewWriter(&out)
		archive := tar.NewWriter(zipped)
		for _, e := range []entry{{"snapshot.json", first, tar.TypeReg}, {name, second, kind}, {"cluster/pods.json", second, tar.TypeReg}} {
			if archive.WriteHeader(&tar.Header{Name: e.name, Typeflag: e.kind, Size: int64(len(e.content)), Mode: 0o644}) != nil {
				return
			}
			if _, err := archive.Write([]byte(e.content)); err != nil {
				return
			}
		}
		if archive.Close() != nil || zipped.Close() != nil {
			return
		}
		checkRead(t, out.Bytes())
	})
}

// FuzzReadBytes is FuzzRead for arbitrary bytes.
func FuzzReadBytes(f *testing.F) {
	complete := archiveOf(f, smallSnapshot(f))
	f.Add(complete)
	f.Add(complete[:len(complete)/2])
	f.Fuzz(checkRead)
}

// checkRead reads an archive and checks the result.
func checkRead(t *testing.T, archive []byte) {
	s, err := limits{
		entries: 16, file: 1 << 20, total: 2 << 20, ratio: 1000, free: 2 << 20, item: 1 << 20, items: 1000, structs: 10_000,
	}.read(bytes.NewReader(archive))
	if err != nil {
		if err.Error() == "" {
			t.Error("an error without a message")
		}
		return
	}
	if _, err := s.Cluster(); err != nil && err.Error() == "" {
		t.Error("an error without a message")
	}
	redacted, err := s.Redact([]byte("k"))
	if err != nil {
		return
	}
	if _, err := Read(bytes.NewReader(archiveOf(t, redacted))); err != nil {
		t.Errorf("reading the redacted snapshot: %v", err)
	}
}

// FuzzFromDocuments checks that a snapshot of any manifests can be written and read again.
func FuzzFromDocuments(f *testing.F) {
	f.Add(`{"kind":"Pod","metadata":{"name":"a","labels":{"a":1}},"spec":{"containers":[{"resources":1}]}}`)
	f.Add("kind: List\nitems:\n- kind: Node\n  metadata: []\n- kind: Placement\n  spec: {predicates: [{}]}\n")
	f.Add(`{"kind":"PodList","items":[{"spec":{"affinity":{"nodeAffinity":[]}}}]}`)
	f.Fuzz(func(t *testing.T, content string) {
		s, err := FromDocuments(instant, manifest.Files([]string{"-"}, strings.NewReader(content)))
		if err != nil {
			return
		}
		for _, name := range []string{"", "k"} {
			if name != "" {
				if s, err = s.Redact([]byte(name)); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := Read(bytes.NewReader(archiveOf(t, s))); err != nil {
				t.Error(err)
			}
		}
	})
}
