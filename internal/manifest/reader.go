package manifest

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	kubejson "sigs.k8s.io/json"

	"github.com/plimsoll-k8s/plimsoll/internal/fleet"
	"github.com/plimsoll-k8s/plimsoll/internal/format"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// clusterScoped are the kinds that are read and have no namespace.
var clusterScoped = []string{
	"Node", "Namespace", "PersistentVolume", "StorageClass", "CSINode", "CSIDriver", "VolumeAttachment", "PriorityClass",
	"DeviceClass", "ResourceSlice", "DeviceTaintRule", "ManagedCluster", "ManagedClusterSet",
}

// object is an object of the API.
type object interface {
	runtime.Object
	metav1.Object
}

// reader has the common state of the readers of clusters and hubs.
type reader struct {
	// kinds are the kinds that are read, with their versions. Objects of other kinds are ignored.
	kinds map[string][]string
	// all counts all objects, ignored the objects of kinds that are not read.
	all, ignored Ignored
	warnings     []string
	// more is the number of warnings beyond maxWarnings.
	more int
	// seen has the first object of each kind and name.
	seen map[string]seenObject
	// isRecorded is true for objects of a recording, which may have fields of another version: unknown fields are no warnings.
	isRecorded bool
}

// seenObject is an object that was read, and its location.
type seenObject struct {
	object

	where string
}

func newReader(kinds map[string][]string, isRecorded bool) reader {
	return reader{kinds: kinds, seen: map[string]seenObject{}, isRecorded: isRecorded}
}

// maxWarnings is the number of warnings that are kept; others are counted.
const maxWarnings = 20

// warn adds a warning.
func (r *reader) warn(text string, args ...any) {
	if len(r.warnings) >= maxWarnings {
		r.more++
		return
	}
	r.warnings = append(r.warnings, fmt.Sprintf(text, args...))
}

// allWarnings returns the warnings, and the number of those that are not kept.
func (r *reader) allWarnings() []string {
	if r.more == 0 {
		return r.warnings
	}
	return append(r.warnings, format.Of(r.more, "more warning")+" about the manifests")
}

// isRead reports whether objects of a kind are read, and counts ignored objects. It returns an error for a version that is
// not supported.
func (r *reader) isRead(head *header) (bool, error) {
	found, versions := head.groupVersionKind(), r.kinds[head.Kind]
	r.all.Add(found.GroupKind())
	isKnown := slices.ContainsFunc(versions, func(version string) bool {
		return schema.FromAPIVersionAndKind(version, head.Kind).Group == found.Group
	})
	switch {
	case !isKnown && (strings.EqualFold(head.APIVersion, "v1") || !strings.Contains(head.APIVersion, ".")) && r.similarKind(head) != "":
		kind := r.similarKind(head)
		return false, fmt.Errorf("%s: found kind %q of apiVersion %q; did you mean %s of %s?", head, head.Kind, head.APIVersion, kind,
			r.kinds[kind][0])
	case !isKnown: // such as a Service of Knative
		r.ignored.Add(found.GroupKind())
		return false, nil
	case !slices.Contains(versions, head.APIVersion) && found.Group == resourcev1.GroupName: // of clusters before 1.34
		r.warn("%s is ignored: apiVersion: invalid value %q: must be %s", head, head.APIVersion, strings.Join(versions, " or "))
		return false, nil
	case !slices.Contains(versions, head.APIVersion):
		return false, fmt.Errorf("%s: apiVersion: invalid value %q: must be %s", head, head.APIVersion, strings.Join(versions, " or "))
	}
	return true, nil
}

// similarKind returns the kind that is read and differs from the kind of an object in the case of letters only, "" if there is none.
func (r *reader) similarKind(head *header) string {
	for kind := range r.kinds {
		if strings.EqualFold(kind, head.Kind) {
			return kind
		}
	}
	return ""
}

// decode decodes an object, checks its amounts and sets its defaults. Unknown fields are warnings. It returns an error if the object has
// no name, or if another object of the kind has the same name, and false for an object that was read before: exports such as the export of
// must-gather have some objects in two files.
func (r *reader) decode(where string, asJSON []byte, head *header, into object) (isNew bool, err error) {
	unknown, err := kubejson.UnmarshalStrict(asJSON, into)
	if err := cmp.Or(resources.DecodingError(asJSON, into, err), checkAmountsOf(into)); err != nil {
		return false, fmt.Errorf("%s: %w", head, err)
	}
	if r.isRecorded {
		if err := CheckNames(into); err != nil {
			return false, fmt.Errorf("%s: %w", head, err)
		}
		unknown = nil
	}
	for _, field := range resources.SuggestFields(unknown, into) {
		r.warn("%s: %s: %v", where, head, field)
	}
	hasUID := into.GetUID() != ""
	into.GetObjectKind().SetGroupVersionKind(head.groupVersionKind())
	kind, key := head.Kind, into.GetName()
	if kinds[kind] != nil { // as kubectl names objects
		kind = strings.ToLower(kind)
	}
	if len(kinds[head.Kind]) > 1 { // of several groups
		kind += "." + head.groupVersionKind().Group
	}
	if key == "" {
		return false, fmt.Errorf("a %s without metadata.name", kind)
	}
	if !slices.Contains(clusterScoped, head.Kind) {
		into.SetNamespace(orDefault(into.GetNamespace()))
		key = into.GetNamespace() + "/" + key
	}
	defaulting.Default(into)
	if pod, ok := into.(*v1.Pod); ok && pod.UID == "" {
		pod.UID = types.UID(resources.Name(pod))
	}
	return r.isNew(where, head, kind+" "+key, into, hasUID)
}

// isNew reports whether an object with a key was not read before. It returns an error if another object has the key.
func (r *reader) isNew(where string, head *header, key string, into object, hasUID bool) (bool, error) {
	first, found := r.seen[key]
	if !found {
		r.seen[key] = seenObject{into, where}
		return true, nil
	}
	isSame := isEqual(first.object, into)
	if !isSame && !(hasUID && first.GetUID() == into.GetUID()) {
		return false, fmt.Errorf("duplicate %s, first defined in %s", key, first.where)
	}
	if !isSame || !hasUID { // not of two exports
		r.warn("%s: %s is ignored: it was read in %s", where, head, first.where)
	}
	return false, nil
}

// isEqual reports whether two objects are equal.
func isEqual(a, b object) bool {
	if _, isSummary := a.(*fleet.ClusterCapacity); isSummary { // with private fields
		return reflect.DeepEqual(a, b)
	}
	return equality.Semantic.DeepEqual(a, b)
}

// checkAmountsOf checks the amounts of an object.
func checkAmountsOf(obj runtime.Object) error {
	switch obj := obj.(type) {
	case *v1.Node:
		return CheckNode(obj)
	case *v1.Pod:
		return CheckPod(obj)
	}
	return nil
}

// finish adds a warning about ignored objects. If required objects are missing, it returns a message about them as an error.
func (r *reader) finish(isMissing bool, message string) error {
	ignored := r.ignored.String()
	switch {
	case isMissing:
		return errors.New(strings.TrimSuffix(message+"; "+r.all.String(), "; "))
	case ignored != "":
		r.warnings = append(r.warnings, ignored)
	}
	return nil
}

// orDefault returns the namespace, or "default" if it is empty.
func orDefault(namespace string) string { return cmp.Or(namespace, v1.NamespaceDefault) }
