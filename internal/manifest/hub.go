package manifest

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kubejson "sigs.k8s.io/json"

	"github.com/plimsoll-k8s/plimsoll/internal/fleet"
)

// Hub has the objects of a hub that affect placements.
type Hub struct {
	fleet.Objects
	// Warnings describe suspicious input, such as unknown fields.
	Warnings []string
}

const clusterGroup = "cluster.open-cluster-management.io"

// hubKinds has the kinds of the group that are read, with the supported versions. Objects of other kinds
// are ignored.
var hubKinds = map[string][]string{
	"ManagedCluster":           {"v1"},
	"ManagedClusterSet":        {"v1beta2"},
	"ManagedClusterSetBinding": {"v1beta2"},
	"AddOnPlacementScore":      {"v1alpha1"},
	"Placement":                {"v1beta1", "v1alpha1"},
	"PlacementDecision":        {"v1beta1"},
}

// ReadHub reads the objects of a hub from files and folders, see Documents.
func ReadHub(paths []string, stdin io.Reader) (*Hub, error) {
	return ReadHubFrom(Files(paths, stdin))
}

// ReadHubFrom reads the objects of a hub from documents.
func ReadHubFrom(source Source) (*Hub, error) {
	r := &hubReader{seen: map[string]string{}}
	if err := source(r.document); err != nil {
		return nil, err
	}
	ignored := r.ignored.String()
	if len(r.hub.Placements) == 0 {
		if ignored != "" {
			ignored = "; " + ignored
		}
		return nil, fmt.Errorf("found no placements in the input: must have at least one%s", ignored)
	}
	if ignored != "" {
		r.hub.Warnings = append(r.hub.Warnings, ignored)
	}
	return &r.hub, nil
}

// hubReader reads the objects of a hub.
type hubReader struct {
	hub     Hub
	ignored Ignored
	// seen has the location of each object by kind and name.
	seen map[string]string
}

// document reads the objects of a document.
func (r *hubReader) document(where string, raw []byte) error { return eachChecked(where, raw, r.read) }

// read reads an object in JSON.
func (r *hubReader) read(where string, asJSON []byte, head *header) error {
	kind := head.groupVersionKind()
	versions, known := hubKinds[head.Kind]
	switch {
	case kind.Group == "" && kind.Kind == "Namespace": // of placements and clusters
		return nil
	case !known || kind.Group != clusterGroup:
		r.ignored.Add(kind.GroupKind())
		return nil
	case !slices.Contains(versions, kind.Version):
		return fmt.Errorf("%s: apiVersion: invalid value %q: must be %s/%s", head, head.APIVersion, clusterGroup,
			strings.Join(versions, " or "+clusterGroup+"/"))
	}
	if err := r.object(where, asJSON, head); err != nil {
		return fmt.Errorf("%s: %w", head, err)
	}
	return nil
}

// object reads an object of a known kind.
func (r *hubReader) object(where string, asJSON []byte, head *header) error {
	switch head.Kind {
	case "ManagedCluster":
		return add(r, where, asJSON, head, &r.hub.Clusters)
	case "ManagedClusterSet":
		return add(r, where, asJSON, head, &r.hub.Sets)
	case "ManagedClusterSetBinding":
		return add(r, where, asJSON, head, &r.hub.Bindings)
	case "AddOnPlacementScore":
		return add(r, where, asJSON, head, &r.hub.Scores)
	case "Placement":
		return add(r, where, asJSON, head, &r.hub.Placements)
	}
	return add(r, where, asJSON, head, &r.hub.Decisions)
}

// add reads an object and appends it.
func add[T any, P interface {
	*T
	runtime.Object
	metav1.Object
}](r *hubReader, where string, asJSON []byte, head *header, to *[]P,
) error {
	object := P(new(T))
	unknown, err := kubejson.UnmarshalStrict(asJSON, object)
	if err != nil {
		return ExplainDecoding(asJSON, object, err)
	}
	for _, warning := range unknown {
		r.hub.Warnings = append(r.hub.Warnings, fmt.Sprintf("%s: %s: %v", where, head, warning))
	}
	kind := head.Kind
	object.GetObjectKind().SetGroupVersionKind(head.groupVersionKind())
	if object.GetName() == "" {
		return errors.New("metadata.name: required")
	}
	if kind != "ManagedCluster" && kind != "ManagedClusterSet" {
		object.SetNamespace(orDefault(object.GetNamespace()))
	}
	key := fmt.Sprintf("%s %s/%s", kind, object.GetNamespace(), object.GetName())
	if first, ok := r.seen[key]; ok {
		return fmt.Errorf("duplicate %s, first defined in %s", key, first)
	}
	r.seen[key] = where
	*to = append(*to, object)
	return nil
}
