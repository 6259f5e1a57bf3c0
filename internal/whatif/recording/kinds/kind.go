// Package kinds has the kinds of objects in recordings. Each has rules for the fields that a recording keeps, and for the fields that are
// names, which redaction replaces by pseudonyms: a new field of Kubernetes is never recorded by accident.
package kinds

import (
	"encoding/json"
	"strings"
)

// Areas of kinds: the objects that affect scheduling, slack planning and placement.
const (
	AreaCluster = "cluster"
	AreaSlack   = "slack"
	AreaHub     = "hub"
)

// Kind is a kind of objects in a recording.
type Kind struct {
	Area string
	// Group is the API group, Versions the supported versions, the preferred one first.
	Group    string
	Versions []string
	// Resource and Kind are the names of the kind in paths and in objects.
	Resource, Kind string
	// Required kinds must be in every snapshot of a cluster.
	Required bool

	// rule selects the fields that a recording keeps.
	rule fields
}

// String returns RESOURCE or RESOURCE.GROUP.
func (k *Kind) String() string {
	if k.Group == "" {
		return k.Resource
	}
	return k.Resource + "." + k.Group
}

const (
	ocmGroup     = "cluster.open-cluster-management.io"
	storageGroup = "storage.k8s.io"
	// resourceGroup has the objects of dynamic resource allocation.
	resourceGroup = "resource.k8s.io"
	plimsollGroup = "plimsoll.dev"
)

// All has all kinds in the order in which they are read: pods before nodes, so that a snapshot has the
// nodes of its pods unless they are deleted meanwhile.
var All = []*Kind{
	newKind(AreaCluster, "", "pods", "Pod", podRule, "v1"),
	newKind(AreaCluster, "", "nodes", "Node", nodeRule, "v1"),
	newKind(AreaCluster, "", "namespaces", "Namespace", object("namespace", fields{}), "v1"),
	newKind(AreaCluster, "apps", "deployments", "Deployment", workload("deployment"), "v1"),
	newKind(AreaCluster, "apps", "replicasets", "ReplicaSet", workload("replicaset"), "v1"),
	newKind(AreaCluster, "apps", "statefulsets", "StatefulSet", workload("statefulset"), "v1"),
	newKind(AreaCluster, "apps", "daemonsets", "DaemonSet", workload("daemonset"), "v1"),
	newKind(AreaCluster, "batch", "jobs", "Job", workload("job"), "v1"),
	newKind(AreaCluster, "", "replicationcontrollers", "ReplicationController", replicationControllerRule, "v1"),
	newKind(AreaCluster, "", "services", "Service", object("service", fields{"spec": objectOf(fields{"selector": labels})}), "v1"),
	newKind(AreaCluster, "", "persistentvolumeclaims", "PersistentVolumeClaim", claimRule, "v1"),
	newKind(AreaCluster, "", "persistentvolumes", "PersistentVolume", volumeRule, "v1"),
	newKind(AreaCluster, storageGroup, "storageclasses", "StorageClass", storageClassRule, "v1"),
	newKind(AreaCluster, storageGroup, "csinodes", "CSINode", csiNodeRule, "v1"),
	newKind(AreaCluster, storageGroup, "csidrivers", "CSIDriver", csiDriverRule, "v1"),
	newKind(AreaCluster, storageGroup, "csistoragecapacities", "CSIStorageCapacity", csiCapacityRule, "v1"),
	newKind(AreaCluster, storageGroup, "volumeattachments", "VolumeAttachment", attachmentRule, "v1"),
	newKind(AreaCluster, "policy", "poddisruptionbudgets", "PodDisruptionBudget", budgetRule, "v1"),
	newKind(AreaCluster, "scheduling.k8s.io", "priorityclasses", "PriorityClass", priorityClassRule, "v1"),
	newKind(AreaCluster, resourceGroup, "resourceclaims", "ResourceClaim", resourceClaimRule, "v1"),
	newKind(AreaCluster, resourceGroup, "resourceclaimtemplates", "ResourceClaimTemplate", resourceClaimTemplateRule, "v1"),
	newKind(AreaCluster, resourceGroup, "deviceclasses", "DeviceClass", deviceClassRule, "v1"),
	newKind(AreaCluster, resourceGroup, "resourceslices", "ResourceSlice", resourceSliceRule, "v1"),
	newKind(AreaSlack, plimsollGroup, "resourceslacks", "ResourceSlack", slackRule, "v1alpha1"),
	newKind(AreaSlack, "autoscaling.x-k8s.io", "capacitybuffers", "CapacityBuffer", bufferRule, "v1beta1", "v1alpha1"),
	newKind(AreaSlack, "", "podtemplates", "PodTemplate", object("podtemplate", fields{"template": template}), "v1"),
	newKind(AreaHub, ocmGroup, "managedclusters", "ManagedCluster", managedClusterRule, "v1"),
	newKind(AreaHub, ocmGroup, "managedclustersets", "ManagedClusterSet", clusterSetRule, "v1beta2"),
	newKind(AreaHub, ocmGroup, "managedclustersetbindings", "ManagedClusterSetBinding", bindingRule, "v1beta2"),
	newKind(AreaHub, ocmGroup, "addonplacementscores", "AddOnPlacementScore", addOnScoreRule, "v1alpha1"),
	newKind(AreaHub, ocmGroup, "placements", "Placement", placementRule, "v1beta1", "v1alpha1"),
	newKind(AreaHub, ocmGroup, "placementdecisions", "PlacementDecision", decisionRule, "v1beta1"),
	newKind(AreaHub, plimsollGroup, "clustercapacities", "ClusterCapacity", clusterCapacityRule, "v1alpha1"),
	newKind(AreaHub, "work.open-cluster-management.io", "manifestworks", "ManifestWork", manifestWorkRule, "v1"),
}

// newKind returns a kind with its versions, the preferred one first. Only pods and nodes are required.
func newKind(area, group, resource, kind string, rule fields, versions ...string) *Kind {
	return &Kind{
		Area: area, Group: group, Versions: versions, Resource: resource, Kind: kind, rule: rule,
		Required: resource == "pods" || resource == "nodes",
	}
}

// IsOptional reports whether the API server serves the kind only if it was installed or enabled.
func (k *Kind) IsOptional() bool {
	return k.Area != AreaCluster
}

// Of returns the kind with a name and a group, or nil.
func Of(group, name string) *Kind {
	for _, kind := range All {
		if kind.Kind == name && kind.Group == group {
			return kind
		}
	}
	return nil
}

// Trim returns the fields of an object that a recording keeps.
func (k *Kind) Trim(object map[string]any) (Object, error) {
	kept, _ := k.rule.rule(object, nil)
	out := kept.(map[string]any)
	out["kind"] = k.Kind
	if _, ok := out["apiVersion"]; !ok {
		out["apiVersion"] = strings.TrimPrefix(k.Group+"/"+k.Versions[0], "/")
	}
	raw, err := json.Marshal(out)
	return Object{k, raw}, err
}

// Object is an object of a kind. The kind is nil if it is none of All.
type Object struct {
	Kind *Kind
	JSON json.RawMessage
}

// String returns the kind for errors and messages.
func (o Object) String() string {
	if o.Kind == nil {
		return "an object of an unknown kind"
	}
	return o.Kind.String()
}
