package recording

import (
	"bufio"
	"bytes"
	"compress/flate"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-k8s/plimsoll/internal/manifest"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording/kinds"
	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/load/wire"
)

// decoder builds a recording from records.
type decoder struct {
	limits
	// packed is the number of bytes of the file so far, chunks the number of its chunks.
	packed int64
	chunks int

	about            About
	described, ended bool
	nodes            entries[Node]
	pods             entries[Pod]
	objects          []kinds.Object
	load             *load.Reading
	measured         *load.PodReading
	structs, values  int64
	missing          []Missing
}

// entries has nodes or pods with their numbers, at most limit.
type entries[T any] struct {
	kind  string
	limit int
	all   []T
	index map[int]int
	// orphans counts records whose first record is damaged.
	orphans int
}

// find returns the entry with a number, nil if there is none.
func (e *entries[T]) find(id int) *T {
	if i, ok := e.index[id]; ok {
		return &e.all[i]
	}
	return nil
}

// entryFor returns the entry of a record. It adds the entry if the record is the first and has an object, and returns nil if the first
// record is damaged.
func (e *entries[T]) entryFor(record *objectRecord, entry T) (*T, error) {
	switch found := e.find(record.ID); {
	case found != nil:
		return found, nil
	case record.Object == nil:
		e.orphans++
		return nil, nil
	case len(e.all) == e.limit:
		return nil, fmt.Errorf("found more than %d %ss", e.limit, e.kind)
	}
	if e.index == nil {
		e.index = map[int]int{}
	}
	e.index[record.ID] = len(e.all)
	e.all = append(e.all, entry)
	return &e.all[len(e.all)-1], nil
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
	if orphans := d.nodes.orphans + d.pods.orphans; orphans > 0 {
		d.addMissing(fmt.Sprintf("%d records of nodes and pods", orphans), "they refer to a damaged part of the file")
	}
	d.about.Missing = append(d.about.Missing, d.missing...)
	r := &Recording{About: d.about, Nodes: d.nodes.all, Pods: d.pods.all, Objects: d.objects, Load: d.load, Usage: d.measured}
	r.finish()
	if r.About.isSnapshot() && len(d.missing) > 0 {
		return nil, fmt.Errorf("incomplete snapshot: %s: %s", d.missing[0].What, d.missing[0].Why)
	}
	return r, nil
}

// content reads the records of a chunk.
func (d *decoder) content(content []byte) error {
	unpacked := &io.LimitedReader{R: flate.NewReader(bytes.NewReader(content)), N: d.chunk + 1}
	err := d.records(bufio.NewReader(unpacked))
	if unpacked.N == 0 {
		return fmt.Errorf("unpacked chunk exceeds the limit of %d bytes", d.chunk)
	}
	return err
}

// records reads records until the end.
func (d *decoder) records(in *bufio.Reader) error {
	var body []byte
	for {
		kind, err := in.ReadByte()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		length, err := binary.ReadUvarint(in)
		switch {
		case err != nil:
			return unexpected(err)
		case length > uint64(d.body):
			return fmt.Errorf("record of %d bytes: must have at most %d", length, d.body)
		}
		body = slices.Grow(body[:0], int(length))[:length]
		if _, err := io.ReadFull(in, body); err != nil {
			return unexpected(err)
		}
		if err := d.record(kind, body); err != nil {
			return err
		}
	}
}

// unexpected returns an error of reading within a record.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// record reads a record. It must not keep the body.
func (d *decoder) record(kind byte, body []byte) error {
	if kind != recordAbout && !d.described {
		return errors.New("not a recording: the description is missing")
	}
	switch kind {
	case recordAbout:
		return d.readAbout(body)
	case recordNode, recordPod:
		var object objectRecord
		if err := json.Unmarshal(body, &object); err != nil {
			return fmt.Errorf("node or pod: %w", err)
		}
		if kind == recordNode {
			return d.readNode(&object)
		}
		return d.readPod(&object)
	case recordObject:
		return d.readObject(body)
	case recordUsage:
		return d.readUsage(body)
	case recordLoad:
		return d.readLoad(body)
	case recordMeasured:
		return d.readMeasured(body)
	case recordEnd:
		d.ended = true
	}
	return nil
}

// readAbout reads the description. A later description may change neither the start nor the step.
func (d *decoder) readAbout(body []byte) error {
	var about About
	if err := json.Unmarshal(body, &about); err != nil {
		return fmt.Errorf("description: %w", err)
	}
	if err := about.check(); err != nil {
		return fmt.Errorf("description: %w", err)
	}
	if d.described && (!about.From.Equal(d.about.From) || about.Step != d.about.Step) {
		return errors.New("description: from and stepSeconds must not change within a file: recordings cannot be joined by appending one")
	}
	about.complete()
	d.about, d.described, d.ended = about, true, false
	return nil
}

// maxSeconds is the largest distance of a time from the start, about 136 years.
const maxSeconds = 1 << 32

