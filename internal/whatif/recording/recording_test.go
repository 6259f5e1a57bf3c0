package recording

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording/kinds"
	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

var start = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

// newAbout returns the description of a recording of a number of minutes in steps of a minute.
func newAbout(minutes int) About {
	return About{From: start, To: start.Add(time.Duration(minutes) * time.Minute), Step: 60, Kubernetes: "v1.37.1"}
}

func newNode(name string) *v1.Node {
	return &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"zone": "a"}},
		Status:     v1.NodeStatus{Allocatable: v1.ResourceList{v1.ResourceCPU: resource.MustParse("4")}},
	}
}

func newPod(name string) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: v1.PodSpec{Containers: []v1.Container{{
			Name: "c", Resources: v1.ResourceRequirements{Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse("100m")}},
		}}},
	}
}

// equal compares recordings.
func equal(want, got *Recording) string {
	sameSeries := cmp.Comparer(func(a, b Series) bool { return a.First == b.First && bytes.Equal(raw(a.codes), raw(b.codes)) })
	sameKind := cmp.Comparer(func(a, b *kinds.Kind) bool { return a == b })
	return cmp.Diff(want, got, cmp.AllowUnexported(Series{}), cmpopts.EquateEmpty(), sameSeries, sameKind)
}

func raw(codes []uint16) []byte {
	out, _ := binary.Append(nil, binary.LittleEndian, codes)
	return out
}

const minutes = 50

// drawTime draws a time in seconds, also before the start and after the end, and Never.
func drawTime(t *rapid.T, name string) int64 {
	if rapid.IntRange(0, 3).Draw(t, name+" never") == 0 {
		return Never
	}
	return rapid.Int64Range(-1000, minutes*60+1000).Draw(t, name)
}

func drawSeries(t *rapid.T) (s Series) {
	if n := rapid.IntRange(0, minutes+5).Draw(t, "values"); n > 0 {
		s.First = rapid.IntRange(0, minutes).Draw(t, "first")
		for range n {
			s.codes = append(s.codes, rapid.Uint16().Draw(t, "code"))
		}
	}
	return s
}

// draw draws a recording that is not yet ordered or clipped.
func draw(t *rapid.T) *Recording {
	r := &Recording{About: newAbout(minutes)}
	r.About.complete()
	for i := range rapid.IntRange(0, 5).Draw(t, "nodes") {
		r.Nodes = append(r.Nodes, Node{newNode(fmt.Sprint("node-", i)), drawTime(t, "appeared"), drawTime(t, "gone")})
	}
	for i := range rapid.IntRange(0, 10).Draw(t, "pods") {
		r.Pods = append(r.Pods, Pod{
			Object:  newPod(fmt.Sprint("pod-", i)),
			Created: drawTime(t, "created"), Scheduled: drawTime(t, "scheduled"), Started: drawTime(t, "started"),
			Ended: drawTime(t, "ended"), Node: rapid.SampledFrom([]string{"", "node-0", "node-1"}).Draw(t, "node"),
			CPU: drawSeries(t), Memory: drawSeries(t),
		})
	}
	for range rapid.IntRange(0, 2).Draw(t, "objects") {
		r.Objects = append(r.Objects,
			kinds.Object{Kind: kinds.Of("apps", "ReplicaSet"), JSON: []byte(`{"apiVersion":"apps/v1","kind":"ReplicaSet"}`)})
	}
	return r
}

// TestRoundTrip checks that a recording is read as it was written, that writing it again gives the same bytes, and that
// times do not decrease.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := draw(t)
		var file bytes.Buffer
		must.Succeed(t, want.Write(&file))
		got, err := Read(bytes.NewReader(file.Bytes()))
		must.Succeed(t, err)
		want.finish()
		if diff := equal(want, got); diff != "" {
			t.Fatal(diff)
		}
		for _, p := range got.Pods {
			last := p.Created
			for _, at := range []int64{p.Scheduled, p.Started, p.Ended} {
				if at != Never && at < last {
					t.Fatalf("pod %s: times decrease: %+v", p.Object.Name, p)
				}
				if at != Never {
					last = at
				}
			}
		}
		var first, second bytes.Buffer
		must.Succeed(t, got.Write(&first))
		again, err := Read(bytes.NewReader(first.Bytes()))
		must.Succeed(t, err)
		if err := again.Write(&second); err != nil || !bytes.Equal(first.Bytes(), second.Bytes()) {
			t.Fatalf("the same recording gave other bytes (%v)", err)
		}
	})
}

