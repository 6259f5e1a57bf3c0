package fleet

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-k8s/plimsoll/api/placement/v1beta1"
	"github.com/plimsoll-k8s/plimsoll/internal/fleet/capacity"
	"github.com/plimsoll-k8s/plimsoll/internal/format"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// WorkloadSpec is the workload of a placement, as JSON in annotation v1beta1.AnnotationWorkload.
type WorkloadSpec struct {
	// Template is a pod template: an object of one of capacity.Kinds, or its metadata and spec without a kind. Exactly one of
	// Template and Ref must be set.
	Template json.RawMessage `json:"template,omitempty"`
	// Ref names an object in the namespace of the placement.
	Ref *WorkloadRef `json:"ref,omitempty"`
	// Replicas is the number of replicas in each selected cluster, in [0, capacity.MaxReplicas]. The default is that of the object,
	// or else 1.
	Replicas *int64 `json:"replicas,omitempty"`
	// RequireFit excludes clusters that the replicas do not fit, not even after a scale-up.
	RequireFit bool `json:"requireFit,omitempty"`
}

// WorkloadRef names an object with a pod template.
type WorkloadRef struct {
	// Kind is PodTemplate, Deployment or ManifestWork.
	Kind string `json:"kind"`
	Name string `json:"name"`
}

// referenceKinds are the kinds of objects that a placement can refer to.
var referenceKinds = []string{"PodTemplate", "Deployment", "ManifestWork"}

// maxWorkloadLength is the maximum length of the annotation, which the API server limits to 256 KiB with all others.
const maxWorkloadLength = 100_000

// WorkloadOf returns the workload of a placement, nil if it names none.
func WorkloadOf(p *v1beta1.Placement) (*WorkloadSpec, error) {
	text, given := p.Annotations[v1beta1.AnnotationWorkload]
	if !given {
		return nil, nil
	}
	spec := &WorkloadSpec{}
	if len(text) > maxWorkloadLength {
		return spec, fmt.Errorf("found %d bytes, at most %d are allowed", len(text), maxWorkloadLength)
	}
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(spec); err != nil {
		return spec, err
	}
	switch {
	case (len(spec.Template) > 0) == (spec.Ref != nil):
		return spec, errors.New("must have exactly one of template and ref")
	case spec.Ref != nil && !slices.Contains(referenceKinds, spec.Ref.Kind):
		return spec, fmt.Errorf("ref.kind: found %q: must be one of %s", spec.Ref.Kind, strings.Join(referenceKinds, ", "))
	case spec.Ref != nil && spec.Ref.Name == "":
		return spec, errors.New("ref.name: required")
	case spec.Replicas != nil:
		return spec, capacity.CheckReplicas(*spec.Replicas)
	}
	return spec, nil
}

// placementWorkload is the compiled workload of a placement.
type placementWorkload struct {
	// text and object are what it was compiled from.
	text   string
	object []byte
	// err is set if there is no workload to decide with.
	err        error
	workload   *capacity.Workload
	requireFit bool
	// fits are the fits without promises by summary of a cluster.
	fits map[*capacity.Summary]capacity.Fit
	// promises are the promises of the placement by cluster.
	promises map[string]Promise
}

// Promise is what a decision has promised to a workload: room for its replicas in a cluster.
type Promise struct {
	Replicas int64 `json:"replicas"`
	// Since is the Unix time in seconds of the decision, and Before the number of recent pods of the workload at that time.
	Since  int64 `json:"since"`
	Before int32 `json:"before,omitempty"`
}

// promiseTime is the time in seconds after which a promise ends although no summary shows its pods.
const promiseTime = 10 * 60

