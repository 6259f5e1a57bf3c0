package fit

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	kubejson "sigs.k8s.io/json"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// Kinds are the kinds of objects that ReadWorkload accepts.
var Kinds = []string{"Pod", "PodTemplate", "Deployment", "ReplicaSet", "StatefulSet", "Job", "ManifestWork"}

// workloadObject has the fields of all Kinds that matter, but for the spec of a Pod.
type workloadObject struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	// Template is the template of a PodTemplate.
	Template *v1.PodTemplateSpec `json:"template"`
	Spec     struct {
		Replicas    *int64               `json:"replicas"`
		Parallelism *int64               `json:"parallelism"`
		Completions *int64               `json:"completions"`
		Suspend     bool                 `json:"suspend"`
		Template    *v1.PodTemplateSpec  `json:"template"`
		Selector    metav1.LabelSelector `json:"selector"`
		Workload    struct {
			Manifests []json.RawMessage `json:"manifests"`
		} `json:"workload"`
	} `json:"spec"`
}

// ReadWorkload returns the workload of an object of one of Kinds in JSON. The replicas of a ManifestWork are one, with the pods of all
// objects in it. The error names the field.
func ReadWorkload(object []byte) (*Workload, error) {
	if err := resources.CheckQuantities(object); err != nil {
		return nil, err
	}
	var o workloadObject
	err := decode(object, &o)
	template, path := o.Template, "template"
	switch o.Kind {
	case "Pod":
		var pod v1.Pod
		err = decode(object, &pod)
		template, path = &v1.PodTemplateSpec{ObjectMeta: pod.ObjectMeta, Spec: pod.Spec}, ""
	case "PodTemplate":
	case "ManifestWork", "Deployment", "ReplicaSet", "StatefulSet", "Job":
		template, path = o.Spec.Template, "spec.template"
	default:
		if err == nil {
			err = fmt.Errorf("kind: found %q: must be one of %s", o.Kind, strings.Join(Kinds, ", "))
		}
		return nil, err
	}
	if err != nil {
		return nil, err
	}
	if o.Kind == "ManifestWork" {
		return readManifests(o.Spec.Workload.Manifests)
	}
	if template == nil {
		return nil, fmt.Errorf("%s: required", path)
	}
	t, err := NewTemplate(types.NamespacedName{Namespace: o.Namespace, Name: o.Name}, template)
	if err != nil {
		return nil, fmt.Errorf("%s%w", strings.TrimPrefix(path+".", "."), err)
	}
	own := o.Spec.Selector.MatchLabels
	if len(own) == 0 {
		own = template.Labels
	}
	t.setShared(own)
	unknown := unknownFields(object, path)
	if selector, err := metav1.LabelSelectorAsSelector(&o.Spec.Selector); err != nil {
		unknown = append(unknown, fmt.Sprintf("spec.selector: %v", err))
	} else if !selector.Matches(labels.Set(template.Labels)) {
		unknown = append(unknown, fmt.Sprintf("metadata.labels: must have the labels of the selector, %s", selector))
	}
	replicas := o.replicas()
	return &Workload{Parts: []Part{{t, 1}}, Replicas: replicas, Unknown: unknown}, CheckReplicas(replicas)
}

// replicas returns the number of pods at once.
func (o *workloadObject) replicas() int64 {
	if o.Spec.Suspend && o.Kind == "Job" {
		return 0
	}
	given := ptr.Deref(o.Spec.Parallelism, ptr.Deref(o.Spec.Replicas, 1))
	return min(given, ptr.Deref(o.Spec.Completions, given))
}

// SetDefaultNamespace sets the namespace of the objects of the workload that have none.
func (w *Workload) SetDefaultNamespace(namespace string) {
	for i := range w.Parts {
		t := w.Parts[i].Template
		t.Workload.Namespace = cmp.Or(t.Workload.Namespace, namespace)
	}
}

// SetNamespace sets the namespace of all objects of the workload.
func (w *Workload) SetNamespace(namespace string) {
	for i := range w.Parts {
		w.Parts[i].Workload.Namespace = namespace
	}
}

// unknownFields returns the fields of the template at a path of an object in JSON, "" for a Pod, that pod templates do not have.
func unknownFields(object []byte, path string) (fields []string) {
	var into any = &v1.PodTemplateSpec{}
	if path == "" {
		into = &v1.Pod{}
	}
	for key := range strings.SplitSeq(path, ".") {
		var inner map[string]json.RawMessage
		if key != "" && json.Unmarshal(object, &inner) == nil { // always, as the object has a template
			object = inner[key]
		}
	}
	unknown, _ := kubejson.UnmarshalStrict(object, into) // decoded before
	for _, err := range resources.SuggestFields(unknown, into) {
		fields = append(fields, err.Error())
	}
	return fields
}

// decode decodes an object in JSON. The error names the field.
func decode(object []byte, into any) error {
	return resources.DecodingError(object, into, json.Unmarshal(object, into))
}

// CheckReplicas returns an error if a number of replicas is out of range.
func CheckReplicas(replicas int64) error {
	if replicas < 0 || replicas > MaxReplicas {
		return fmt.Errorf("replicas: found %d: must be in [0, %d]", replicas, MaxReplicas)
	}
	return nil
}

// Join returns the workload whose only replica has the pods of all replicas of workloads. Pods from whose nodes the pods of another
// template are kept count as one pod per node.
func Join(workloads []*Workload) *Workload {
	out := &Workload{Replicas: 1}
	for _, w := range workloads {
		out.Unknown = append(out.Unknown, w.Unknown...)
		for _, part := range w.Parts {
			if part.Pods *= w.Replicas; part.Pods > 0 {
				out.Parts = append(out.Parts, part)
			}
		}
	}
	for _, part := range out.Parts {
		for i := range out.Parts {
			keeps := func(s labels.Selector) bool { return s.Matches(labels.Set(out.Parts[i].labels)) }
			out.Parts[i].alone = out.Parts[i].alone || slices.ContainsFunc(part.apart, keeps)
		}
	}
	return out
}

// maxParts is the maximum number of objects with pods in a ManifestWork.
const maxParts = 50

// readManifests returns the workload of the objects with pods in a ManifestWork.
func readManifests(manifests []json.RawMessage) (*Workload, error) {
	var all []*Workload
	var uncounted []string
	for i, raw := range manifests {
		var head metav1.TypeMeta
		if err := decode(raw, &head); err != nil {
			return nil, fmt.Errorf("spec.workload.manifests[%d]: %w", i, err)
		}
		switch head.Kind {
		case "Pod", "Deployment", "ReplicaSet", "StatefulSet", "Job":
		case "CronJob", "DaemonSet":
			uncounted = append(uncounted, fmt.Sprintf("spec.workload.manifests[%d]: the pods of a %s do not count", i, head.Kind))
			continue
		default:
			continue
		}
		w, err := ReadWorkload(raw)
		if err != nil {
			return nil, fmt.Errorf("spec.workload.manifests[%d]: %w", i, err)
		}
		all = append(all, w)
	}
	out := Join(all)
	out.Unknown = append(out.Unknown, uncounted...)
	switch {
	case len(out.Parts) == 0:
		return nil, fmt.Errorf("spec.workload.manifests: no object with pods")
	case len(out.Parts) > maxParts:
		return nil, fmt.Errorf("spec.workload.manifests: found %d objects with pods, at most %d are allowed", len(out.Parts), maxParts)
	}
	return out, nil
}
