package record

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
)

// tolerance is the number of seconds without an export after which an object no longer exists at the end of the recording.
func (r *recorder) tolerance() int64 { return 2 * int64(r.config.Step.Seconds()) }

// gap records that a window lacks the series of an object.
func (r *recorder) gap(name, what string, from, to time.Time) {
	for i := range r.gaps {
		if g := &r.gaps[i]; g.Series == name && g.To.Equal(from) {
			g.To = to
			return
		}
	}
	if len(r.gaps) < maxNotes {
		g := gap{Series: name, What: what, From: from, To: to, First: r.counts.Pods == 0 && r.counts.Nodes == 0}
		r.gaps = append(r.gaps, g)
		r.log(fmt.Sprintf("no data of %s from %s on", name, from.Format(time.RFC3339)))
	}
}

// updateNodes writes the nodes that are new or gone.
func (r *recorder) updateNodes(w *window, from, to time.Time, last bool) error {
	if len(w.nodes) == 0 {
		r.gap(nodeInfo, "nodes", from, to)
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(w.nodes)) {
		if err := r.updateNode(w.nodes[name], from); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.nodes)) {
		n := r.nodes[name]
		absent := w.nodes[name] == nil
		if absent || last && n.lastSeen+r.tolerance() < w.lastNode {
			if err := r.out.EndNode(r.redact.Name(name), r.secondOf(n.lastSeen)); err != nil {
				return err
			}
		}
		if absent {
			delete(r.nodes, name)
		}
	}
	return nil
}

// updateNode writes a node if it is new or changed.
func (r *recorder) updateNode(n *nodeState, from time.Time) error {
	known := r.nodes[n.object.Name]
	r.nodes[n.object.Name] = n
	if known != nil {
		n.created = cmp.Or(n.created, known.created)
	}
	n.created = cmp.Or(n.created, n.firstSeen, from.Unix())
	n.completeObject()
	n.hash = hash(n.object)
	isKnown := known != nil && (n.created <= known.created || n.created <= from.Unix())
	switch {
	case isKnown:
		n.created = known.created
		if n.hash == known.hash {
			return nil
		}
	case known != nil: // another node of the same name
		if err := r.out.EndNode(r.redact.Name(n.object.Name), r.secondOf(min(known.lastSeen, n.created))); err != nil {
			return err
		}
	}
	record := recording.Node{Object: &v1.Node{}, Appeared: r.secondOf(n.created), Gone: recording.Never}
	if err := r.redact.Object("nodes", n.object, record.Object); err != nil {
		return err
	}
	if !isKnown {
		r.counts.Nodes++
	}
	return r.out.AddNode(record)
}

// updatePods writes the pods that are new, changed or gone.
func (r *recorder) updatePods(w *window, from, to time.Time, last bool) error {
	if len(w.pods) == 0 {
		r.gap(podInfo, "pods", from, to)
		return nil
	}
	for _, p := range slices.SortedFunc(maps.Values(w.pods), byTime) {
		if err := r.updatePod(w, p, from); err != nil {
			return err
		}
	}
	for _, id := range slices.Sorted(maps.Keys(r.pods)) {
		p := r.pods[id]
		absent := w.pods[id] == nil
		if p.ended == 0 && (absent || last && p.lastSeen+r.tolerance() < w.lastPod) {
			p.ended = max(p.lastSeen, p.created)
			if err := r.out.EndPod(p.key, r.secondOf(p.ended)); err != nil {
				return err
			}
		}
		if absent {
			delete(r.pods, id)
		}
	}
	r.seenUntil = w.lastPod
	return nil
}

// byTime compares pods in the order in which they are written.
func byTime(a, b *podState) int {
	return cmp.Or(cmp.Compare(a.created, b.created), cmp.Compare(a.object.Namespace, b.object.Namespace),
		cmp.Compare(a.object.Name, b.object.Name), cmp.Compare(a.object.UID, b.object.UID))
}

// times returns the record of a pod with its times, without its object.
func (r *recorder) times(p *podState) recording.Pod {
	record := recording.Pod{
		Created: r.secondOf(p.created), Scheduled: r.secondOf(p.scheduled), Started: r.secondOf(p.started), Ended: r.secondOf(p.ended),
	}
	if p.node != "" {
		record.Node = r.redact.Name(p.node)
	}
	return record
}