// SetWorkload sets the workload of a placement, from its annotation and the object that the annotation refers to, nil if it refers to none.
// err is why the object could not be read. It reports whether the workload is new.
func (s *State) SetWorkload(p *v1beta1.Placement, object []byte, err error) bool {
	key := types.NamespacedName{Namespace: p.Namespace, Name: p.Name}
	text, given := p.Annotations[v1beta1.AnnotationWorkload]
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.workloads[key]
	if !given {
		delete(s.workloads, key)
		return old != nil
	}
	if old != nil && old.text == text && bytes.Equal(old.object, object) && (old.err == nil) == (err == nil) {
		return false
	}
	next := &placementWorkload{text: text, object: object, fits: map[*capacity.Summary]capacity.Fit{}, promises: map[string]Promise{}}
	if old != nil {
		next.promises = old.promises
	}
	spec, invalid := WorkloadOf(p)
	next.requireFit = spec.RequireFit
	if next.err = errors.Join(invalid, err); next.err == nil {
		next.workload, next.err = compileWorkload(p, spec, object)
	}
	s.workloads[key] = next
	return true
}

// compileWorkload returns the workload of a valid spec.
func compileWorkload(p *v1beta1.Placement, spec *WorkloadSpec, object []byte) (*capacity.Workload, error) {
	field := "ref: "
	if spec.Ref == nil {
		field, object = "template: ", spec.Template
		var head struct{ Kind string }
		if err := json.Unmarshal(object, &head); err != nil {
			return nil, errors.New(field + err.Error())
		}
		if head.Kind == "" { // metadata and spec
			object = slices.Concat(
				[]byte(`{"kind":"PodTemplate","metadata":{"namespace":"`+p.Namespace+`"},"template":`),
				object,
				[]byte("}"),
			)
		}
	}
	w, err := capacity.ReadWorkload(object)
	if err != nil {
		return nil, errors.New(field + err.Error())
	}
	if spec.Replicas != nil {
		w.Replicas = *spec.Replicas
	}
	return w, nil
}

// RestorePromises sets the promises of a placement, which its PlacementDecisions have.
func (s *State) RestorePromises(key types.NamespacedName, promises map[string]Promise) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w := s.workloads[key]; w != nil && len(w.promises) == 0 {
		w.promises = promises
	}
}

// SetCapacity sets the capacity of a cluster, and returns the placements whose decisions can change.
func (s *State) SetCapacity(object *ClusterCapacity) []types.NamespacedName {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changeCapacity(object.Namespace, object)
}

// DeleteCapacity removes the capacity of a cluster.
func (s *State) DeleteCapacity(cluster string) []types.NamespacedName {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changeCapacity(cluster, nil)
}

func (s *State) changeCapacity(cluster string, object *ClusterCapacity) (keys []types.NamespacedName) {
	if old := s.capacities[cluster]; old != nil {
		for _, w := range s.workloads {
			delete(w.fits, old.Summary)
		}
	}
	if s.capacities[cluster] = object; object == nil {
		delete(s.capacities, cluster)
	}
	i, known := s.indexOf(cluster)
	if !known {
		return nil
	}
	for key := range s.workloads {
		if p := s.placements[key]; p != nil && p.policy != nil && s.contains(key.Namespace, p.policy, s.fleet[i]) {
			keys = append(keys, key)
		}
	}
	return keys
}

// Bounds of the age in seconds of summaries.
const (
	maxSummaryAge   = 15 * 60
	maxSummaryAhead = 2 * 60
)

// summaryOf returns the summary of a cluster, or why there is none.
func (s *State) summaryOf(cluster string, now int64) (*capacity.Summary, string) {
	object := s.capacities[cluster]
	switch {
	case object == nil:
		return nil, "has no ClusterCapacity"
	case object.Err != nil:
		return nil, "has a ClusterCapacity that is not valid: " + object.Err.Error()
	case now-object.Summary.ObservedAt > maxSummaryAge:
		return nil, "has a ClusterCapacity that is " + format.Age(time.Duration(now-object.Summary.ObservedAt)*time.Second) + " old"
	case object.Summary.ObservedAt-now > maxSummaryAhead:
		return nil, "has a ClusterCapacity from the future"
	}
	return object.Summary, ""
}

// promised is a promise to a workload.
type promised struct {
	Promise

	workload *capacity.Workload
}

