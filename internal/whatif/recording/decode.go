package recording

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-k8s/plimsoll/internal/manifest"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording/kinds"
	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/load/wire"
)

// decoder reads a file and builds a recording from its lines.
type decoder struct {
	limits
	raw counter
	in  *bufio.Reader
	// from and until are the span whose usage is read, in seconds; until is 0 for the end.
	from, until int64
	// packed is the number of bytes until the end of the last member, text the number of bytes of the lines of all members.
	packed, text int64
	members      int
	gzip         gzip.Reader
	// member and content are the last member and its lines.
	member, content bytes.Buffer

	header    header
	described bool
	nodes     []Node
	pods      []Pod
	objects   []kinds.Object
	load      *load.Reading
	measured  *load.PodReading
	// lastNode and lastPod have the indexes of the last added node and the last created pod with a name, older those of the pods before.
	lastNode, lastPod map[string]int
	older             map[PodKey]int
	usage             usageLine
	key               []byte
	structs, values   int64
	// orphans counts lines about nodes and pods that are not known.
	orphans int
	missing []Missing
}

func newDecoder(l limits, in io.Reader) *decoder {
	d := &decoder{limits: l, raw: counter{in: in}, lastNode: map[string]int{}, lastPod: map[string]int{}, older: map[PodKey]int{}}
	d.in = bufio.NewReaderSize(&d.raw, 1<<16)
	return d
}

// addMissing records that a part of the file is missing.
func (d *decoder) addMissing(what, why string) {
	const most = 100
	if len(d.missing) < most {
		d.missing = append(d.missing, Missing{What: what, Why: why})
	}
}

// recording returns the recording. A snapshot must be complete.
func (d *decoder) recording() (*Recording, error) {
	if d.orphans > 0 {
		d.addMissing(
			fmt.Sprintf("%d lines about nodes and pods", d.orphans),
			"no line adds these nodes and pods: their names differ, or the line is in a damaged part of the file",
		)
	}
	d.header.Missing = append(d.header.Missing, d.missing...)
	if d.measured != nil {
		d.measured.Source, d.measured.Window = d.header.Source, time.Duration(d.header.WindowSeconds*float64(time.Second))
	}
	r := &Recording{About: d.header.About, Nodes: d.nodes, Pods: d.pods, Objects: d.objects, Load: d.load, Usage: d.measured}
	r.finish()
	if r.About.isSnapshot() && len(d.missing) > 0 {
		return nil, fmt.Errorf("incomplete snapshot: %s: %s", d.missing[0].What, d.missing[0].Why)
	}
	return r, nil
}

// line reads a line. It must not keep it.
func (d *decoder) line(raw []byte) error {
	if d.described && bytes.HasPrefix(raw, []byte(partStart)) {
		return d.readUsage(raw)
	}
	var l line
	if err := json.Unmarshal(raw, &l); err != nil {
		return err
	}
	switch {
	case l.Type == lineRecording:
		return d.readHeader(raw)
	case !d.described:
		return fmt.Errorf("type: found %.40q: the first line must be of type %s", l.Type, lineRecording)
	}
	switch l.Type {
	case lineAdded, lineModified, lineDeleted:
		return d.readEvent(&l)
	case lineUsage:
		return d.readUsage(raw)
	case lineLoad:
		return d.readLoad(l.Nodes)
	case "":
		return errors.New("type: required: must be the type of the line, such as " + lineAdded)
	}
	return nil // written by a later release
}

// readHeader reads a header. A later header may change neither the start nor the step.
func (d *decoder) readHeader(raw []byte) error {
	var h header
	if err := json.Unmarshal(raw, &h); err != nil {
		return err
	}
	if err := h.check(); err != nil {
		return err
	}
	h.complete()
	if d.described && (!h.From.Equal(d.header.From) || h.Step != d.header.Step) {
		return errors.New("time and stepSeconds must not change within a file: a folder of recordings is read as one")
	}
	d.header, d.described = h, true
	return nil
}

// maxSeconds is the largest distance of a time from the start, about 136 years.
const maxSeconds = 1 << 32