// TestWriteInParts checks that a recording that is written in parts, with changes of nodes and pods and
// overlapping usage, is read like a recording that is written at once.
func TestWriteInParts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := draw(t)
		var file bytes.Buffer
		w, err := NewWriter(&file, want.About)
		must.Succeed(t, err)
		flush := func(err error) {
			if err == nil && rapid.Bool().Draw(t, "flush") {
				err = w.Flush()
			}
			must.Succeed(t, err)
		}
		for _, object := range want.Objects {
			flush(w.AddObject(object.JSON))
		}
		for _, n := range want.Nodes {
			id, err := w.AddNode(Node{newNode("other"), n.Appeared, Never})
			flush(err)
			flush(w.UpdateNode(id, n))
		}
		ids := map[string]int{}
		for _, p := range want.Pods {
			ids[p.Object.Name], err = w.AddPod(
				Pod{Object: newPod("other"), Created: p.Created, Scheduled: Never, Started: Never, Ended: Never},
			)
			flush(err)
		}
		for _, p := range want.Pods {
			flush(w.UpdatePod(ids[p.Object.Name], p))
			cut := rapid.IntRange(0, p.CPU.Len()).Draw(t, "cut")
			first := Series{p.CPU.First, p.CPU.codes[:cut]}
			overlap := rapid.IntRange(0, cut).Draw(t, "overlap")
			flush(w.AddUsage(ids[p.Object.Name], first, p.Memory))
			flush(w.AddUsage(ids[p.Object.Name], Series{p.CPU.First + cut - overlap, p.CPU.codes[cut-overlap:]}, Series{}))
		}
		flush(w.SetAbout(want.About))
		flush(w.Close())
		got, err := Read(&file)
		must.Succeed(t, err)
		want.finish()
		if diff := equal(want, got); diff != "" {
			t.Fatal(diff)
		}
	})
}

// sample returns a file in several chunks, the recording that each number of chunks gives, and their ends.
func sample(t *testing.T) (file []byte, prefixes []*Recording, ends []int) {
	t.Helper()
	var out bytes.Buffer
	about := newAbout(0)
	w, err := NewWriter(&out, about)
	must.Succeed(t, err)
	want := &Recording{}
	if _, err := w.AddNode(Node{newNode("n"), -5, Never}); err != nil {
		t.Fatal(err)
	}
	want.Nodes = []Node{{newNode("n"), -5, Never}}
	for i := range 4 {
		about.To = start.Add(time.Duration(i*10) * time.Minute)
		p := Pod{
			Object: newPod(fmt.Sprint("p", i)), Created: int64(i * 600), Scheduled: int64(i * 600), Started: Never, Ended: Never, Node: "n",
			CPU: NewSeries(i*10, 1, math.NaN(), 3),
		}
		if _, err := w.AddPod(p); err != nil {
			t.Fatal(err)
		}
		must.Succeed(t, w.SetAbout(about))
		must.Succeed(t, w.Flush())
		want.About = w.About()
		want.Pods = append(want.Pods, p)
		clone := &Recording{About: want.About, Nodes: want.Nodes, Pods: append([]Pod{}, want.Pods...)}
		clone.finish()
		prefixes, ends = append(prefixes, clone), append(ends, out.Len())
	}
	must.Succeed(t, w.Close())
	return out.Bytes(), append(prefixes, prefixes[len(prefixes)-1]), append(ends, out.Len())
}

// TestTruncated cuts a file at every byte: all whole chunks are read, and the recording says that its end is missing.
func TestTruncated(t *testing.T) {
	file, prefixes, ends := sample(t)
	for length := range len(file) + 1 {
		got, err := Read(bytes.NewReader(file[:length]))
		whole := 0
		for whole < len(ends) && ends[whole] <= length {
			whole++
		}
		if whole == 0 {
			if err == nil || !strings.Contains(err.Error(), "recording") {
				t.Fatalf("%d bytes: error %v", length, err)
			}
			continue
		}
		if err != nil {
			t.Fatalf("%d bytes: %v", length, err)
		}
		if missing := len(got.About.Missing); (missing == 0) != (length == len(file)) {
			t.Fatalf("%d of %d bytes: %d parts are missing: %v", length, len(file), missing, got.About.Missing)
		}
		got.About.Missing = nil
		if diff := equal(prefixes[whole-1], got); diff != "" {
			t.Fatalf("%d bytes: %s", length, diff)
		}
	}
}

