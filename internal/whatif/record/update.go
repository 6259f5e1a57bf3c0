package record

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

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
		if absent || last && n.seen.lastSeen+r.tolerance() < w.lastNode {
			gone := recording.Node{Appeared: recording.Never, Gone: r.since(n.seen.lastSeen)}
			if err := r.out.UpdateNode(n.ID, gone); err != nil {
				return err
			}
		}
		if absent {
			delete(r.nodes, name)
		}
	}
	return nil
}

// updateNode writes a node if it is new.
func (r *recorder) updateNode(seen *seenNode, from time.Time) error {
	sum := hash(seen.object())
	n := r.nodes[seen.name]
	if n != nil && seen.created > n.Created && seen.created > from.Unix() { // another node of the same name
		gone := recording.Node{Appeared: recording.Never, Gone: r.since(min(n.seen.lastSeen, seen.created))}
		if err := r.out.UpdateNode(n.ID, gone); err != nil {
			return err
		}
		n = nil
	}
	if n != nil {
		n.seen = seen
		if sum != n.Hash && !n.Changed {
			n.Changed = true
			r.counts.ChangedNodes++
		}
		return nil
	}
	object, err := r.redactNode(seen.object())
	if err != nil {
		return err
	}
	appeared := seen.created
	if appeared == 0 {
		appeared = from.Unix()
	}
	id, err := r.out.AddNode(recording.Node{Object: object, Appeared: r.since(appeared), Gone: recording.Never})
	r.nodes[seen.name] = &nodeState{ID: id, Created: seen.created, Hash: sum, seen: seen}
	r.counts.Nodes++
	return err
}

