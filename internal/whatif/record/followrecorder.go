// Package record writes recordings and snapshots of clusters. Follow makes recordings of a cluster while it runs: nodes and pods from
// watches of its API server, and usage from a load source, once per step.
//
// After a restart, after a time, or when a recording is large, another recording is started; the oldest recordings are removed. The
// recordings of a folder are read as one.
//
// # Prometheus
//
// Record makes a recording from a Prometheus server: from the series of kube-state-metrics for nodes and
// pods, and from the series of the kubelets' cAdvisor for usage.
//
// The time is divided into windows. For each window, nodes and pods are read by one query per series, which has the last value of
// each object, and usage by range queries that are bounded in the number of values. A query that the server refuses or does not
// answer in time is split and sent again.
//
// # Snapshots
//
// ReadCluster reads a cluster into a snapshot. It only lists objects.
package record

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording/kinds"
	"github.com/plimsoll-k8s/plimsoll/load"
)

// view is the state of a cluster at one time.
type view struct {
	// at is the time, pods and nodes exist at that time, and removed are pods that were deleted since the last view.
	at      time.Time
	pods    []*v1.Pod
	nodes   []*v1.Node
	removed []removal
	// usage is the usage of the pods, nil if it could not be read.
	usage *load.PodReading
}

// removal is a pod that was deleted.
type removal struct {
	pod *v1.Pod
	at  time.Time
}

// followObject is a node or a pod that exists: its key in the file, without times for a node, and the hash of its last record.
type followObject struct {
	Key  recording.PodKey
	Hash uint64
	// Ended is true for a pod whose end is recorded.
	Ended bool
	// Absent is true for a pod that the last view did not have. Its removal may be seen later than its absence, and is then recorded.
	Absent bool
	// Killed is the last time at which a container was killed for its memory, in seconds since 1970.
	Killed int64
}

// followRecorder writes one recording.
type followRecorder struct {
	file   *recording.File
	redact *kinds.Redactor
	// clock returns the recorded time of a time in an object.
	clock func(time.Time) time.Time
	// pods and nodes exist, by UID.
	pods, nodes map[string]followObject
	// usage is the usage of pods since the last commit.
	usage map[string]*followUsage
	// versions has the resource version of each pod when it was recorded last: an unchanged pod is not encoded again.
	versions map[types.UID]string
	// last is the time of the last view in seconds since 1970.
	last int64
	// unread is the number of steps whose usage could not be read, steps the number of all steps.
	unread, steps int
	notes         notes
	kills         []recording.Kill
}

// followUsage is the usage of a pod since the last commit.
type followUsage struct{ cpu, memory recording.Series }

// newFollowRecorder returns a recorder that writes to a new file with pseudonyms of a key, nil to keep names.
func newFollowRecorder(file *recording.File, key []byte, clock func(time.Time) time.Time) *followRecorder {
	return &followRecorder{
		file: file, redact: kinds.NewRedactor(key), clock: clock, pods: map[string]followObject{}, nodes: map[string]followObject{},
		usage: map[string]*followUsage{}, versions: map[types.UID]string{}, last: file.About().From.Unix(),
	}
}

// objects writes the objects of a snapshot other than nodes and pods.
func (r *followRecorder) objects(all []kinds.Object) error {
	for _, object := range all {
		if object.Kind.Required {
			continue
		}
		redacted, err := r.redact.Redact(object)
		if err != nil {
			return err
		}
		if err := r.file.AddObject(redacted.JSON); err != nil {
			return err
		}
	}
	return nil
}

// secondOf returns a time in seconds since the start of the recording.
func (r *followRecorder) secondOf(at time.Time) int64 { return at.Unix() - r.file.About().From.Unix() }

// objectSecond returns a time in an object in seconds since the start of the recording.
func (r *followRecorder) objectSecond(at time.Time) int64 { return r.secondOf(r.clock(at)) }

// step returns the step of a time.
func (r *followRecorder) step(at time.Time) int { return int(r.secondOf(at)) / r.file.About().Step }

