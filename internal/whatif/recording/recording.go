// Package recording is the model of clusters that a what-if reads. A Recording is a file with the history of a cluster:
// its nodes and pods over time, and the usage of pods. A Part of it becomes the Input of a run. Manifests and snapshots are parts without a
// length, and generated clusters are recordings that are marked as generated.
//
// A file has lines of JSON in members of gzip, see format.go. A file that is cut off loses its last member only.
package recording

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-k8s/plimsoll/internal/manifest"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording/kinds"
	"github.com/plimsoll-k8s/plimsoll/load"
)

// APIVersion identifies the format. Later releases may add fields and types of lines but do not change the meaning of existing fields and
// types.
const APIVersion = "recording.plimsoll.dev/v2"

// Never is the time of an event that did not happen until the end of a recording.
const Never = math.MaxInt64

// MaxSteps is the largest number of steps of a recording: nearly two years of minutes.
const MaxSteps = 1 << 20

// About describes a recording.
type About struct {
	// Type is the type of the line in the file.
	Type string `json:"type"`
	// From and To are the first and the last time of the recording, in whole seconds.
	From       time.Time `json:"time"`
	APIVersion string    `json:"apiVersion"`
	To         time.Time `json:"to"`
	// Step is the time between two samples of usage in seconds, 0 for a snapshot.
	Step int `json:"stepSeconds"`
	// Kubernetes is the version of the API server, empty if unknown.
	Kubernetes string `json:"kubernetes"`
	// Redacted is true if names are replaced by pseudonyms.
	Redacted bool `json:"redacted"`
	// Sources lists the sources of the recording.
	Sources []string `json:"sources"`
	// Missing lists data that could not be recorded and how it is treated.
	Missing []Missing `json:"missing"`
	// HasAutoscalers is set if HorizontalPodAutoscalers and other objects that act on requests were read, so that there are no others.
	HasAutoscalers bool `json:"autoscalers,omitempty"`
	// Kills are the containers that the kernel killed for their memory, at most MaxKills. Only plimsoll record --follow records them.
	Kills []Kill `json:"memoryKills,omitempty"`
}

// LacksAutoscalers reports whether it is not known what autoscalers of pods the cluster had.
func (r *Recording) LacksAutoscalers() bool {
	return !r.About.HasAutoscalers && !slices.ContainsFunc(r.Objects, func(o kinds.Object) bool {
		return o.Kind != nil && o.Kind.Area == kinds.AreaRequests
	})
}

// MaxKills is the largest number of kills in a recording.
const MaxKills = 1000

// Kill is the kill of a container of a pod for its memory.
type Kill struct {
	Time      time.Time `json:"time"`
	Namespace string    `json:"namespace"`
	Pod       string    `json:"pod"`
}

// Missing describes data that a recording lacks, and the reason or how it is treated.
type Missing struct {
	What string `json:"what"`
	Why  string `json:"why"`
}

// Recording is the history of a cluster.
type Recording struct {
	About About
	// Nodes are ordered by Appeared and name.
	Nodes []Node
	// Pods are ordered by Created, namespace and name.
	Pods []Pod
	// Objects are further objects that scheduling or workloads refer to; of a snapshot, they are all objects, nodes and pods included.
	Objects []kinds.Object
	// Load is the load of the nodes and Usage the usage of the pods at the time of a snapshot, nil if they are unknown.
	Load  *load.Reading
	Usage *load.PodReading
	// Generated is set for a cluster that is generated, until it is written: sentences about what was assumed.
	Generated []string
}

// Node is a node and the time in which it existed, in seconds since From. Appeared is negative or zero if the
// node existed at the start, Gone is Never if it existed at the end.
type Node struct {
	Object         *v1.Node
	Appeared, Gone int64
}

// Pod is a pod and its history. Times are in seconds since From, negative if earlier, and Never if it did not
// happen until To. They do not decrease from Created to Ended, except that an ended pod may never have been
// scheduled or started.
type Pod struct {
	// Object has the metadata and the spec, without nodeName and status.
	Object                             *v1.Pod
	Created, Scheduled, Started, Ended int64
	// Node is the node of the pod, empty if it was not scheduled.
	Node string
	// CPU is the usage in millicores, Memory the working set in bytes. Files have whole millicores and MiB.
	CPU, Memory Series
	// BaseCPU and BaseMemory are the amounts, in the same units, of which usage that is generated is a multiple; with 0, these are the
	// requests. They are set for clusters that are generated, and not written.
	BaseCPU, BaseMemory float64
}