// updatePods writes the pods that are new, changed or gone.
func (r *recorder) updatePods(w *window, from, to time.Time, last bool) error {
	if len(w.pods) == 0 {
		r.gap(podInfo, "pods", from, to)
		return nil
	}
	seen := slices.SortedFunc(maps.Values(w.pods), byTime)
	for _, p := range seen {
		if err := r.updatePod(w, p, from); err != nil {
			return err
		}
	}
	for _, id := range slices.Sorted(maps.Keys(r.pods)) {
		p := r.pods[id]
		absent := w.pods[id] == nil
		if p.Ended == 0 && (absent || last && p.LastSeen+r.tolerance() < w.lastPod) {
			p.Ended = max(p.LastSeen, p.Created)
			if err := r.out.UpdatePod(p.ID, r.times(p)); err != nil {
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

// times returns the record of a pod with its times, without its object.
func (r *recorder) times(p *podState) recording.Pod {
	return recording.Pod{
		Created: r.since(p.Created), Scheduled: r.since(p.Scheduled), Started: r.since(p.Started), Ended: r.since(p.Ended),
		Node: r.nodeName(p.Node),
	}
}

// resolve returns the state of a pod according to the series.
func (r *recorder) resolve(seen *seenPod, from time.Time) podState {
	p := podState{
		Namespace: seen.namespace, Name: seen.name, Node: seen.node, LastSeen: seen.lastSeen,
		Created: seen.created, Scheduled: seen.scheduled, Started: seen.started,
	}
	if late := seen.lastSeen + r.tolerance(); p.Created > late || p.Scheduled > late || p.Started > late {
		r.counts.Clock++
		p.Created, p.Scheduled, p.Started = min(p.Created, seen.lastSeen), min(p.Scheduled, seen.lastSeen), min(p.Started, seen.lastSeen)
	}
	if p.Created == 0 {
		p.Created = from.Unix()
	}
	if p.Node == "" {
		p.Scheduled, p.Started = 0, 0
	}
	if p.Node != "" && p.Scheduled == 0 {
		p.Scheduled = max(p.Started, p.Created)
	}
	if p.Node != "" && p.Started == 0 && !r.series[podStartTime] {
		p.Started = p.Scheduled
	}
	if p.Scheduled != 0 {
		p.Scheduled = max(p.Scheduled, p.Created)
	}
	if p.Started != 0 {
		p.Started = max(p.Started, p.Scheduled)
	}
	p.Ended = seen.end(&p)
	return p
}

// end returns the time at which a pod finished, 0 if it did not.
func (p *seenPod) end(times *podState) int64 {
	if p.finished == 0 {
		return 0
	}
	end := p.finished
	if p.completed != 0 && p.completed < end {
		end = p.completed
	}
	return max(end, times.Started, times.Scheduled, times.Created)
}

// updatePod writes a pod if it is new or changed.
func (r *recorder) updatePod(w *window, seen *seenPod, from time.Time) error {
	id := seen.uid
	if id == "" {
		id = seen.namespace + "/" + seen.name
	}
	now := r.resolve(seen, from)
	known := r.pods[id]
	if known == nil && now.Ended != 0 && now.Ended <= r.config.From.Unix() {
		return nil // it ended before the recording
	}
	if known == nil && now.Ended == 0 && r.reappeared(now.Created) {
		r.counts.Reappeared++
		now.Created = from.Unix()
	}
	if known != nil {
		now.ID, now.Created = known.ID, known.Created
		if known.Ended != 0 {
			now.Ended = known.Ended
		}
	}
	r.pods[id] = &now
	return r.writePod(w, seen, known, &now, from)
}

// writePod writes a pod that is new or that has changed.
func (r *recorder) writePod(w *window, seen *seenPod, known, now *podState, from time.Time) error {
	object, err := r.podObject(seen)
	if err != nil {
		return err
	}
	now.Hash = hash(object)
	record := r.times(now)
	switch {
	case known == nil:
		record.Object = object
		if now.ID, err = r.out.AddPod(record); err != nil {
			return err
		}
		r.counts.Pods++
		return r.addWorkload(w, seen)
	case known.Hash != now.Hash:
		if known.Started != 0 && known.Started < from.Add(-r.config.Window).Unix() { // labels are added when a pod is bound
			r.counts.ChangedPods++
		}
		record.Object = object
		fallthrough
	case known.Scheduled != now.Scheduled, known.Started != now.Started, known.Ended != now.Ended, known.Node != now.Node:
		return r.out.UpdatePod(now.ID, record)
	}
	return nil
}

// reappeared reports whether a pod that is new in a window had already existed for long in the last window with pods.
func (r *recorder) reappeared(created int64) bool {
	return created > r.config.From.Unix() && created+int64(r.config.Window.Seconds()) < r.seenUntil
}

// podObject returns the object of a pod for the file.
func (r *recorder) podObject(seen *seenPod) (*v1.Pod, error) {
	var taints []v1.Taint
	if n := r.nodes[seen.node]; n != nil {
		taints = n.seen.taints
	}
	if class := seen.priorityClass; class != "" && systemPriorities[class] == 0 && len(r.counts.Classes) < maxNotes {
		r.counts.Classes[class] = true
	}
	return r.redactPod(seen.object(r.series[podTolerations], taints))
}

// maxObjects bounds the workloads that are remembered.
const maxObjects = 500_000

// addWorkload writes the ReplicaSet or StatefulSet of a pod unless it is written.
func (r *recorder) addWorkload(w *window, seen *seenPod) error {
	o, ok := seen.controller()
	if !ok || !hasSelector(o.kind) {
		return nil
	}
	key := strings.Join([]string{o.kind, seen.namespace, o.name}, "/")
	if r.objects[key] || len(r.objects) >= maxObjects {
		return nil
	}
	r.objects[key] = true
	var parent owner
	if o.kind == "ReplicaSet" {
		parent = w.replicaSets[seen.namespace+"/"+o.name]
	}
	object := workload(seen.namespace, o, parent)
	raw, err := json.Marshal(object)
	if err == nil && r.redacts != nil {
		var out json.RawMessage
		err = r.redacts.Object(strings.ToLower(o.kind)+"s", object, &out)
		raw = out
	}
	if err != nil {
		return err
	}
	return r.out.AddObject(raw)
}