// recordGap records that nothing was seen since the last view: the process was suspended. It writes the usage before the hole,
// so that the usage in memory does not have a gap for the hole.
func (r *followRecorder) recordGap(now time.Time) error {
	gap, ok := recording.Gap(time.Unix(r.last, 0), now, r.file.About().Step)
	if !ok {
		return nil
	}
	r.notes.add(gap.What, gap.Why)
	return r.flushAll()
}

// observe records a view.
func (r *followRecorder) observe(v view) error {
	if err := r.recordGap(v.at); err != nil {
		return err
	}
	for _, removed := range v.removed {
		if err := r.pod(removed.pod, removed.at, true); err != nil {
			return err
		}
	}
	present := map[string]bool{}
	for _, node := range v.nodes {
		present["node/"+string(node.UID)] = true
	}
	for _, pod := range v.pods {
		present[string(pod.UID)] = true
	}
	if err := r.gone(present); err != nil { // before other objects of the same names
		return err
	}
	for _, node := range followSorted(v.nodes) {
		if err := r.node(node); err != nil {
			return err
		}
	}
	for _, pod := range followSorted(v.pods) {
		if v := r.versions[pod.UID]; v != "" && v == pod.ResourceVersion {
			continue
		}
		r.versions[pod.UID] = pod.ResourceVersion
		if err := r.pod(pod, v.at, false); err != nil {
			return err
		}
	}
	r.last = v.at.Unix()
	r.steps++
	r.addUsage(v)
	return nil
}

// followSorted returns objects in the order of their names.
func followSorted[T metav1.Object](objects []T) []T {
	return slices.SortedFunc(slices.Values(objects), func(a, b T) int { return cmp.Compare(resources.Name(a), resources.Name(b)) })
}

// gone records that objects do not exist any more: they ended when they were seen last. Pods are forgotten one view later.
func (r *followRecorder) gone(present map[string]bool) error {
	last := r.last - r.file.About().From.Unix()
	for _, uid := range slices.Sorted(maps.Keys(r.nodes)) {
		if present["node/"+uid] {
			continue
		}
		if err := r.file.EndNode(r.nodes[uid].Key.Name, last); err != nil {
			return err
		}
		delete(r.nodes, uid)
	}
	for _, uid := range slices.Sorted(maps.Keys(r.pods)) {
		p := r.pods[uid]
		if present[uid] {
			continue
		}
		if !p.Ended {
			if err := r.file.EndPod(p.Key, last); err != nil {
				return err
			}
		}
		if err := r.flush(uid); err != nil {
			return err
		}
		if p.Absent {
			delete(r.pods, uid)
			delete(r.versions, types.UID(uid))
			continue
		}
		p.Ended, p.Absent = true, true
		r.pods[uid] = p
	}
	return nil
}

// node records a node if it is new. Later changes of its status are too frequent to be written.
func (r *followRecorder) node(node *v1.Node) error {
	kept := &v1.Node{}
	if err := r.redact.Object("nodes", node, kept); err != nil {
		return err
	}
	kept.Status.Conditions, kept.Status.Images = nil, nil
	known, ok := r.nodes[string(node.UID)]
	sum := hash(kept)
	if ok && known.Hash == sum {
		return nil
	}
	record := recording.Node{Object: kept, Appeared: r.objectSecond(node.CreationTimestamp.Time), Gone: recording.Never}
	r.nodes[string(node.UID)] = followObject{Key: recording.PodKey{Name: kept.Name}, Hash: sum}
	return r.file.AddNode(record)
}