// promisesExcept returns the promises to other placements than one by cluster, unless they have ended.
func (s *State) promisesExcept(except types.NamespacedName, now int64) map[string][]promised {
	out := map[string][]promised{}
	for key, other := range s.workloads {
		if key == except || other.workload == nil {
			continue
		}
		for cluster, promise := range other.promises {
			if now-promise.Since <= promiseTime {
				out[cluster] = append(out[cluster], promised{promise, other.workload})
			}
		}
	}
	return out
}

// missing returns the promised pods that a summary of the cluster does not show.
func missing(list []promised, summary *capacity.Summary) (parts []capacity.Part) {
	for _, promise := range list {
		for _, part := range promise.workload.Parts {
			pods := resources.Multiply(part.Pods, promise.Replicas)
			if summary.ObservedAt > promise.Since {
				pods -= int64(max(summary.Recent(part.Workload)-promise.Before, 0))
			}
			if pods > 0 {
				parts = append(parts, capacity.Part{Template: part.Template, Pods: pods})
			}
		}
	}
	return parts
}

// noFit is the fit of a cluster without a valid summary.
var noFit = capacity.Fit{Now: -1, WithSlack: -1, ScaledUp: -1, Wait: capacity.Unknown, Cost: capacity.Unknown}

// fitsOf returns the fit of each cluster of the fleet for the workload of a placement, nil if it has none.
func (s *State) fitsOf(key types.NamespacedName, now int64) []capacity.Fit {
	w := s.workloads[key]
	if w == nil || w.workload == nil {
		return nil
	}
	fits, others := make([]capacity.Fit, len(s.fleet)), s.promisesExcept(key, now)
	for i, cluster := range s.fleet {
		summary, _ := s.summaryOf(cluster.Name, now)
		if summary == nil {
			fits[i] = noFit
			continue
		}
		if parts := missing(others[cluster.Name], summary); len(parts) > 0 {
			fits[i] = w.workload.Fit(summary, parts)
			continue
		}
		fit, known := w.fits[summary]
		if !known {
			fit = w.workload.Fit(summary, nil)
			w.fits[summary] = fit
		}
		fits[i] = fit
	}
	return fits
}

// promise records the promises of a decision. Clusters that were selected before keep theirs.
func (s *State) promise(key types.NamespacedName, clusters []string, now int64) map[string]Promise {
	w := s.workloads[key]
	if w == nil || w.workload == nil {
		return nil
	}
	next := make(map[string]Promise, len(clusters))
	for _, cluster := range clusters {
		promise, known := w.promises[cluster]
		if !known || promise.Replicas != w.workload.Replicas {
			promise = Promise{Replicas: w.workload.Replicas, Since: now}
			if summary, _ := s.summaryOf(cluster, now); summary != nil && len(w.workload.Parts) > 0 {
				promise.Before = summary.Recent(w.workload.Parts[0].Workload)
			}
		}
		next[cluster] = promise
	}
	w.promises = next
	return next
}

// unfitReason returns in words why a workload does not fit a cluster.
func (s *State) unfitReason(key types.NamespacedName, cluster string, now int64) string {
	w := s.workloads[key]
	if w == nil || w.workload == nil {
		return ""
	}
	summary, absent := s.summaryOf(cluster, now)
	if summary == nil {
		return absent
	}
	parts := missing(s.promisesExcept(key, now)[cluster], summary)
	fit := w.workload.Fit(summary, parts)
	return fmt.Sprintf("%s %s of %d: %s", format.Of(fit.ScaledUp, "replica"), format.Form(fit.ScaledUp, "fits", "fit"), w.workload.Replicas,
		w.workload.Limit(summary, parts))
}

// addFits adds the workload of a placement to a request.
func (s *State) addFits(key types.NamespacedName, r *Request) {
	if r.Fits = s.fitsOf(key, r.Now); r.Fits != nil {
		r.Replicas, r.RequireFit = s.workloads[key].workload.Replicas, s.workloads[key].requireFit
	}
}