// second returns a time in seconds since the start.
func (d *decoder) second(at time.Time) (int64, error) {
	second := at.Unix() - d.header.From.Unix()
	if second < -maxSeconds || second > maxSeconds {
		return 0, fmt.Errorf("invalid value %s: must be at most %d s from the start", at.UTC().Format(time.RFC3339), int64(maxSeconds))
	}
	return second, nil
}

// decode decodes an object.
func (d *decoder) decode(raw json.RawMessage, into any) error {
	d.structs += countObjects(raw)
	if most := d.limits.structs + d.packed; d.structs > most {
		return fmt.Errorf("found more than %d JSON objects: must have at most %d and one for each byte of the file", most, d.limits.structs)
	}
	if err := resources.CheckQuantities(raw); err != nil {
		return err
	}
	return json.Unmarshal(raw, into)
}

// The kinds of objects that are read as nodes and pods, and the start of a pod as Writer writes it.
var (
	nodeType = metav1.TypeMeta{APIVersion: "v1", Kind: "Node"}
	podType  = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
	podStart = []byte(`{"kind":"Pod","apiVersion":"v1",`)
)

// readEvent reads a line about an object.
func (d *decoder) readEvent(l *line) error {
	second, err := d.second(l.Time)
	if err != nil {
		return fmt.Errorf("time: %w", err)
	}
	kind := podType
	if !bytes.HasPrefix(l.Object, podStart) {
		kind = metav1.TypeMeta{}
		if err := json.Unmarshal(l.Object, &kind); err != nil {
			return fmt.Errorf("object: %w", err)
		}
	}
	switch {
	case d.header.isSnapshot() || kind != nodeType && kind != podType:
		if l.Type != lineAdded {
			return nil
		}
		return d.readObject(l.Object, kind)
	case kind == nodeType:
		return d.readNode(l, second)
	}
	return d.readPod(l, second)
}

// readNode reads a line about a node.
func (d *decoder) readNode(l *line, second int64) error {
	object := &v1.Node{}
	if err := d.decode(l.Object, object); err != nil {
		return fmt.Errorf("node: %w", err)
	}
	object.TypeMeta = metav1.TypeMeta{}
	if object.Name == "" {
		return errors.New("node: metadata.name: required value")
	}
	i, known := d.lastNode[object.Name]
	switch {
	case l.Type == lineDeleted && known:
		d.nodes[i].Gone = second
		return nil
	case l.Type == lineDeleted:
		d.orphans++
		return nil
	}
	if err := cmp.Or(manifest.CheckNames(object), manifest.CheckNode(object)); err != nil {
		return fmt.Errorf("node %s: %w", object.Name, err)
	}
	if known && d.nodes[i].Gone == Never {
		d.nodes[i].Object = object
		return nil
	}
	if len(d.nodes) == d.limits.nodes {
		return fmt.Errorf("found more than %d nodes", d.limits.nodes)
	}
	d.lastNode[object.Name] = len(d.nodes)
	d.nodes = append(d.nodes, Node{Object: object, Appeared: second, Gone: Never})
	return nil
}

// findPod returns the last created pod with a name or, if a time is given, the one that was created then; nil if there is none.
func (d *decoder) findPod(namespace, name string, created *time.Time) (*Pod, error) {
	d.key = append(append(append(d.key[:0], namespace...), '/'), name...)
	i, ok := d.lastPod[string(d.key)]
	if ok && created != nil {
		second, err := d.second(*created)
		if err != nil {
			return nil, fmt.Errorf("created: %w", err)
		}
		if d.pods[i].Created != second {
			i, ok = d.older[PodKey{namespace, name, second}]
		}
	}
	if !ok {
		return nil, nil
	}
	return &d.pods[i], nil
}

// readPod reads a line about a pod.
func (d *decoder) readPod(l *line, second int64) error {
	object := &v1.Pod{}
	if err := d.decode(l.Object, object); err != nil {
		return fmt.Errorf("pod: %w", err)
	}
	if object.Name == "" || object.Namespace == "" {
		return errors.New("pod: metadata.name and metadata.namespace: required values")
	}
	if err := d.setPod(l, object, second); err != nil {
		return fmt.Errorf("pod %s/%s: %w", object.Namespace, object.Name, err)
	}
	return nil
}

