package recording

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/load/wire"
)

// chunkBytes is the size of records before compression at which a chunk is written.
const chunkBytes = 4 << 20

// Writer writes a recording. It keeps at most one chunk in memory. Nodes and pods have numbers, by which later
// records refer to them. It must not be used by several goroutines at once.
type Writer struct {
	out         io.Writer
	about       About
	records     []byte
	body        []byte
	nodes, pods int
	// size is the number of bytes of the file so far.
	size int64
	// err is the first error of out.
	err error
}

// NewWriter returns a writer that starts a file. The description is written with the first chunk.
func NewWriter(out io.Writer, about About) (*Writer, error) {
	w := &Writer{out: out}
	return w, w.SetAbout(about)
}

// SetAbout replaces the description. The recording is complete until its To: the reader ignores later
// events.
func (w *Writer) SetAbout(about About) error {
	about.complete()
	if err := about.check(); err != nil {
		return err
	}
	w.about = about
	return w.json(recordAbout, about)
}

// About returns the description.
func (w *Writer) About() About { return w.about }

// Size returns the number of bytes written so far.
func (w *Writer) Size() int64 { return w.size }

// Count returns the numbers of nodes and pods.
func (w *Writer) Count() (nodes, pods int) { return w.nodes, w.pods }

// AddNode writes a node and returns its number.
func (w *Writer) AddNode(n Node) (id int, err error) {
	w.nodes++
	return w.nodes - 1, w.UpdateNode(w.nodes-1, n)
}

// UpdateNode changes a node. Its object is unchanged if it is nil, times if they are Never.
func (w *Writer) UpdateNode(id int, n Node) error {
	record := objectRecord{ID: id, Appeared: known(n.Appeared), Gone: known(n.Gone)}
	if n.Object != nil {
		var err error
		if record.Object, err = json.Marshal(n.Object); err != nil {
			return err
		}
	}
	return w.json(recordNode, record)
}

// AddPod writes a pod with its usage and returns its number. The usage may be empty, and added later.
func (w *Writer) AddPod(p Pod) (id int, err error) {
	w.pods++
	return w.pods - 1, errors.Join(w.UpdatePod(w.pods-1, p), w.AddUsage(w.pods-1, p.CPU, p.Memory))
}

// UpdatePod changes a pod. Its object is unchanged if it is nil, times if they are Never, and the node if it is
// empty. Usage is not written.
func (w *Writer) UpdatePod(id int, p Pod) error {
	record := objectRecord{
		ID: id, Node: p.Node,
		Created: known(p.Created), Scheduled: known(p.Scheduled), Started: known(p.Started), Ended: known(p.Ended),
	}
	if p.Object != nil {
		var err error
		if record.Object, err = json.Marshal(withoutStatus(p.Object)); err != nil {
			return err
		}
	}
	return w.json(recordPod, record)
}

// withoutStatus returns the pod without the node and the status.
func withoutStatus(pod *v1.Pod) *v1.Pod {
	out := &v1.Pod{TypeMeta: pod.TypeMeta, ObjectMeta: pod.ObjectMeta, Spec: pod.Spec}
	out.Spec.NodeName = ""
	return out
}

// AddUsage writes usage of a pod. Values for steps that the file has already replace them; no values may be before
// the first step of the pod's usage in the file.
func (w *Writer) AddUsage(id int, cpu, memory Series) error {
	for resource, series := range []Series{resourceCPU: cpu, resourceMemory: memory} {
		if series.Len() == 0 {
			continue
		}
		if series.First < 0 || series.End() > MaxSteps {
			return fmt.Errorf("usage at steps %d to %d: must be from 0 to %d", series.First, series.End()-1, MaxSteps-1)
		}
		w.body = appendUsage(w.body[:0], id, resource, series)
		if err := w.record(recordUsage, w.body); err != nil {
			return err
		}
	}
	return nil
}

// AddObject writes an object as JSON.
func (w *Writer) AddObject(object json.RawMessage) error { return w.record(recordObject, object) }

// json writes a record with a value as JSON.
func (w *Writer) json(kind byte, value any) error {
	body, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return w.record(kind, body)
}

// record writes a record, and the chunk if it is full.
func (w *Writer) record(kind byte, body []byte) error {
	if w.err != nil {
		return w.err
	}
	if int64(len(body)) > defaultLimits.body {
		return fmt.Errorf("a record of %d bytes: must have at most %d", len(body), defaultLimits.body)
	}
	w.records = append(w.records, kind)
	w.records = binary.AppendUvarint(w.records, uint64(len(body)))
	w.records = append(w.records, body...)
	if len(w.records) >= chunkBytes {
		return w.Flush()
	}
	return nil
}

// Flush writes the records since the last chunk as a chunk, so that a crash does not lose them. After an error, all
// calls return the error.
func (w *Writer) Flush() error {
	if w.err != nil || len(w.records) == 0 {
		return w.err
	}
	chunk, err := compress(w.records)
	if err == nil {
		_, err = w.out.Write(chunk)
		w.size += int64(len(chunk))
	}
	w.err, w.records = err, w.records[:0]
	return err
}

// Close writes the end of the file. It does not close the underlying writer.
func (w *Writer) Close() error {
	return errors.Join(w.record(recordEnd, nil), w.Flush())
}

const (
	// loadNodes and measuredPods are the numbers of nodes and pods in a record of a snapshot.
	loadNodes    = 1000
	measuredPods = 10_000
)

// addMeasured writes the load of the nodes and the usage of the pods of a snapshot.
func (w *Writer) addMeasured(r *Recording) error {
	if r.Load != nil {
		for names := range slices.Chunk(slices.Sorted(maps.Keys(r.Load.Nodes)), loadNodes) {
			part := *r.Load
			part.Nodes = make(map[string]load.Node, len(names))
			for _, name := range names {
				part.Nodes[name] = r.Load.Nodes[name]
			}
			var body bytes.Buffer
			if err := errors.Join(wire.Encode(&body, part), w.record(recordLoad, body.Bytes())); err != nil {
				return err
			}
		}
	}
	if r.Usage == nil {
		return nil
	}
	record := measuredRecord{
		Source:        r.Usage.Source,
		Time:          r.Usage.Time.UTC().Truncate(time.Second),
		WindowSeconds: r.Usage.Window.Seconds(),
	}
	for pods := range slices.Chunk(r.Usage.Pods, measuredPods) {
		record.Pods = pods
		if err := w.json(recordMeasured, record); err != nil {
			return err
		}
	}
	return nil
}

// WriteFile writes the recording to a file, which it replaces.
func (r *Recording) WriteFile(name string) error {
	file, err := os.OpenFile(name, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, fileMode)
	if err != nil {
		return err
	}
	return errors.Join(r.Write(file), file.Close())
}

// Write writes the recording. The same content gives the same bytes.
func (r *Recording) Write(out io.Writer) error {
	w, err := NewWriter(out, r.About)
	if err != nil {
		return err
	}
	for _, object := range r.Objects {
		if err := w.AddObject(object.JSON); err != nil {
			return err
		}
	}
	if err := w.addMeasured(r); err != nil {
		return err
	}
	for _, node := range r.Nodes {
		if _, err := w.AddNode(node); err != nil {
			return err
		}
	}
	for _, pod := range r.Pods {
		if _, err := w.AddPod(pod); err != nil {
			return err
		}
	}
	return w.Close()
}