// maxUnfit is the number of clusters whose reasons are in the condition of a placement.
const maxUnfit = 3

// explainUnfit sets the reasons why the workload does not fit clusters: of all clusters if a preview has decided, else of the first ones.
func (s *State) explainUnfit(key types.NamespacedName, r *Result, request *Request) {
	if request.Fits == nil {
		return
	}
	r.unfit = map[string]string{}
	for _, i := range request.Members {
		if r.Decision.Clusters[i].Outcome == Unfit {
			r.Unfit++
			if name := r.Fleet[i].Name; len(r.unfit) < maxUnfit || request.Index != s.index {
				r.unfit[name] = s.unfitReason(key, name, request.Now)
				r.unfitNames = append(r.unfitNames, name)
			}
		}
	}
}

// unfitText returns the reasons why the workload does not fit clusters, "" if it fits all.
func (r *Result) unfitText() string {
	if r.Unfit == 0 {
		return ""
	}
	var reasons []string
	for _, name := range r.unfitNames[:min(len(r.unfitNames), maxUnfit)] {
		reasons = append(reasons, name+": "+r.unfit[name])
	}
	return fmt.Sprintf("; the workload does not fit %s (%s)", format.Of(r.Unfit, "cluster"), strings.Join(reasons, "; "))
}

// ReplicasOf returns the value of annotation v1beta1.AnnotationReplicas for a slice, "" if the placement names no workload.
func (r *Result) ReplicasOf(s *Slice) string {
	of := map[string]Promise{}
	for _, d := range s.Decisions {
		if promise, known := r.Promises[d.ClusterName]; known {
			of[d.ClusterName] = promise
		}
	}
	if len(of) == 0 {
		return ""
	}
	text, _ := json.Marshal(of) // of strings and numbers
	return string(text)
}

// forgetChosen changes a request as if no cluster was chosen before and the pods of the workload were not running.
func (s *State) forgetChosen(key types.NamespacedName, r *Request) {
	r.Chosen = nil
	w := s.workloads[key]
	if r.Fits == nil {
		return
	}
	for cluster, promise := range w.promises {
		i, known := s.indexOf(cluster)
		summary, _ := s.summaryOf(cluster, r.Now)
		if !known || summary == nil {
			continue
		}
		if r.Now-promise.Since > promiseTime || summary.Recent(w.workload.Parts[0].Workload) > promise.Before { // the pods are running
			f := &r.Fits[i]
			f.Now, f.WithSlack, f.ScaledUp = f.Now+promise.Replicas, f.WithSlack+promise.Replicas, f.ScaledUp+promise.Replicas
			if f.WithSlack >= w.workload.Replicas {
				f.Wait, f.NewNodes, f.Cost = 0, 0, 0
			}
		}
	}
}

// Move is a change of the decisions of a placement.
type Move struct {
	// From and To are the clusters that are no longer selected and that are selected instead, sorted.
	From []string `json:"from"`
	To   []string `json:"to"`
	// Gain is by how much the sum of the totals of the selected clusters is higher.
	Gain int64 `json:"gain"`
}

// MoveTo returns the change from the clusters that are selected now to those of a result of PreviewAnew, nil if there is none that
// gains anything.
func (r *Result) MoveTo(selected []string) *Move {
	if r.Decision == nil || r.KeepDecisions {
		return nil
	}
	m := &Move{From: []string{}, To: []string{}}
	for i, cluster := range r.Fleet {
		is, was := r.Decision.Clusters[i].Outcome == Chosen, slices.Contains(selected, cluster.Name)
		switch {
		case is && !was:
			m.To, m.Gain = append(m.To, cluster.Name), m.Gain+r.Decision.Clusters[i].Total
		case was && !is:
			m.From, m.Gain = append(m.From, cluster.Name), m.Gain-r.Decision.Clusters[i].Total
		}
	}
	if len(m.From) == 0 || m.Gain <= 0 {
		return nil
	}
	return m
}