// SetTimes sets the node and the times of the pod but its end from an object. second returns the second of a time.
func (p *Pod) SetTimes(object *v1.Pod, second func(time.Time) int64) {
	p.Node, p.Created, p.Scheduled, p.Started = object.Spec.NodeName, second(object.CreationTimestamp.Time), Never, Never
	if p.Node != "" {
		p.Scheduled = p.Created
	}
	for _, c := range object.Status.Conditions {
		if c.Type == v1.PodScheduled && c.Status == v1.ConditionTrue && !c.LastTransitionTime.IsZero() {
			p.Scheduled = second(c.LastTransitionTime.Time)
		}
	}
	if started := object.Status.StartTime; started != nil {
		p.Started = second(started.Time)
	}
}

// EndOf returns when a pod ended that existed or was deleted at a second, Never if it has not ended or its known end remains. A pod that
// was evicted, or refused by its kubelet, is finished without containers that ended: it ended when it was first seen so.
func EndOf(object *v1.Pod, at int64, isDeleted, isKnown bool, second func(time.Time) int64) int64 {
	if !resources.IsFinished(object) {
		if isDeleted {
			return at
		}
		return Never
	}
	var finished time.Time
	for _, status := range object.Status.ContainerStatuses {
		if ended := status.State.Terminated; ended != nil && ended.FinishedAt.After(finished) {
			finished = ended.FinishedAt.Time
		}
	}
	switch {
	case !finished.IsZero():
		return second(finished)
	case isKnown:
		return Never
	}
	return at
}

// PodKey identifies a pod. Created is in seconds since From.
type PodKey struct {
	Namespace, Name string
	Created         int64
}

// Key returns the key of the pod.
func (p *Pod) Key() PodKey { return PodKey{p.Object.Namespace, p.Object.Name, p.Created} }

// Steps returns the number of steps of the recording: step i is at From + i*Step, the last step not after To.
func (a *About) Steps() int { return int(a.Seconds())/max(a.Step, 1) + 1 }

// Seconds returns the time from From to To in seconds.
func (a *About) Seconds() int64 { return a.To.Unix() - a.From.Unix() }

// complete sets the type and removes fractions of seconds.
func (a *About) complete() {
	a.APIVersion, a.Type = APIVersion, lineRecording
	a.From, a.To = a.From.UTC().Truncate(time.Second), a.To.UTC().Truncate(time.Second)
	a.Sources = append([]string{}, a.Sources...)
	a.Missing = append([]Missing{}, a.Missing...)
}

// timeOf returns the time of a second since From.
func (a *About) timeOf(second int64) time.Time {
	return a.From.Add(time.Duration(max(-maxSeconds, min(second, maxSeconds))) * time.Second)
}

// maxStep is the largest step in seconds, a day.
const maxStep = 24 * 60 * 60

// check returns an error if a field is invalid.
func (a *About) check() error {
	switch {
	case a.APIVersion != APIVersion:
		return fmt.Errorf("apiVersion: found %q: must be %s", a.APIVersion, APIVersion)
	case a.Step < 0 || a.Step > maxStep || a.Step == 0 && !a.To.Equal(a.From):
		return fmt.Errorf("stepSeconds: invalid value %d: must be from 1 to %d, or 0 if to is the start", a.Step, maxStep)
	case a.From.Year() < 1000 || a.From.Year() > 9000: // all times of a recording have a year of four digits
		return fmt.Errorf("time: invalid value %s: must be in the years 1000 to 9000", a.From.Format(time.RFC3339))
	case a.To.Before(a.From):
		return fmt.Errorf("to: invalid value %s: must not be before the start, %s", a.To.Format(time.RFC3339), a.From.Format(time.RFC3339))
	case a.Steps() > MaxSteps, a.Seconds() > maxSeconds:
		return fmt.Errorf("to: invalid value %s: must be less than %d steps of %d s, and at most %d s, after the start, %s",
			a.To.Format(time.RFC3339), MaxSteps, a.Step, int64(maxSeconds), a.From.Format(time.RFC3339))
	}
	return nil
}