// TestDamaged changes every byte of a file: reading returns an error, or the rest of the file and a note about the missing part.
func TestDamaged(t *testing.T) {
	file, _, ends := sample(t)
	for i := range file {
		damaged := bytes.Clone(file)
		damaged[i] ^= 0x10
		got, err := Read(bytes.NewReader(damaged))
		switch {
		case i < ends[0]:
			if err == nil {
				t.Errorf("byte %d: no error", i)
			}
		case err != nil:
			t.Errorf("byte %d: %v", i, err)
		case len(got.About.Missing) == 0:
			t.Errorf("byte %d: nothing is missing", i)
		case i >= ends[1]+headerLength && i < ends[2] && len(got.Pods) != 3:
			t.Errorf("byte %d: %d pods, want those of the other chunks", i, len(got.Pods))
		}
	}
}

// usage returns a record of usage.
func usage(id, resource, first, count int, body string) []byte {
	out := []byte{recordUsage}
	for _, n := range []int{id, resource, first, count} {
		out = binary.AppendUvarint(out, uint64(n))
	}
	return append(out, body...)
}

// chunked returns a file with a description and records.
func chunked(t *testing.T, records ...[]byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := NewWriter(&out, newAbout(minutes))
	must.Succeed(t, err)
	for _, record := range records {
		must.Succeed(t, w.record(record[0], record[1:]))
	}
	must.Succeed(t, w.Close())
	return out.Bytes()
}

// text returns a record with a text.
func text(kind byte, body string) []byte { return append([]byte{kind}, body...) }

const podText = `{"id":0,"object":{"metadata":{"name":"p","namespace":"x"}},"created":0}`

func TestReadInvalid(t *testing.T) {
	huge, err := compress(append([]byte{recordObject}, binary.AppendUvarint(nil, 1<<40)...))
	must.Succeed(t, err)
	header := []byte(marker + "\xff\xff\xff\xff\x00\x00\x00\x00\x00\x00\x00\x00")
	binary.LittleEndian.PutUint32(header[12:], crc32.Checksum(header[:12], castagnoli))
	pod := text(recordPod, podText)
	damaged := chunked(t, pod)
	damaged[len(damaged)-1] ^= 1
	for _, tc := range []struct {
		name string
		file []byte
		want string
	}{
		{"damaged", damaged, "damaged recording: first chunk: checksum mismatch: nothing can be read"},
		{"empty", nil, "not a recording: empty file"},
		{"another file", []byte("kind: Pod\nmetadata:\n"), "not a recording: must be a file of plimsoll record or plimsoll snapshot"},
		{"long chunk", header, "chunk of 4294967295 bytes: must have at most 67108864"},
		{"no description", huge, "record of 1099511627776 bytes: must have at most 4194304"},
		{"object without kind", chunked(t, text(recordObject, "{}")), "object 1: kind: required value"},
		{
			"negative amount of a node",
			chunked(t, text(recordNode, `{"id":1,"object":{"metadata":{"name":"n"},"status":{"allocatable":{"cpu":"-1"}}}}`)),
			`node n: status.allocatable.cpu: invalid value "-1": must be at least 0`,
		},
		{
			"negative request",
			chunked(t, text(recordPod, `{"id":1,"object":{"metadata":{"name":"p","namespace":"a"},"spec":{"overhead":{"cpu":"-1"}}}}`)),
			`pod a/p: spec.overhead.cpu: invalid value "-1": must be at least 0`,
		},
		{"node without name", chunked(t, text(recordNode, `{"id":1,"object":{}}`)), "node 1: metadata.name: required value"},
		{"pod without namespace", chunked(t, text(recordPod, `{"id":1,"object":{"metadata":{"name":"p"}}}`)), "metadata.namespace"},
		{
			"pod in a far future", chunked(t, text(recordPod, strings.Replace(podText, `"created":0`, `"created":99999999999`, 1))),
			"pod x/p: created: invalid value 99999999999: must be from -4294967296 to 4294967296",
		},
		{
			"quantity", chunked(t, text(recordPod,
				`{"id":1,"object":{"metadata":{"name":"p","namespace":"x"},"spec":{"containers":[{"resources":{"requests":{"cpu":"1e999999999"}}}]}}}`)),
			"invalid quantity",
		},
		{
			"negative usage in a snapshot", chunked(t, text(recordMeasured, `{"pods":[{"namespace":"a","name":"b","cpuMillicores":-1}]}`)),
			"usage of pod a/b: invalid usage of -1 millicores",
		},
		{"load", chunked(t, text(recordLoad, `{}`)), "load: timestamp, data.NodeMetricsMap: required"},
		{"usage that is cut off", chunked(t, pod, usage(0, 0, 1, 1, "")), "1 values from step 1 on"},
		{"usage after the end", chunked(t, pod, usage(0, 0, MaxSteps, 1, "\x02")), "must be before step 1048576"},
		{"usage out of order", chunked(t, pod, usage(0, 0, 2, 1, "\x02"), usage(0, 0, 1, 1, "\x02")), "found step 1 after step 2"},
		{"usage out of range", chunked(t, pod, usage(0, 0, 2, 1, "\x01")), "value 1: out of range"},
		{"usage with more bytes", chunked(t, pod, usage(0, 0, 2, 1, "\x02\x02")), "1 bytes after the last value"},
		{"huge number", chunked(t, pod, usage(1<<50, 0, 2, 1, "\x02")), "usage: invalid number"},
		{
			"two starts", chunked(t, text(recordAbout, `{"apiVersion":"recording.plimsoll.dev/v1","kind":"Recording","from":"2020-01-01T00:00:00Z",`+
				`"to":"2020-01-02T00:00:00Z","stepSeconds":60}`)), "from and stepSeconds must not change",
		},
		{
			"another version", chunked(t, text(recordAbout, `{"apiVersion":"recording.plimsoll.dev/v2","kind":"Recording"}`)),
			`found kind "Recording" of apiVersion "recording.plimsoll.dev/v2": must be kind Recording of apiVersion recording.plimsoll.dev/v1`,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if _, err := Read(bytes.NewReader(tc.file)); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %s", err, tc.want)
			}
		})
	}
}

