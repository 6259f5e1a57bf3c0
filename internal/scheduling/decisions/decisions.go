// Package decisions keeps the last decisions of a scheduler: the scores of the selected node and of the next best node, and what was known
// of both. It adds nothing to the scoring of nodes.
package decisions

import (
	"encoding/json"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// DefaultKept is the default number of decisions that are kept. Each takes about 2 KB.
const DefaultKept = 10_000

// Version and kind of the document.
const (
	apiVersion = "decisions.plimsoll.dev/v1"
	listKind   = "Decisions"
	// ConfigzName is the key of the document on the scheduler's page /configz.
	ConfigzName = "plimsoll-decisions"
)

// List is the document.
type List struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Items are the decisions, the newest first.
	Items []Decision `json:"items"`
}

// Decision is the decision on a pod.
type Decision struct {
	Time      time.Time `json:"time"`
	Namespace string    `json:"namespace"`
	Pod       string    `json:"pod"`
	UID       types.UID `json:"uid"`
	Scheduler string    `json:"scheduler"`
	// Scored is the number of nodes that were scored. It is 0 if only one node was feasible, or the node of an equal pod was used.
	Scored int        `json:"scored"`
	Node   ScoredNode `json:"node"`
	// Next is the node with the next highest score, nil if no other node was scored.
	Next *ScoredNode `json:"next,omitempty"`
}

// ScoredNode is a node as it was scored, before the pod was added.
type ScoredNode struct {
	Name   string  `json:"name"`
	Total  int64   `json:"total"`
	Scores []Score `json:"scores,omitempty"`
	// Requested and allocatable amounts in millicores and bytes.
	CPURequested      int64 `json:"cpuRequested"`
	CPUAllocatable    int64 `json:"cpuAllocatable"`
	MemoryRequested   int64 `json:"memoryRequested"`
	MemoryAllocatable int64 `json:"memoryAllocatable"`
	Pods              int   `json:"pods"`
	// Load is what was measured, nil if the scheduler knew none.
	Load *Load `json:"load,omitempty"`
}

// Score is the score of a plugin: Raw as the plugin returned it, and Weighted after normalization, times the weight.
type Score struct {
	Plugin   string `json:"plugin"`
	Raw      int64  `json:"raw"`
	Weighted int64  `json:"weighted"`
}

// Load is the measured load of a node, as fractions of its capacity.
type Load struct {
	CPU        float64 `json:"cpu"`
	Memory     float64 `json:"memory"`
	AgeSeconds float64 `json:"ageSeconds"`
}

// Recorder keeps the last decisions. It may be used by several goroutines.
type Recorder struct {
	// load returns the load that the scheduler knows of a node.
	load func(node string) *Load

	mu   sync.Mutex
	ring []Decision
	next int
	// scored has the scores of the pod that is being scheduled.
	scored scored
}

// scored has the scores of a scheduling cycle.
type scored struct {
	uid   types.UID
	nodes []fwk.NodePluginScores
}

// New returns a recorder of a number of decisions, at least 1. load returns the load of a node that the scheduler knows, nil for none.
func New(kept int, load func(node string) *Load) *Recorder {
	return &Recorder{ring: make([]Decision, 0, kept), load: load}
}

// Wrap makes a profile record its decisions.
func (r *Recorder) Wrap(f framework.Framework) framework.Framework { return &recording{f, r} }

// setScored keeps the scores of a pod until it is reserved. Extenders may add to them.
func (r *Recorder) setScored(uid types.UID, nodes []fwk.NodePluginScores) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.scored = scored{uid, nodes}
}

// add records the node of a pod.
func (r *Recorder) add(pod *v1.Pod, node string, nodes fwk.NodeInfoLister) {
	d := Decision{
		Time:      time.Now(),
		Namespace: pod.Namespace,
		Pod:       pod.Name,
		UID:       pod.UID,
		Scheduler: pod.Spec.SchedulerName,
		Node:      ScoredNode{Name: node},
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var best *fwk.NodePluginScores
	if r.scored.uid == pod.UID {
		d.Scored = len(r.scored.nodes)
		for i := range r.scored.nodes {
			n := &r.scored.nodes[i]
			switch {
			case n.Name == node:
				d.Node.setScores(n)
			case best == nil || n.TotalScore > best.TotalScore:
				best = n
			}
		}
	}
	r.describe(&d.Node, nodes)
	if best != nil {
		d.Next = &ScoredNode{Name: best.Name}
		d.Next.setScores(best)
		r.describe(d.Next, nodes)
	}
	r.scored = scored{}
	if len(r.ring) < cap(r.ring) {
		r.ring = append(r.ring, d)
		return
	}
	r.ring[r.next] = d
	r.next = (r.next + 1) % len(r.ring)
}

// setScores copies the scores of a node.
func (n *ScoredNode) setScores(scores *fwk.NodePluginScores) {
	n.Total, n.Scores = scores.TotalScore, make([]Score, 0, len(scores.Scores))
	for i, s := range scores.Scores {
		score := Score{Plugin: s.Name, Weighted: s.Score}
		if i < len(scores.RawScores) && scores.RawScores[i].Name == s.Name {
			score.Raw = scores.RawScores[i].Score
		}
		n.Scores = append(n.Scores, score)
	}
}

// describe sets what was known of a node.
func (r *Recorder) describe(n *ScoredNode, nodes fwk.NodeInfoLister) {
	n.Load = r.load(n.Name)
	info, err := nodes.Get(n.Name)
	if err != nil {
		return
	}
	requested, allocatable := info.GetRequested(), info.GetAllocatable()
	n.CPURequested, n.CPUAllocatable = requested.GetMilliCPU(), allocatable.GetMilliCPU()
	n.MemoryRequested, n.MemoryAllocatable = requested.GetMemory(), allocatable.GetMemory()
	n.Pods = len(info.GetPods())
}

// List returns the decisions.
func (r *Recorder) List() List {
	r.mu.Lock()
	defer r.mu.Unlock()
	items := append(slices.Clone(r.ring[r.next:]), r.ring[:r.next]...)
	slices.Reverse(items)
	return List{APIVersion: apiVersion, Kind: listKind, Items: items}
}

// MarshalJSON returns the list as JSON.
func (r *Recorder) MarshalJSON() ([]byte, error) { return json.Marshal(r.List()) }

// GetObjectKind implements runtime.Object, so that /configz serves the list.
func (r *Recorder) GetObjectKind() schema.ObjectKind {
	kind := &runtime.TypeMeta{APIVersion: apiVersion, Kind: listKind}
	return kind.GetObjectKind()
}

// DeepCopyObject implements runtime.Object. It returns the recorder: a copy would not have later decisions.
func (r *Recorder) DeepCopyObject() runtime.Object { return r }