// completeTimes sets the times of a pod that the series lack, and makes its times not decrease. Times that are known remain.
func (r *recorder) completeTimes(known, p *podState, from time.Time) {
	if known != nil {
		p.created, p.scheduled, p.started = known.created, cmp.Or(known.scheduled, p.scheduled), cmp.Or(known.started, p.started)
	}
	if max(p.created, p.scheduled, p.started) > p.lastSeen+r.tolerance() {
		r.counts.Clock++
		p.created, p.scheduled, p.started = min(p.created, p.lastSeen), min(p.scheduled, p.lastSeen), min(p.started, p.lastSeen)
	}
	p.created = cmp.Or(p.created, earliest(p.scheduled, p.started, p.firstSeen), from.Unix())
	if p.node == "" {
		p.scheduled, p.started = 0, 0
	} else {
		p.scheduled = max(cmp.Or(p.scheduled, p.started, p.firstBound), p.created)
		if p.started == 0 && !r.series[podStartTime] {
			p.started = p.scheduled
		}
	}
	if p.started != 0 {
		p.started = max(p.started, p.scheduled)
	}
	if p.ended != 0 {
		p.ended = max(min(p.ended, cmp.Or(p.completed, p.ended)), p.started, p.scheduled, p.created)
	}
}

// updatePod writes a pod if it is new or changed.
func (r *recorder) updatePod(w *window, p *podState, from time.Time) error {
	id := cmp.Or(string(p.object.UID), p.name)
	known := r.pods[id]
	var taints []v1.Taint
	if n := r.nodes[p.node]; n != nil {
		taints = n.object.Spec.Taints
	}
	p.completeObject(r.series[podTolerations], taints)
	r.completeTimes(known, p, from)
	switch {
	case known != nil:
		p.key, p.ended = known.key, cmp.Or(known.ended, p.ended)
	case p.ended != 0 && p.ended <= r.config.From.Unix():
		return nil // it ended before the recording
	case p.ended == 0 && r.reappeared(p.created):
		r.counts.Reappeared++
		p.created = from.Unix()
	}
	r.pods[id] = p
	if class := p.object.Spec.PriorityClassName; class != "" && systemPriorities[class] == 0 && len(r.counts.Classes) < maxNotes {
		r.counts.Classes[class] = true
	}
	err := r.writePod(w, known, p, from)
	p.object = nil
	return err
}

// writePod writes a pod that is new or that has changed.
func (r *recorder) writePod(w *window, known, p *podState, from time.Time) error {
	p.hash = hash(p.object)
	record := r.times(p)
	record.Object = &v1.Pod{}
	if err := r.redact.Object("pods", p.object, record.Object); err != nil {
		return err
	}
	p.key = record.Key()
	switch {
	case known == nil:
		r.counts.Pods++
		for _, c := range p.object.Spec.InitContainers {
			if c.RestartPolicy != nil {
				r.counts.Sidecars++
			}
		}
		return errors.Join(r.out.AddPod(record), r.addWorkload(w, p.object))
	case known.hash != p.hash:
		if known.started != 0 && known.started < from.Add(-r.config.Window).Unix() { // labels are added when a pod is bound
			r.counts.ChangedPods++
		}
	case known.scheduled == p.scheduled && known.started == p.started && known.ended == p.ended && known.node == p.node:
		return nil
	}
	return r.out.AddPod(record)
}

// reappeared reports whether a pod that is new in a window had already existed for long in the last window with pods.
func (r *recorder) reappeared(created int64) bool {
	return created > r.config.From.Unix() && created+int64(r.config.Window.Seconds()) < r.seenUntil
}

// maxObjects bounds the objects that are remembered.
const maxObjects = 500_000

// addObject writes an object other than a node or a pod unless it is written.
func (r *recorder) addObject(key string, object any) error {
	if r.objects[key] || len(r.objects) >= maxObjects {
		return nil
	}
	r.objects[key] = true
	var redacted json.RawMessage
	resource, _, _ := strings.Cut(key, "/")
	if err := r.redact.Object(resource, object, &redacted); err != nil {
		return err
	}
	return r.out.AddObject(redacted)
}

// addObjects writes the objects of a window.
func (r *recorder) addObjects(w *window) error {
	for _, key := range slices.Sorted(maps.Keys(w.objects)) {
		if err := r.addObject(key, w.objects[key]); err != nil {
			return err
		}
	}
	return nil
}

// addWorkload writes the ReplicaSet or StatefulSet of a pod unless it is written.
func (r *recorder) addWorkload(w *window, pod *v1.Pod) error {
	owner := metav1.GetControllerOfNoCopy(pod)
	if !hasSelector(owner) {
		return nil
	}
	var parent metav1.OwnerReference
	if owner.Kind == "ReplicaSet" {
		parent = w.replicaSets[pod.Namespace+"/"+owner.Name]
	}
	key := strings.Join([]string{strings.ToLower(owner.Kind) + "s", pod.Namespace, owner.Name}, "/")
	return r.addObject(key, workload(pod.Namespace, owner, parent))
}