// TestLaterRelease checks that records and resources of a later release are ignored.
func TestLaterRelease(t *testing.T) {
	file := chunked(t, text('Z', "unknown"), text(recordPod, podText), []byte{recordUsage, 0, 7, 0, 1, 2})
	r, err := Read(bytes.NewReader(file))
	if err != nil || len(r.Pods) != 1 || r.Pods[0].CPU.Len() != 0 {
		t.Errorf("%+v, error %v", r, err)
	}
}

// TestBounds checks that each bound gives an error.
func TestBounds(t *testing.T) {
	node := text(recordNode, `{"id":0,"object":{"metadata":{"name":"n"}},"appeared":0}`)
	second := text(recordNode, `{"id":1,"object":{"metadata":{"name":"m"}},"appeared":0}`)
	pod, object := text(recordPod, podText), text(recordObject, `{"kind":"X"}`)
	for _, tc := range []struct {
		change func(*limits)
		file   []byte
		want   string
	}{
		{func(l *limits) { l.nodes = 1 }, chunked(t, node, second), "found more than 1 nodes"},
		{func(l *limits) { l.pods = 1 }, chunked(t, pod, text(recordPod, strings.Replace(podText, `"id":0`, `"id":1`, 1))), "found more than 1 pods"},
		{func(l *limits) { l.objects = 1 }, chunked(t, object, object), "found more than 1 objects"},
		{
			func(l *limits) { l.structs = 0 }, chunked(t, text(recordObject, `{"kind":"X","a":[`+strings.Repeat("{},", 9999)+`{}]}`)),
			"JSON objects: must have at most 0 and one for each byte of the file",
		},
		{func(l *limits) { l.values = 2 }, chunked(t, pod, []byte{recordUsage, 0, 0, 0, 3, 0, 0, 0}), "usage of pod x/p: found more than 2 values"},
		{ // a value at step 0 and at step 1,030,000: the gap takes 2 MB of memory, the file 1 KB
			func(l *limits) { l.freeValues = 2 },
			chunked(t, pod, usage(0, 0, 0, 1, "\x02"), usage(0, 0, 1_030_000, 1, "\x02")),
			"values, gaps included, in a file of",
		},
		{func(l *limits) { l.body = 10 }, chunked(t, pod), "bytes: must have at most 10"},
		{func(l *limits) { l.chunk = 700 }, chunked(t, text(recordObject, `{"kind":"X","a":"`+strings.Repeat("a", 1000)+`"}`)), "unpacked chunk exceeds"},
	} {
		l := defaultLimits
		tc.change(&l)
		if _, err := l.read(bytes.NewReader(tc.file)); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("error %v, want %s", err, tc.want)
		}
	}
}