// pod records a pod, as it was at a time or when it was deleted at this time, if it is new or changed.
func (r *followRecorder) pod(pod *v1.Pod, at time.Time, deleted bool) error {
	known, ok := r.pods[string(pod.UID)]
	times := recording.Pod{Ended: recording.EndOf(pod, r.secondOf(at), deleted, known.Ended, r.objectSecond)}
	if times.SetTimes(pod, r.objectSecond); times.Node != "" {
		times.Node = r.redact.Name(times.Node)
	}
	if !ok && times.Ended < 0 {
		return nil // it ended before the recording
	}
	kept := &v1.Pod{}
	if err := r.redact.Object("pods", unpack(pod), kept); err != nil {
		return err
	}
	r.kill(pod, kept, &known)
	kept.Status, kept.DeletionTimestamp, kept.Generation = v1.PodStatus{}, nil, 0
	sum := hash(kept, times)
	if ok && known.Hash == sum {
		r.pods[string(pod.UID)] = known
		return nil
	}
	times.Object = kept
	known.Key, known.Hash, known.Ended = times.Key(), sum, known.Ended || times.Ended != recording.Never
	r.pods[string(pod.UID)] = known
	return r.file.AddPod(times)
}

// kill records that the kernel killed a container of a pod for its memory, since the last kill that is known and the last view. kept
// has the name that is recorded.
func (r *followRecorder) kill(pod, kept *v1.Pod, known *followObject) {
	last := max(known.Killed, r.file.About().From.Unix()-1)
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		for _, ended := range []*v1.ContainerStateTerminated{status.State.Terminated, status.LastTerminationState.Terminated} {
			if ended == nil || ended.Reason != "OOMKilled" || r.clock(ended.FinishedAt.Time).Unix() <= last {
				continue
			}
			known.Killed = max(known.Killed, r.clock(ended.FinishedAt.Time).Unix())
			if len(r.kills) < recording.MaxKills {
				at := r.clock(ended.FinishedAt.Time).UTC().Truncate(time.Second)
				r.kills = append(r.kills, recording.Kill{Time: at, Namespace: kept.Namespace, Pod: kept.Name})
			}
		}
	}
}

// addUsage keeps the usage of the pods of a view until the next commit.
func (r *followRecorder) addUsage(v view) {
	step := r.step(v.at)
	if v.usage == nil || step >= recording.MaxSteps {
		r.unread++
		return
	}
	uids := map[string]string{}
	for _, pod := range v.pods {
		if p := r.pods[string(pod.UID)]; pod.Spec.NodeName != "" && !p.Ended {
			uids[pod.Namespace+"/"+pod.Name] = string(pod.UID)
		}
	}
	for _, reading := range v.usage.Pods {
		uid, ok := uids[reading.Namespace+"/"+reading.Name]
		if !ok || !reading.Valid() {
			continue
		}
		u := r.usage[uid]
		if u == nil {
			u = &followUsage{}
			r.usage[uid] = u
		}
		u.cpu.Set(step, reading.CPU)
		u.memory.Set(step, reading.Memory)
	}
}

// flush writes the usage of a pod.
func (r *followRecorder) flush(uid string) error {
	u := r.usage[uid]
	if u == nil {
		return nil
	}
	delete(r.usage, uid)
	return r.file.AddUsage(r.pods[uid].Key, u.cpu, u.memory)
}

// flushAll writes the usage of all pods.
func (r *followRecorder) flushAll() error {
	for _, uid := range slices.Sorted(maps.Keys(r.usage)) {
		if err := r.flush(uid); err != nil {
			return err
		}
	}
	return nil
}

// commit writes everything until the last view.
func (r *followRecorder) commit() error {
	if err := r.flushAll(); err != nil {
		return err
	}
	about := r.file.About()
	about.To = time.Unix(max(r.last, about.From.Unix()), 0)
	about.Missing, about.Kills = slices.Clone(r.notes), r.kills
	if r.unread > 0 {
		about.Missing = append(about.Missing, recording.Missing{
			What: "usage of pods",
			Why: fmt.Sprintf("could not be read at %d of %d steps (%.1f %%): gaps", r.unread, r.steps,
				math.Round(1000*float64(r.unread)/float64(max(r.steps, 1)))/10),
		})
	}
	if err := r.file.SetAbout(about); err != nil {
		return err
	}
	return r.file.Commit()
}