// eachOwner calls a function for each object that owns pods, with its kind, namespace and name, its metadata, and the containers of its
// template.
func (r *Recording) eachOwner(each func(name string, metadata metav1.Object, containers []string)) {
	for _, object := range r.Objects {
		var set struct {
			metav1.ObjectMeta `json:"metadata"`
			Spec              struct {
				Template struct {
					Spec struct{ Containers []struct{ Name string } }
				}
			}
		}
		if object.Kind == nil || !bytes.Contains(object.JSON, []byte(`"template"`)) || json.Unmarshal(object.JSON, &set) != nil ||
			manifest.CheckNames(&set.ObjectMeta) != nil { // Part returns the error
			continue
		}
		var names []string
		for _, c := range set.Spec.Template.Spec.Containers {
			names = append(names, c.Name)
		}
		each(object.Kind.Kind+" "+resources.Name(&set.ObjectMeta), &set.ObjectMeta, names)
	}
}

// OwnerOf returns the kind, namespace and name of the owner of a pod, empty if it has none.
func OwnerOf(pod *v1.Pod) string {
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil {
		return ""
	}
	return owner.Kind + " " + pod.Namespace + "/" + owner.Name
}

// Templates returns the names of the containers of the recorded templates by the owner of their pods, see OwnerOf.
func (r *Recording) Templates() map[string][]string {
	out := map[string][]string{}
	r.eachOwner(func(name string, _ metav1.Object, containers []string) { out[name] = containers })
	return out
}

// setWorkloads sets the workloads of the pods of ReplicaSets and ReplicationControllers, such as Deployments.
func (r *Recording) setWorkloads() {
	owners := map[string]*metav1.OwnerReference{}
	r.eachOwner(func(name string, metadata metav1.Object, _ []string) {
		if strings.HasPrefix(name, "Replica") {
			owners[name] = metav1.GetControllerOf(metadata)
		}
	})
	for i := range r.Pods {
		if owner := owners[OwnerOf(r.Pods[i].Object)]; owner != nil {
			resources.SetWorkload(r.Pods[i].Object, *owner)
		}
	}
}

// finish orders nodes and pods, sets their workloads, and removes data after the end.
func (r *Recording) finish() {
	r.setWorkloads()
	end, steps := r.About.Seconds(), r.About.Steps()
	r.Nodes = slices.DeleteFunc(r.Nodes, func(n Node) bool { return n.Appeared > end })
	for i := range r.Nodes {
		n := &r.Nodes[i]
		n.Gone = untilEnd(max(n.Gone, n.Appeared), end)
	}
	r.Pods = slices.DeleteFunc(r.Pods, func(p Pod) bool { return p.Created > end })
	for i := range r.Pods {
		r.Pods[i].clip(end, steps, r.About.Step)
	}
	slices.SortStableFunc(r.Nodes, func(a, b Node) int {
		return cmp.Or(cmp.Compare(a.Appeared, b.Appeared), strings.Compare(a.Object.Name, b.Object.Name))
	})
	slices.SortStableFunc(r.Pods, func(a, b Pod) int {
		return cmp.Or(cmp.Compare(a.Created, b.Created), strings.Compare(a.Object.Namespace, b.Object.Namespace),
			strings.Compare(a.Object.Name, b.Object.Name))
	})
}

// untilEnd returns a time, and Never for a time after the end.
func untilEnd(at, end int64) int64 {
	if at > end {
		return Never
	}
	return at
}

// clip removes data after the end of the recording or of the pod, and makes times not decrease.
func (p *Pod) clip(end int64, steps, step int) {
	p.Scheduled = untilEnd(max(p.Scheduled, p.Created), end)
	p.Started = untilEnd(max(p.Started, p.Scheduled), end)
	if p.Scheduled == Never {
		p.Node = ""
	}
	reached := p.Created
	for _, at := range []int64{p.Scheduled, p.Started} {
		if at != Never {
			reached = at
		}
	}
	p.Ended = untilEnd(max(p.Ended, reached), end)
	if p.Ended != Never {
		steps = 0
		if p.Ended >= 0 {
			steps = int(p.Ended/int64(step)) + 1
		}
	}
	p.CPU.clip(steps)
	p.Memory.clip(steps)
}