// setPod adds a pod, or changes or ends it if it is known.
func (d *decoder) setPod(l *line, object *v1.Pod, at int64) error {
	known, err := d.findPod(object.Namespace, object.Name, &object.CreationTimestamp.Time)
	isDeleted := l.Type == lineDeleted
	switch {
	case err != nil:
		return err
	case known == nil && isDeleted:
		d.orphans++
		return nil
	}
	second := func(at time.Time) int64 { return at.Unix() - d.header.From.Unix() }
	p := Pod{Ended: EndOf(object, at, isDeleted, known != nil && known.Ended != Never, second)}
	p.SetTimes(object, second)
	for _, at := range []int64{p.Created, p.Scheduled, p.Started, p.Ended} {
		if at != Never && (at < -maxSeconds || at > maxSeconds) {
			return fmt.Errorf("found a time %d s after the start: must be from %d to %d", at, -maxSeconds, int64(maxSeconds))
		}
	}
	if known != nil {
		p.CPU, p.Memory = known.CPU, known.Memory
		if p.Ended == Never {
			p.Ended = known.Ended
		}
	}
	if isDeleted {
		known.Ended = p.Ended
		return nil
	}
	if err := cmp.Or(manifest.CheckNames(object), manifest.CheckPod(object)); err != nil {
		return err
	}
	object.TypeMeta = metav1.TypeMeta{}
	p.Object = withoutStatus(object)
	if known != nil {
		*known = p
		return nil
	}
	return d.addPod(p)
}

// addPod adds a pod that findPod has not found.
func (d *decoder) addPod(p Pod) error {
	if len(d.pods) == d.limits.pods {
		return fmt.Errorf("found more than %d pods", d.limits.pods)
	}
	d.pods = append(d.pods, p)
	number := len(d.pods) - 1
	if last, ok := d.lastPod[string(d.key)]; ok {
		if d.pods[last].Created > p.Created {
			last, number = number, last
		}
		d.older[d.pods[last].Key()] = last
	}
	d.lastPod[string(d.key)] = number
	return nil
}

// readObject reads an object of a kind.
func (d *decoder) readObject(raw json.RawMessage, kind metav1.TypeMeta) error {
	if len(d.objects) == d.limits.objects {
		return fmt.Errorf("found more than %d objects", d.limits.objects)
	}
	object := kinds.Object{Kind: kinds.Of(kind.GroupVersionKind().Group, kind.Kind), JSON: bytes.Clone(raw)}
	if err := d.decode(object.JSON, &struct{}{}); err != nil {
		return fmt.Errorf("object %d: %w", len(d.objects)+1, err)
	}
	if kind.Kind == "" {
		return fmt.Errorf("object %d: kind: required value", len(d.objects)+1)
	}
	d.objects = append(d.objects, object)
	return nil
}

// readLoad reads the load of some nodes.
func (d *decoder) readLoad(body json.RawMessage) error {
	reading, err := wire.Decode(bytes.NewReader(body))
	switch {
	case err != nil:
		return fmt.Errorf("load: %w", err)
	case d.load == nil:
		d.load = &reading
	default:
		maps.Copy(d.load.Nodes, reading.Nodes)
		d.load.Rejected += reading.Rejected
	}
	return nil
}

// countObjects returns the number of JSON objects in a valid JSON value.
func countObjects(raw []byte) (n int64) {
	for {
		i := bytes.IndexAny(raw, `{"`)
		if i < 0 {
			return n
		}
		quoted := raw[i] == '"'
		raw = raw[i+1:]
		if !quoted {
			n++
			continue
		}
		raw = afterString(raw)
	}
}

// afterString returns the text after a string whose opening quote was removed.
func afterString(raw []byte) []byte {
	for i := 0; i < len(raw); i++ {
		switch raw[i] {
		case '\\':
			i++
		case '"':
			return raw[i+1:]
		}
	}
	return nil
}