// setTime sets a time unless it is nil.
func setTime(field string, at *int64, found *int64) error {
	if found == nil {
		return nil
	}
	if *found < -maxSeconds || *found > maxSeconds {
		return fmt.Errorf("%s: invalid value %d: must be from %d to %d", field, *found, -maxSeconds, int64(maxSeconds))
	}
	*at = *found
	return nil
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

// readNode reads a node or a change of a node.
func (d *decoder) readNode(record *objectRecord) error {
	n, err := d.nodes.entryFor(record, Node{Appeared: Never, Gone: Never})
	if n == nil {
		return err
	}
	if record.Object != nil {
		object := &v1.Node{}
		if err := d.decode(record.Object, object); err != nil {
			return fmt.Errorf("node %d: %w", record.ID, err)
		}
		if object.Name == "" {
			return fmt.Errorf("node %d: metadata.name: required value", record.ID)
		}
		if err := manifest.CheckNode(object); err != nil {
			return fmt.Errorf("node %s: %w", object.Name, err)
		}
		n.Object = object
	}
	err = errors.Join(setTime("appeared", &n.Appeared, record.Appeared), setTime("gone", &n.Gone, record.Gone))
	if err != nil {
		return fmt.Errorf("node %s: %w", n.Object.Name, err)
	}
	return nil
}

// readPod reads a pod or a change of a pod.
func (d *decoder) readPod(record *objectRecord) error {
	p, err := d.pods.entryFor(record, Pod{Created: Never, Scheduled: Never, Started: Never, Ended: Never})
	if p == nil {
		return err
	}
	if record.Object != nil {
		object := &v1.Pod{}
		if err := d.decode(record.Object, object); err != nil {
			return fmt.Errorf("pod %d: %w", record.ID, err)
		}
		if object.Name == "" || object.Namespace == "" {
			return fmt.Errorf("pod %d: metadata.name and metadata.namespace: required values", record.ID)
		}
		if err := manifest.CheckPod(object); err != nil {
			return fmt.Errorf("pod %s/%s: %w", object.Namespace, object.Name, err)
		}
		p.Object = withoutStatus(object)
	}
	if record.Node != "" {
		p.Node = record.Node
	}
	err = errors.Join(setTime("created", &p.Created, record.Created), setTime("scheduled", &p.Scheduled, record.Scheduled),
		setTime("started", &p.Started, record.Started), setTime("ended", &p.Ended, record.Ended))
	if err != nil {
		return fmt.Errorf("pod %s/%s: %w", p.Object.Namespace, p.Object.Name, err)
	}
	return nil
}

// readObject reads an object.
func (d *decoder) readObject(body []byte) error {
	if len(d.objects) == d.limits.objects {
		return fmt.Errorf("found more than %d objects", d.limits.objects)
	}
	object := kinds.Object{JSON: append([]byte(nil), body...)}
	var header metav1.TypeMeta
	if err := d.decode(object.JSON, &header); err != nil {
		return fmt.Errorf("object %d: %w", len(d.objects)+1, err)
	}
	if header.Kind == "" {
		return fmt.Errorf("object %d: kind: required value", len(d.objects)+1)
	}
	object.Kind = kinds.Of(header.GroupVersionKind().Group, header.Kind)
	d.objects = append(d.objects, object)
	return nil
}

// readUsage reads usage of a pod.
func (d *decoder) readUsage(body []byte) error {
	var numbers [4]int
	for i := range numbers {
		n, length := binary.Uvarint(body)
		if length <= 0 || n > 1<<40 {
			return errors.New("usage: invalid number")
		}
		numbers[i], body = int(n), body[length:]
	}
	id, resource, first, count := numbers[0], numbers[1], numbers[2], numbers[3]
	p := d.pods.find(id)
	if p == nil {
		d.pods.orphans++
		return nil
	}
	var series *Series
	switch resource {
	case resourceCPU:
		series = &p.CPU
	case resourceMemory:
		series = &p.Memory
	default: // written by a later release
		return nil
	}
	where := p.Object.Namespace + "/" + p.Object.Name
	if series.Len() > 0 && first < series.First {
		return fmt.Errorf("usage of pod %s: found step %d after step %d: must be in the order of time", where, first, series.First)
	}
	if first+count > MaxSteps || count > len(body) {
		return fmt.Errorf("usage of pod %s: %d values from step %d on: must be before step %d, and in the record",
			where, count, first, MaxSteps)
	}
	most := min(d.limits.values, d.freeValues+valuesPerByte*d.packed)
	if d.values += int64(series.growth(first, count)); d.values > most {
		return fmt.Errorf("usage of pod %s: found more than %d values, gaps included, in a file of %d bytes", where, most, d.packed)
	}
	codes, err := decodeCodes(body, count)
	if err != nil {
		return fmt.Errorf("usage of pod %s: %w", where, err)
	}
	series.put(first, codes)
	return nil
}

// decodeCodes decodes differences of codes.
func decodeCodes(body []byte, count int) ([]uint16, error) {
	codes, last := make([]uint16, count), int64(0)
	for i := range codes {
		difference, length := binary.Varint(body)
		if length <= 0 {
			return nil, io.ErrUnexpectedEOF
		}
		body = body[length:]
		if last += difference; last < 0 || last > 1<<16-1 {
			return nil, fmt.Errorf("value %d: out of range", i+1)
		}
		codes[i] = uint16(last)
	}
	if len(body) > 0 {
		return nil, fmt.Errorf("%d bytes after the last value", len(body))
	}
	return codes, nil
}

// readLoad reads the load of some nodes.
func (d *decoder) readLoad(body []byte) error {
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

// readMeasured reads the usage of some pods of a snapshot.
func (d *decoder) readMeasured(body []byte) error {
	var record measuredRecord
	if err := json.Unmarshal(body, &record); err != nil {
		return fmt.Errorf("usage: %w", err)
	}
	if d.measured == nil {
		window := time.Duration(record.WindowSeconds * float64(time.Second))
		d.measured = &load.PodReading{Source: record.Source, Time: record.Time, Window: window}
	}
	for _, pod := range record.Pods {
		if !pod.Valid() {
			return fmt.Errorf("usage of pod %s/%s: invalid usage of %v millicores and %v bytes: must not be negative",
				pod.Namespace, pod.Name, pod.CPU, pod.Memory)
		}
	}
	d.measured.Pods = append(d.measured.Pods, record.Pods...)
	if n := len(d.measured.Pods); n > load.MaxPods {
		return fmt.Errorf("usage: found %d pods: must have at most %d", n, load.MaxPods)
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
