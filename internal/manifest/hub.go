package manifest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kubejson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/plimsoll-k8s/plimsoll/internal/fleet"
)

// Hub has the objects of a hub that affect placements.
type Hub struct {
	fleet.Objects
	// Warnings describe suspicious input, such as unknown fields.
	Warnings []string
}

const clusterGroup = "cluster.open-cluster-management.io/"

// hubKinds has the kinds that a file may have, with the supported versions.
var hubKinds = map[string][]string{
	"ManagedCluster":           {"v1"},
	"ManagedClusterSet":        {"v1beta2"},
	"ManagedClusterSetBinding": {"v1beta2"},
	"AddOnPlacementScore":      {"v1alpha1"},
	"Placement":                {"v1beta1", "v1alpha1"},
	"PlacementDecision":        {"v1beta1"},
}

// ReadHub reads the objects of a hub from files and folders, see Documents. Namespaces are skipped.
func ReadHub(paths []string, stdin io.Reader) (*Hub, error) {
	return ReadHubFrom(Files(paths, stdin))
}

// ReadHubFrom reads the objects of a hub from documents.
func ReadHubFrom(source Source) (*Hub, error) {
	r := &hubReader{seen: map[string]string{}}
	if err := source(r.document); err != nil {
		return nil, err
	}
	if len(r.hub.Placements) == 0 {
		return nil, errors.New("found no placements in the input: must have at least one")
	}
	return &r.hub, nil
}

// hubReader reads the objects of a hub.
type hubReader struct {
	hub Hub
	// seen has the location of each object by kind and name.
	seen map[string]string
	// lists is the number of Lists around the current document.
	lists int
}

// document reads a document, which may be a List.
func (r *hubReader) document(where string, raw []byte) error {
	if err := CheckQuantities(raw); err != nil {
		return err
	}
	asJSON, err := yaml.YAMLToJSONStrict(raw)
	if err != nil {
		return err
	}
	var head struct {
		metav1.TypeMeta `json:",inline"`
		Items           []json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(asJSON, &head); err != nil {
		return err
	}
	if strings.HasSuffix(head.Kind, "List") {
		r.lists++
		defer func() { r.lists-- }()
		if r.lists > maxNesting {
			return errNesting
		}
		for i, item := range head.Items {
			if err := r.document(fmt.Sprintf("%s, item %d", where, i+1), item); err != nil {
				return fmt.Errorf("item %d: %w", i+1, err)
			}
		}
		return nil
	}
	if head.Kind == "Namespace" {
		return nil
	}
	versions, known := hubKinds[head.Kind]
	if !known || !slices.Contains(versions, strings.TrimPrefix(head.APIVersion, clusterGroup)) {
		return fmt.Errorf("found kind %q of apiVersion %q: must be one of %s", head.Kind, head.APIVersion, allowedHubKinds())
	}
	switch head.Kind {
	case "ManagedCluster":
		return add(r, where, asJSON, &r.hub.Clusters)
	case "ManagedClusterSet":
		return add(r, where, asJSON, &r.hub.Sets)
	case "ManagedClusterSetBinding":
		return add(r, where, asJSON, &r.hub.Bindings)
	case "AddOnPlacementScore":
		return add(r, where, asJSON, &r.hub.Scores)
	case "Placement":
		return add(r, where, asJSON, &r.hub.Placements)
	}
	return add(r, where, asJSON, &r.hub.Decisions)
}

// allowedHubKinds returns the kinds with their versions for errors.
func allowedHubKinds() string {
	var all []string
	for kind, versions := range hubKinds {
		for _, version := range versions {
			all = append(all, kind+" of "+clusterGroup+version)
		}
	}
	slices.Sort(all)
	return strings.Join(all, ", ") + ", Namespace, List"
}

// add reads an object and appends it.
func add[T any, P interface {
	*T
	runtime.Object
	metav1.Object
}](r *hubReader, where string, asJSON []byte, to *[]P,
) error {
	object := P(new(T))
	unknown, err := kubejson.UnmarshalStrict(asJSON, object)
	if err != nil {
		return err
	}
	for _, warning := range unknown {
		r.hub.Warnings = append(r.hub.Warnings, fmt.Sprintf("%s: %v", where, warning))
	}
	kind := object.GetObjectKind().GroupVersionKind().Kind
	if object.GetName() == "" {
		return fmt.Errorf("a %s without metadata.name", kind)
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