// TestReadEarlierRelease checks that a recording of an earlier release is read: testdata/earlier.plrec was written before snapshots were
// recordings.
func TestReadEarlierRelease(t *testing.T) {
	got, err := Open("testdata/earlier.plrec")
	must.Succeed(t, err)
	about := newAbout(minutes)
	about.complete()
	about.Missing = []Missing{{What: "services", Why: "listing is forbidden"}}
	want := &Recording{
		About: about, Nodes: []Node{{newNode("a"), -60, Never}, {newNode("b"), 120, 600}},
		Pods: []Pod{
			{
				Object: newPod("web"), Scheduled: 5, Started: 10, Ended: 1800, Node: "a",
				CPU: NewSeries(1, 100, 150, 200), Memory: NewSeries(1, 1<<30),
			},
		},
		Objects: []kinds.Object{{Kind: kinds.Of("apps", "ReplicaSet"), JSON: []byte(`{"apiVersion":"apps/v1","kind":"ReplicaSet"}`)}},
	}
	if diff := equal(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestOpen(t *testing.T) {
	name := filepath.Join(t.TempDir(), "week.plrec")
	if _, err := Open(filepath.Dir(name)); err == nil || !strings.Contains(err.Error(), "found no recording") {
		t.Errorf("error %v", err)
	}
	must.Succeed(t, os.WriteFile(name, []byte("PL"), 0o600))
	if _, err := Open(name); err == nil || !strings.Contains(err.Error(), name+": incomplete recording") {
		t.Errorf("error %v", err)
	}
}

// TestWriterErrors checks that a writer rejects content that a reader would reject.
func TestWriterErrors(t *testing.T) {
	for want, change := range map[string]func(*About){
		"stepSeconds: invalid value -1": func(a *About) { a.Step = -1 },
		"to: invalid value":             func(a *About) { *a = newAbout(MaxSteps) },
		// Nanoseconds since the start must fit in 64 bits.
		"at most 4294967296 s":    func(a *About) { a.Step, a.To = maxStep, a.From.Add((maxSeconds+1)*time.Second) },
		"must not be before from": func(a *About) { a.To = a.From.Add(-time.Second) },
	} {
		about := newAbout(1)
		change(&about)
		if _, err := NewWriter(&bytes.Buffer{}, about); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
	w, err := NewWriter(&bytes.Buffer{}, newAbout(1))
	must.Succeed(t, err)
	if err := w.AddUsage(0, NewSeries(MaxSteps, 1), Series{}); err == nil || !strings.Contains(err.Error(), "usage at steps") {
		t.Errorf("error %v", err)
	}
}

// FuzzRead checks that no input crashes the reader, and that accepted input is read alike after it is written.
func FuzzRead(f *testing.F) {
	var out bytes.Buffer
	w, err := NewWriter(&out, newAbout(minutes))
	must.Succeed(f, err)
	if _, err := w.AddPod(Pod{Object: newPod("p"), Scheduled: Never, Started: Never, Ended: Never, CPU: NewSeries(0, 1, 2)}); err != nil {
		f.Fatal(err)
	}
	records := bytes.Clone(w.records)
	f.Add(records)
	s := &Recording{Load: &load.Reading{Time: start, Nodes: map[string]load.Node{"a": {HasCPU: true}}}, Usage: usageReading()}
	must.Succeed(f, w.addMeasured(s))
	f.Add(bytes.Clone(w.records))
	f.Add(records[:len(records)/2])
	f.Fuzz(func(t *testing.T, records []byte) {
		chunk, err := compress(records)
		must.Succeed(t, err)
		small := limits{chunk: 1 << 20, body: 1 << 20, nodes: 100, pods: 100, objects: 100, structs: 10_000, values: 1 << 21}
		_, _ = small.read(bytes.NewReader(records))
		r, err := small.read(bytes.NewReader(chunk))
		if err != nil {
			return
		}
		var file bytes.Buffer
		must.Succeed(t, r.Write(&file))
		again, err := Read(&file)
		must.Succeed(t, err)
		if diff := equal(r, again); diff != "" {
			t.Fatal(diff)
		}
	})
}
