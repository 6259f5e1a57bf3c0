package fleet

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/plimsoll-k8s/plimsoll/api/placement/v1beta1"
	"github.com/plimsoll-k8s/plimsoll/internal/fleet/fit"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// referenceVersions are the versions of the kinds of objects that a placement can refer to.
var referenceVersions = map[string]schema.GroupVersion{
	"PodTemplate":  {Version: "v1"},
	"Deployment":   {Group: "apps", Version: "v1"},
	"ManifestWork": {Group: "work.open-cluster-management.io", Version: "v1"},
}

// maxWorkloadLength is the maximum length of the template and of the annotation, which the API server limits to 256 KiB with all others.
const maxWorkloadLength = 100_000

// workloadPath returns the field of a placement that names its workload.
func workloadPath(p *v1beta1.Placement) *field.Path {
	if p.Spec.Workload != nil {
		return field.NewPath("spec", "workload")
	}
	return field.NewPath("metadata", "annotations").Key(v1beta1.AnnotationWorkload)
}

// WorkloadOf returns the workload of a placement, nil if it names none. The error names the field.
func WorkloadOf(p *v1beta1.Placement) (*v1beta1.WorkloadSpec, error) {
	spec, path := p.Spec.Workload, workloadPath(p)
	text, given := p.Annotations[v1beta1.AnnotationWorkload]
	switch {
	case !given && spec == nil:
		return nil, nil
	case given && spec != nil:
		return spec, fmt.Errorf("%s: annotation %s is set, too: only one of them is allowed", path, v1beta1.AnnotationWorkload)
	case len(text) > maxWorkloadLength:
		return &v1beta1.WorkloadSpec{}, fmt.Errorf("%s: found %d bytes, at most %d are allowed", path, len(text), maxWorkloadLength)
	case given:
		spec = &v1beta1.WorkloadSpec{}
		if err := resources.DecodeJSON([]byte(text), spec); err != nil {
			return spec, fmt.Errorf("%s: %w", path, err)
		}
	}
	if errs := spec.Validate(path); len(errs) > 0 {
		return spec, errors.New(joinErrors(errs))
	}
	if spec.Template != nil && len(spec.Template.Raw) > maxWorkloadLength {
		return spec, fmt.Errorf("%s.template: found %d bytes, at most %d are allowed", path, len(spec.Template.Raw), maxWorkloadLength)
	}
	return spec, nil
}

// ReferenceOf returns the object that the workload of a placement refers to, without its content; nil if there is none.
func ReferenceOf(p *v1beta1.Placement) *unstructured.Unstructured {
	spec, err := WorkloadOf(p)
	if err != nil || spec == nil || spec.Ref == nil {
		return nil
	}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(referenceVersions[spec.Ref.Kind].WithKind(spec.Ref.Kind))
	object.SetNamespace(p.Namespace)
	object.SetName(spec.Ref.Name)
	return object
}

// placementWorkload is the compiled workload of a placement.
type placementWorkload struct {
	// spec, object and cause are what it was compiled from: cause is why one of them is missing, in words.
	spec   *v1beta1.WorkloadSpec
	object []byte
	cause  string
	// err is set if there is no workload to decide with. It names the field.
	err error
	// workload is the last valid workload, nil if there was none.
	workload *fit.Workload
	// fits are the last fits by summary of a cluster.
	fits map[*fit.Summary]cachedFit
	// promises are the promises of the placement by cluster, and notes the warnings about them.
	promises map[string]podPromise
	notes    map[string]note
}

// cachedFit is a fit of replicas in a cluster beside the pods that were promised there and the running replicas.
type cachedFit struct {
	fit.Fit

	replicas int64
	promised []fit.Part
	running  int64
}

// podPromise is what a decision has promised to a workload: capacity for its replicas in a cluster.
type podPromise struct {
	Replicas int64 `json:"replicas"`
	// Waiting are the replicas that did not fit at the time of the decision, or exceeded the share of the namespace: no capacity is set
	// aside for them.
	Waiting int64 `json:"waiting,omitempty"`
	// Since is the Unix time in seconds of the decision, and Before the number of recent pods of the workload at that time.
	Since  int64 `json:"since"`
	Before int32 `json:"before,omitempty"`
}

const (
	// promiseTime is the time in seconds after which a promise ends although no summary shows its pods.
	promiseTime = 10 * 60
	// recentTime is the time in seconds for which summaries show pods as recent.
	recentTime = 15 * 60
)

// hasEnded reports whether the time of the promise is over, or has not begun because the clock was set back since.
func (p *podPromise) hasEnded(now int64) bool { return max(now-p.Since, p.Since-now) > promiseTime }

// podsShown returns how many pods of a template, beyond the ones before the promise, a summary shows.
func (p *podPromise) podsShown(summary *fit.Summary, template *fit.Template) int64 {
	return int64(max(summary.Recent(template.Workload)-p.Before, 0))
}

// note is a warning about a promise in a cluster. The text is empty for kind fitted. limit is the text of the limit that is exceeded.
type note struct {
	kind        noteKind
	text, limit string
}

type noteKind uint8

const (
	// fitted means that the replicas of the promise fit before they run, noLongerFits that they did, neverSeen that they did not run
	// until the promise ended, exceedsLimit that they exceed the limit of the cluster, and unknownCapacity that the cluster has no valid
	// ClusterCapacity.
	fitted noteKind = 1 + iota
	noLongerFits
	neverSeen
	exceedsLimit
	unknownCapacity
	// exceedsShare means that some replicas wait, which may be because of the share of the namespace.
	exceedsShare
)

// contentOf returns the fields of an object that matter for its pods as JSON, nil without an object.
func contentOf(object *unstructured.Unstructured) []byte {
	if object == nil {
		return nil
	}
	raw, _ := json.Marshal(map[string]any{ // of values from JSON
		"kind": object.GetKind(), "metadata": map[string]string{"namespace": object.GetNamespace(), "name": object.GetName()},
		"spec": object.Object["spec"], "template": object.Object["template"],
	})
	return raw
}

// compileWorkload returns the workload of a valid spec. Its pods count for the namespace of the placement, whatever the template says: who
// may write in one namespace of the hub must neither use nor learn what another one has. The error names the field.
func compileWorkload(p *v1beta1.Placement, spec *v1beta1.WorkloadSpec, object []byte) (*fit.Workload, error) {
	path := workloadPath(p).Child("ref")
	if spec.Ref == nil {
		path, object = workloadPath(p).Child("template"), spec.Template.Raw
		var head metav1.PartialObjectMetadata
		if err := json.Unmarshal(object, &head); err != nil {
			return nil, fmt.Errorf("%s: %w", path, resources.DecodingError(object, &head, err))
		}
		if head.Kind == "" { // metadata and spec
			path = workloadPath(p)
			metadata, _ := json.Marshal(map[string]string{"namespace": head.Namespace, "name": head.Name})
			object = slices.Concat([]byte(`{"kind":"PodTemplate","metadata":`), metadata, []byte(`,"template":`), object, []byte("}"))
		}
	}
	w, err := fit.ReadWorkload(object)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	w.SetNamespace(p.Namespace)
	if spec.Replicas != nil {
		w.Replicas = *spec.Replicas
	}
	return w, nil
}
