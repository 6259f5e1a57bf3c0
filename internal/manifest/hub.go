package manifest

import (
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-k8s/plimsoll/config/crd"
	"github.com/plimsoll-k8s/plimsoll/internal/fleet"
)

// Hub has the objects of a hub that affect placements.
type Hub struct {
	fleet.Objects
	// Warnings describe suspicious input, such as unknown fields.
	Warnings []string
}

const clusterGroup = "cluster.open-cluster-management.io/"

// hubKinds are the kinds of a hub that are read, with their versions. Objects of other kinds are ignored.
var hubKinds = map[string][]string{
	"ManagedCluster":           {clusterGroup + "v1"},
	"ManagedClusterSet":        {clusterGroup + "v1beta2"},
	"ManagedClusterSetBinding": {clusterGroup + "v1beta2"},
	"AddOnPlacementScore":      {clusterGroup + "v1alpha1"},
	"Placement":                {clusterGroup + "v1beta1", clusterGroup + "v1alpha1"},
	"PlacementDecision":        {clusterGroup + "v1beta1"},
	"ClusterCapacity":          {"plimsoll.dev/v1alpha1"},
	"PodTemplate":              {"v1"},
	"Deployment":               {"apps/v1"},
	"ManifestWork":             {"work.open-cluster-management.io/v1"},
}

// ReadHub reads the objects of a hub from files and folders, see Files.
func ReadHub(paths []string, stdin io.Reader) (*Hub, error) {
	return ReadHubFrom(Files(paths, stdin), true)
}

// ReadHubFrom reads the objects of a hub from documents, which may be required to have placements.
// Fields that the API server would refuse are warnings.
func ReadHubFrom(source Source, requirePlacements bool) (*Hub, error) {
	return readHub(source, requirePlacements, map[metav1.TypeMeta]*crd.Validator{})
}

// ReadRecordedHub is ReadHubFrom for a recording, whose objects are not validated: an API server did it, and redaction removes fields.
func ReadRecordedHub(source Source, requirePlacements bool) (*Hub, error) {
	return readHub(source, requirePlacements, nil)
}

func readHub(source Source, requirePlacements bool, validators map[metav1.TypeMeta]*crd.Validator) (*Hub, error) {
	r := &hubReader{reader: newReader(hubKinds, validators == nil), validators: validators}
	if err := eachChecked(source, r.read); err != nil {
		return nil, err
	}
	if err := r.finish(
		requirePlacements && len(r.hub.Placements) == 0,
		"found no placements in the input: must have at least one",
	); err != nil {
		return nil, err
	}
	if r.hub.Warnings = r.allWarnings(); requirePlacements && len(r.hub.Clusters) == 0 {
		r.hub.Warnings = append(r.hub.Warnings, "found no ManagedClusters in the input (export the hub with "+
			"kubectl get managedclusters,managedclustersets,managedclustersetbindings,placements -A -o yaml)")
	}
	return &r.hub, nil
}

// hubReader reads the objects of a hub.
type hubReader struct {
	reader

	hub Hub
	// validators are those of the kinds that were read, nil if objects are not validated.
	validators map[metav1.TypeMeta]*crd.Validator
	validated  int // bytes
}

// read reads an object in JSON.
func (r *hubReader) read(where string, asJSON []byte, head *header) error {
	if head.APIVersion == "v1" && head.Kind == "Namespace" { // of placements and clusters
		return nil
	}
	if isRead, err := r.isRead(head); err != nil || !isRead {
		return err
	}
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
	case "ClusterCapacity":
		return add(r, where, asJSON, head, &r.hub.Capacities)
	case "PodTemplate", "Deployment", "ManifestWork":
		return add(r, where, asJSON, head, &r.hub.Workloads)
	}
	return add(r, where, asJSON, head, &r.hub.Decisions)
}

// add reads an object and appends it.
func add[T any, P interface {
	*T
	object
}](r *hubReader, where string, asJSON []byte, head *header, to *[]P,
) error {
	into := P(new(T))
	if isNew, err := r.decode(where, asJSON, head, into); err != nil || !isNew {
		return err
	}
	*to = append(*to, into)
	return r.validate(where, asJSON, head, into)
}
