package slack

import (
	"cmp"
	"context"
	"hash/fnv"
	"math"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/slack"
)

const (
	// maxRecordedSeconds and maxRecords limit the history of a pool.
	maxRecordedSeconds = 7 * 24 * 3600
	maxRecords         = 100_000
)

// podID identifies a pod by a hash of its UID and name, and the second of its creation. Pods with equal IDs count as one.
type podID struct{ hash, created uint32 }

// podRecord is a pod that got a node of the pool, in 28 bytes. Times are seconds since 1970.
type podRecord struct {
	podID

	// gated is the number of seconds after the creation for which scheduling gates held the pod, as far as the controller has seen it.
	gated uint32
	// scheduled is the time at which the pod got its node, and end the time at which it ended, 0 while it runs.
	scheduled, end uint32
	// milliCPU and mebibytes are the requests.
	milliCPU, mebibytes uint32
}

// arrival returns the time since which the pod could be scheduled. The clock of a scheduler may be behind the clock of the API server.
func (p *podRecord) arrival() uint32 { return min(p.created+p.gated, p.scheduled) }

// wait returns the seconds from the arrival to the node.
func (p *podRecord) wait() int64 { return int64(p.scheduled - p.arrival()) }

// secondsOf returns a time in seconds since 1970.
func secondsOf(t time.Time) uint32 { return clamp(t.Unix()) }

// clamp returns the nearest number that a record can hold.
func clamp(n int64) uint32 { return uint32(min(max(n, 0), math.MaxUint32)) }

// idOf returns the ID of a pod.
func idOf(pod *v1.Pod) podID {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(string(pod.UID) + resources.Name(pod)))
	return podID{max(hash.Sum32(), 1), secondsOf(pod.CreationTimestamp.Time)}
}

// recordOf returns the record of a pod that exists, or was deleted now. It returns false for pods that are not recorded:
// placeholders, pods of DaemonSets, static pods, and pods that no scheduler has given a node (condition PodScheduled).
func recordOf(pod *v1.Pod, isDeleted bool, now time.Time) (p podRecord, ok bool) {
	i := slices.IndexFunc(pod.Status.Conditions, func(c v1.PodCondition) bool {
		return c.Type == v1.PodScheduled && c.Status == v1.ConditionTrue && !c.LastTransitionTime.IsZero()
	})
	if i < 0 || pod.Spec.NodeName == "" || pod.Labels[slack.PlaceholderLabel] != "" || resources.IsNodeBound(pod) {
		return p, false
	}
	requests := resources.CPUAndMemory(resources.Requests(pod))
	p = podRecord{
		podID: idOf(pod), scheduled: max(secondsOf(pod.Status.Conditions[i].LastTransitionTime.Time), 1),
		milliCPU: clamp(requests.CPU), mebibytes: clamp(resources.DivUp(requests.Memory, 1<<20)),
	}
	if isDeleted || resources.IsFinished(pod) {
		p.end = max(p.scheduled, endOf(pod, now))
	}
	return p, true
}

// endOf returns the end of the last container of a pod that is finished or deleted. A finished pod without containers that ended never ran.
func endOf(pod *v1.Pod, now time.Time) (end uint32) {
	for _, c := range pod.Status.ContainerStatuses {
		if c.State.Terminated != nil {
			end = max(end, secondsOf(c.State.Terminated.FinishedAt.Time))
		}
	}
	if end == 0 && !resources.IsFinished(pod) {
		return secondsOf(now)
	}
	return min(end, secondsOf(now))
}

// recorder records the pods of the pool of one policy, and the placeholders that the pool has held. It is not safe for
// concurrent use.
type recorder struct {
	// from is the time since which the records are complete: older pods are recorded only if they ran at that time.
	from uint32
	// ended is the time up to which a previous process has recorded the pods that ended.
	ended   uint32
	records []podRecord
	// index has the positions of the records that may change.
	index map[podID]int32
	// running is the number of pods that have not ended.
	running int

	held
	// changed reports whether the recorder differs from the saved one.
	changed bool
}

func newRecorder(now time.Time) *recorder {
	return &recorder{from: secondsOf(now), index: map[podID]int32{}}
}

// clone returns a copy for encode.
func (r *recorder) clone() *recorder {
	return &recorder{from: r.from, records: slices.Clone(r.records), held: held{Hours: slices.Clone(r.Hours)}}
}

// observe records a pod that is on a node of the pool, in any order of its events. Events of other pods are ignored unless the pod
// is known, and so are pods beyond maxRecords that run at the same time. It reports whether the event is the first one of a pod that got
// its node since the recording began, or since the previous process has saved it.
func (r *recorder) observe(pod podRecord, isInPool bool) (counted bool) {
	if i, known := r.index[pod.podID]; known {
		if p := &r.records[i]; p.end == 0 && pod.end != 0 {
			p.end, r.changed = max(pod.end, p.scheduled), true
			r.running--
		}
		return false
	}
	begin := max(r.from, r.ended)
	if !isInPool || pod.end != 0 && pod.end <= begin || r.running >= maxRecords {
		return false
	}
	if len(r.records) >= maxRecords {
		r.dropOldest(maxRecords / 10)
	}
	if pod.end == 0 {
		r.running++
	}
	r.index[pod.podID], r.changed = int32(len(r.records)), true
	r.records = append(r.records, pod)
	return pod.scheduled >= begin
}

