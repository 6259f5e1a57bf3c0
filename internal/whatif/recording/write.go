package recording

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/load/wire"
)

// memberBytes is the size of lines at which a member is written.
const memberBytes = 4 << 20

// Writer writes a recording. It keeps at most one member in memory. It must not be used by several goroutines at once.
type Writer struct {
	out    io.Writer
	level  int
	header header
	lines  []byte
	// first is the first step of the usage in lines, end the step after the last; mixed is true if lines has others.
	first, end int
	mixed      bool
	// existing has the names of nodes that were not ended, created when the last pod of each namespace and name was created.
	existing    map[string]bool
	created     map[string]int64
	nodes, pods int
	usage       usageLine
	// size is the number of bytes of the file so far.
	size int64
	// err is the first error of out.
	err error
}

// NewWriter returns a writer that starts a file. The header is written with the first member.
func NewWriter(out io.Writer, about About) (*Writer, error) {
	return newWriter(out, about, gzip.DefaultCompression)
}

func newWriter(out io.Writer, about About, level int) (*Writer, error) {
	w := &Writer{out: out, level: level, existing: map[string]bool{}, created: map[string]int64{}}
	return w, w.SetAbout(about)
}

// SetAbout replaces the description. The recording is complete until its To: the reader ignores later
// events.
func (w *Writer) SetAbout(about About) error {
	about.complete()
	if err := about.check(); err != nil {
		return err
	}
	w.header.About = about
	return w.json(w.header)
}

// About returns the description.
func (w *Writer) About() About { return w.header.About }

// Size returns the number of bytes written so far.
func (w *Writer) Size() int64 { return w.size }

// Count returns the numbers of nodes and pods.
func (w *Writer) Count() (nodes, pods int) { return w.nodes, w.pods }

// AddNode writes a node, or replaces the object of the node with its name that was not ended.
func (w *Writer) AddNode(n Node) error {
	object, kind := *n.Object, lineModified
	if !w.existing[object.Name] {
		w.existing[object.Name], kind = true, lineAdded
		w.nodes++
	}
	object.TypeMeta = nodeType
	err := w.event(kind, n.Appeared, &object)
	if err == nil && n.Gone != Never {
		err = w.EndNode(object.Name, n.Gone)
	}
	return err
}

// EndNode writes when a node was removed.
func (w *Writer) EndNode(name string, at int64) error {
	delete(w.existing, name)
	return w.event(lineDeleted, at, &metav1.PartialObjectMetadata{TypeMeta: nodeType, ObjectMeta: metav1.ObjectMeta{Name: name}})
}

// AddPod writes a pod without its usage, or replaces the pod with its key: an end that was written remains if Ended is Never.
func (w *Writer) AddPod(p Pod) error {
	kind := lineModified
	if created, ok := w.created[resources.Name(p.Object)]; !ok || created < p.Created {
		w.created[resources.Name(p.Object)], kind = p.Created, lineAdded
		w.pods++
	}
	about := &w.header.About
	object, at := withoutStatus(p.Object), p.Created
	object.TypeMeta, object.CreationTimestamp = podType, metav1.NewTime(about.timeOf(p.Created))
	if p.Scheduled != Never {
		at = p.Scheduled
		object.Spec.NodeName = p.Node
		object.Status.Conditions = []v1.PodCondition{{
			Type: v1.PodScheduled, Status: v1.ConditionTrue, LastTransitionTime: metav1.NewTime(about.timeOf(at)),
		}}
	}
	if p.Started != Never {
		at = p.Started
		object.Status.StartTime = new(metav1.NewTime(about.timeOf(at)))
	}
	err := w.event(kind, max(at, 0), object)
	if err == nil && p.Ended != Never {
		err = w.EndPod(p.Key(), p.Ended)
	}
	return err
}

// EndPod writes when a pod ended.
func (w *Writer) EndPod(key PodKey, at int64) error {
	created := metav1.NewTime(w.header.timeOf(key.Created))
	meta := metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, CreationTimestamp: created}
	return w.event(lineDeleted, at, &metav1.PartialObjectMetadata{TypeMeta: podType, ObjectMeta: meta})
}

// withoutStatus returns the pod without the node and the status.
func withoutStatus(pod *v1.Pod) *v1.Pod {
	out := &v1.Pod{TypeMeta: pod.TypeMeta, ObjectMeta: pod.ObjectMeta, Spec: pod.Spec}
	out.Spec.NodeName = ""
	return out
}

// lineSteps is the largest number of steps in a line of usage.
const lineSteps = 360

// AddUsage writes usage of a pod. Values for steps that the file has already replace them; no values may be before
// the first step of the pod's usage in the file.
func (w *Writer) AddUsage(key PodKey, cpu, memory Series) error {
	first, end := min(cpu.start(), memory.start()), max(cpu.End(), memory.End())
	if last := min(MaxSteps, maxSeconds/max(w.header.Step, 1)); first < end && (first < 0 || end > last) {
		return fmt.Errorf("usage at steps %d to %d: must be from 0 to %d", first, end-1, last-1)
	}
	for ; first < end; first += lineSteps {
		if err := w.addUsage(key, &cpu, &memory, first, min(first+lineSteps, end)); err != nil {
			return err
		}
	}
	return nil
}

