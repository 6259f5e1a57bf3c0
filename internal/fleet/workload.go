package fleet

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
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
		decoder := json.NewDecoder(strings.NewReader(text))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(spec); err != nil {
			return spec, fmt.Errorf("%s: %w", path, resources.ExplainDecoding([]byte(text), spec, err))
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

// SetWorkload sets the workload of a placement, from its spec or annotation and the object that the workload refers to, nil if it refers
// to none. err is why the object could not be read. It reports whether the workload is new.
func (s *State) SetWorkload(p *v1beta1.Placement, object *unstructured.Unstructured, err error) bool {
	spec, invalid := WorkloadOf(p)
	raw := contentOf(object)
	if err != nil {
		err = fmt.Errorf("%s: %w", workloadPath(p).Child("ref"), err)
	}
	err = errors.Join(invalid, err)
	cause := fmt.Sprint(err)
	s.mu.Lock()
	defer s.mu.Unlock()
	state := s.placementOf(p)
	old := state.workload
	if spec == nil {
		s.deleteWorkload(state)
		return old != nil
	}
	if old != nil && old.cause == cause && bytes.Equal(old.object, raw) && equality.Semantic.DeepEqual(old.spec, spec) {
		return false
	}
	next := placementWorkload{spec: spec, object: raw, cause: cause, err: err, fits: map[*fit.Summary]cachedFit{}}
	if old == nil {
		old = &placementWorkload{}
		state.workload = old
	}
	// The promises of a workload that is no longer valid count.
	next.workload, next.promises = old.workload, old.promises
	if err == nil {
		var w *fit.Workload
		if w, next.err = compileWorkload(p, spec, raw); next.err == nil {
			next.workload = w
		}
	}
	*old = next
	return true
}

// deleteWorkload removes the workload of a placement with its promises, if it names one.
func (s *State) deleteWorkload(p *placementState) {
	if p.workload != nil {
		s.setPromises(p.workload, nil)
		p.workload = nil
	}
}

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
			return nil, fmt.Errorf("%s: %w", path, resources.ExplainDecoding(object, &head, err))
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