// endMissing ends the pods that are not among the existing ones at a time: they ended while no controller ran.
func (r *recorder) endMissing(existing map[podID]bool, at uint32) {
	for i := range r.records {
		if p := &r.records[i]; p.end == 0 && !existing[p.podID] {
			p.end = max(p.scheduled, at)
			r.running--
		}
	}
}

// trim removes the pods that ended more than seven days ago.
func (r *recorder) trim(now uint32) {
	if oldest := now - min(now, maxRecordedSeconds); oldest > r.from {
		r.from = oldest
		r.removeEnded()
	}
}

// dropOldest removes a number of pods, which ended first. The recording then begins at the end of the last of these. It returns
// false if no pod has ended.
func (r *recorder) dropOldest(n int) bool {
	var ends []uint32
	for i := range r.records {
		if end := r.records[i].end; end != 0 {
			ends = append(ends, end)
		}
	}
	if len(ends) == 0 {
		return false
	}
	slices.Sort(ends)
	r.from = max(r.from, ends[min(max(n, 1), len(ends))-1])
	r.removeEnded()
	return true
}

// removeEnded removes the pods that ended before the recording begins.
func (r *recorder) removeEnded() {
	r.records = slices.DeleteFunc(r.records, func(p podRecord) bool { return p.end != 0 && p.end <= r.from })
	r.reindex()
}

// reindex sets index and running. Pods of a previous process that ended have no hash, and do not change.
func (r *recorder) reindex() {
	r.index, r.running = make(map[podID]int32, len(r.records)), 0
	for i := range r.records {
		if r.records[i].hash != 0 {
			r.index[r.records[i].podID] = int32(i)
		}
		if r.records[i].end == 0 {
			r.running++
		}
	}
}

// history returns the recorded pods.
func (r *recorder) history(now time.Time) *slack.History {
	r.trim(secondsOf(now))
	h := &slack.History{Start: time.Unix(int64(r.from), 0).UTC(), Seconds: max(0, now.Unix()-int64(r.from))}
	for i := range r.records {
		p := &r.records[i]
		if int64(p.arrival())-int64(r.from) >= h.Seconds {
			continue // within this second
		}
		pod := slack.HistoryPod{
			Arrival: int64(p.arrival()) - int64(r.from), Duration: math.MaxInt64,
			MilliCPU: int64(p.milliCPU), Memory: int64(p.mebibytes) << 20,
		}
		switch isOld := p.arrival() < r.from; {
		case p.end != 0 && isOld:
			pod.Duration = int64(p.end) - int64(r.from)
		case p.end != 0:
			pod.Duration = int64(p.end - p.scheduled)
		}
		h.Pods = append(h.Pods, pod)
	}
	slices.SortStableFunc(h.Pods, func(a, b slack.HistoryPod) int { return cmp.Compare(a.Arrival, b.Arrival) })
	return h
}

// load sets all nodes of the cache, and records the pods of the pool. c.mu must be locked.
func (c *Controller) load(ctx context.Context, t *policyTracker) error {
	var nodes v1.NodeList
	if err := c.client.List(ctx, &nodes, client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	now, existing := c.now(), map[podID]bool{}
	for i := range nodes.Items {
		t.SetNode(&nodes.Items[i], now)
	}
	for _, id := range t.PodNames() {
		namespace, name, _ := strings.Cut(id, "/")
		var pod v1.Pod
		key := client.ObjectKey{Namespace: namespace, Name: name}
		if err := c.client.Get(ctx, key, &pod, &client.GetOptions{UnsafeDisableDeepCopy: new(true)}); apierrors.IsNotFound(err) {
			continue // its event follows
		} else if err != nil {
			return err
		}
		if p, ok := recordOf(&pod, false, now); ok {
			existing[p.podID] = true
			c.record(t, &pod, p)
		}
	}
	t.recorder.endMissing(existing, t.recorder.ended)
	return nil
}

// record passes the record of a pod, with the seconds of scheduling gates, to the recorder of a policy. c.mu must be locked.
func (c *Controller) record(t *policyTracker, pod *v1.Pod, p podRecord) {
	if until := c.ungated[p.podID]; until > p.created {
		p.gated = until - p.created
	}
	if t.recorder.observe(p, t.HasNode(pod.Spec.NodeName)) {
		c.metrics.waits.WithLabelValues(t.Policy().Name).Observe(float64(p.wait()))
	}
}

// observeGates records until when scheduling gates hold a pod. c.mu must be locked.
func (c *Controller) observeGates(pod *v1.Pod) {
	isGated := len(pod.Spec.SchedulingGates) > 0
	if !isGated && len(c.ungated) == 0 {
		return
	}
	id := idOf(pod)
	if until, isKnown := c.ungated[id]; isGated {
		c.ungated[id] = 0
	} else if isKnown && until == 0 {
		c.ungated[id] = secondsOf(c.now())
	}
}