// addUsage writes the usage of a pod from a step until before another.
func (w *Writer) addUsage(key PodKey, cpu, memory *Series, first, end int) error {
	l := &w.usage
	l.Time, l.Namespace, l.Pod, l.Created = w.header.timeOf(int64(first)*int64(w.header.Step)), key.Namespace, key.Name, nil
	if w.created[key.Namespace+"/"+key.Name] != key.Created {
		l.Created = new(w.header.timeOf(key.Created))
	}
	l.CPU = millicores().appendNumbers(l.CPU[:0], cpu, first, end)
	l.Memory = mebibytes().appendNumbers(l.Memory[:0], memory, first, end)
	if len(w.lines) == 0 {
		w.first, w.end = first, end
	}
	w.first, w.end = min(w.first, first), max(w.end, end)
	return w.add(l.appendTo(w.lines))
}

// AddObject writes an object as JSON.
func (w *Writer) AddObject(object json.RawMessage) error { return w.event(lineAdded, 0, object) }

// event writes a line about an object.
func (w *Writer) event(kind string, at int64, object any) error {
	raw, err := json.Marshal(object)
	if err != nil {
		return err
	}
	return w.json(line{Type: kind, Time: w.header.timeOf(at), Object: raw})
}

// json writes a line that is not usage of a pod over time.
func (w *Writer) json(value any) error {
	raw, err := json.Marshal(value)
	if err != nil {
		return err
	}
	w.mixed = true
	return w.add(append(w.lines, raw...))
}

// add ends the last of some lines, which become those of the member, and writes the member if it is full.
func (w *Writer) add(lines []byte) error {
	if w.err != nil {
		return w.err
	}
	if length := int64(len(lines) - len(w.lines)); length > defaultLimits.line {
		return fmt.Errorf("a line of %d bytes: must have at most %d", length, defaultLimits.line)
	}
	w.lines = append(lines, '\n')
	if len(w.lines) >= memberBytes {
		return w.Flush()
	}
	return nil
}

// Flush writes the lines since the last member as a member, so that a crash does not lose them. After an error, all
// calls return the error.
func (w *Writer) Flush() error {
	if w.err != nil || len(w.lines) == 0 {
		return w.err
	}
	if w.mixed {
		w.first, w.end = 0, 0
	}
	member, err := compress(w.lines, w.level, w.first, w.end)
	if err == nil {
		_, err = w.out.Write(member)
		w.size += int64(len(member))
	}
	w.err, w.lines, w.mixed = err, w.lines[:0], false
	return err
}

// Close writes the end of the file. It does not close the underlying writer.
func (w *Writer) Close() error {
	w.header.Complete = true
	return errors.Join(w.json(w.header), w.Flush())
}

// loadNodes is the number of nodes in a line of load.
const loadNodes = 1000

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
			if err := errors.Join(
				wire.Encode(&body, part),
				w.json(line{Type: lineLoad, Time: w.header.From, Nodes: body.Bytes()}),
			); err != nil {
				return err
			}
		}
	}
	if r.Usage == nil {
		return nil
	}
	w.header.Source, w.header.WindowSeconds = r.Usage.Source, r.Usage.Window.Seconds()
	at := r.Usage.Time.UTC().Truncate(time.Second)
	w.mixed = true
	for _, pod := range r.Usage.Pods {
		cpu, memory := millicores().number(pod.CPU), mebibytes().number(pod.Memory)
		l := usageLine{Time: at, Namespace: pod.Namespace, Pod: pod.Name, CPU: numbers{cpu}, Memory: numbers{memory}}
		if err := w.add(l.appendTo(w.lines)); err != nil {
			return err
		}
	}
	return nil
}

// WriteFile writes the recording to a file, which it replaces.
func (r *Recording) WriteFile(name string) error { return r.writeFile(name, gzip.DefaultCompression) }

func (r *Recording) writeFile(name string, level int) error {
	file, err := os.OpenFile(name, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, fileMode)
	if err != nil {
		return err
	}
	return errors.Join(r.write(file, level), file.Close())
}

// Write writes the recording. The same content gives the same bytes.
func (r *Recording) Write(out io.Writer) error { return r.write(out, gzip.DefaultCompression) }

func (r *Recording) write(out io.Writer, level int) error {
	w, err := newWriter(out, r.About, level)
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
		if err := w.AddNode(node); err != nil {
			return err
		}
	}
	for _, pod := range r.Pods {
		if err := w.AddPod(pod); err != nil {
			return err
		}
	}
	if err := r.writeUsage(w); err != nil {
		return err
	}
	return w.Close()
}

// writeUsage writes the usage of all pods in the order of time, in members of their own, so that the usage of a span can be read.
func (r *Recording) writeUsage(w *Writer) error {
	if err := w.Flush(); err != nil {
		return err
	}
	for first := 0; first < r.About.Steps(); first += lineSteps {
		for i := range r.Pods {
			cpu, memory := &r.Pods[i].CPU, &r.Pods[i].Memory
			from, end := max(first, min(cpu.start(), memory.start())), min(first+lineSteps, max(cpu.End(), memory.End()), r.About.Steps())
			if from >= end {
				continue
			}
			if err := w.addUsage(r.Pods[i].Key(), cpu, memory, from, end); err != nil {
				return err
			}
		}
	}
	return w.Flush()
}
