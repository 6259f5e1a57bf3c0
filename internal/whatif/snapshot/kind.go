package snapshot

import "strings"

// Folders of an archive: the objects that affect scheduling, slack planning and placement. After
// unpacking, the commands of each area can read its folder.
const (
	FolderCluster = "cluster"
	FolderSlack   = "slack"
	FolderHub     = "hub"
)

// Kind is a kind of objects in a snapshot.
type Kind struct {
	Folder string
	// Group is the API group, Versions the supported versions, the preferred one first.
	Group    string
	Versions []string
	// Resource and Kind are the names of the kind in paths and in objects.
	Resource, Kind string
	// Required kinds must be in every snapshot.
	Required bool

	// rule selects the fields that a snapshot keeps.
	rule fields
}

// File returns the name of the kind's file in an archive. It includes the group of PodGroups, which two groups have.
func (k *Kind) File() string {
	if k.Kind == podGroup {
		return k.Folder + "/" + k.String() + ".json"
	}
	return k.Folder + "/" + k.Resource + ".json"
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
	podGroup      = "PodGroup"
)

// Kinds has all kinds in the order in which they are read: pods before nodes, so that a snapshot has the
// nodes of its pods unless they are deleted meanwhile.
var Kinds = []*Kind{
	newKind(FolderCluster, "", "pods", "Pod", podRule, "v1"),
	newKind(FolderCluster, "", "nodes", "Node", nodeRule, "v1"),
	newKind(FolderCluster, "", "namespaces", "Namespace", object("namespace", fields{}), "v1"),
	newKind(FolderCluster, "apps", "deployments", "Deployment", workload("deployment"), "v1"),
	newKind(FolderCluster, "apps", "replicasets", "ReplicaSet", workload("replicaset"), "v1"),
	newKind(FolderCluster, "apps", "statefulsets", "StatefulSet", workload("statefulset"), "v1"),
	newKind(FolderCluster, "apps", "daemonsets", "DaemonSet", workload("daemonset"), "v1"),
	newKind(FolderCluster, "batch", "jobs", "Job", workload("job"), "v1"),
	newKind(FolderCluster, "jobset.x-k8s.io", "jobsets", "JobSet", jobSetRule, "v1alpha2"),
	newKind(FolderCluster, "leaderworkerset.x-k8s.io", "leaderworkersets", "LeaderWorkerSet", leaderWorkerSetRule, "v1"),
	newKind(FolderCluster, "scheduling.k8s.io", "podgroups", podGroup, podGroupRule, "v1beta1"),
	newKind(FolderCluster, "scheduling.x-k8s.io", "podgroups", podGroup, podGroupRule, "v1alpha1"),
	newKind(FolderCluster, "", "replicationcontrollers", "ReplicationController", replicationControllerRule, "v1"),
	newKind(FolderCluster, "", "services", "Service", object("service", fields{"spec": in(fields{"selector": labels})}), "v1"),
	newKind(FolderCluster, "", "persistentvolumeclaims", "PersistentVolumeClaim", claimRule, "v1"),
	newKind(FolderCluster, "", "persistentvolumes", "PersistentVolume", volumeRule, "v1"),
	newKind(FolderCluster, storageGroup, "storageclasses", "StorageClass", storageClassRule, "v1"),
	newKind(FolderCluster, storageGroup, "csinodes", "CSINode", csiNodeRule, "v1"),
	newKind(FolderCluster, storageGroup, "csidrivers", "CSIDriver", csiDriverRule, "v1"),
	newKind(FolderCluster, storageGroup, "csistoragecapacities", "CSIStorageCapacity", csiCapacityRule, "v1"),
	newKind(FolderCluster, storageGroup, "volumeattachments", "VolumeAttachment", attachmentRule, "v1"),
	newKind(FolderCluster, "policy", "poddisruptionbudgets", "PodDisruptionBudget", budgetRule, "v1"),
	newKind(FolderCluster, "scheduling.k8s.io", "priorityclasses", "PriorityClass", priorityClassRule, "v1"),
	newKind(FolderCluster, resourceGroup, "resourceclaims", "ResourceClaim", resourceClaimRule, "v1"),
	newKind(FolderCluster, resourceGroup, "resourceclaimtemplates", "ResourceClaimTemplate", resourceClaimTemplateRule, "v1"),
	newKind(FolderCluster, resourceGroup, "deviceclasses", "DeviceClass", deviceClassRule, "v1"),
	newKind(FolderCluster, resourceGroup, "resourceslices", "ResourceSlice", resourceSliceRule, "v1"),
	newKind(FolderSlack, plimsollGroup, "resourceslacks", "ResourceSlack", slackRule, "v1alpha1"),
	newKind(FolderSlack, "autoscaling.x-k8s.io", "capacitybuffers", "CapacityBuffer", bufferRule, "v1beta1", "v1alpha1"),
	newKind(FolderSlack, "", "podtemplates", "PodTemplate", object("podtemplate", fields{"template": template}), "v1"),
	newKind(FolderHub, ocmGroup, "managedclusters", "ManagedCluster", managedClusterRule, "v1"),
	newKind(FolderHub, ocmGroup, "managedclustersets", "ManagedClusterSet", clusterSetRule, "v1beta2"),
	newKind(FolderHub, ocmGroup, "managedclustersetbindings", "ManagedClusterSetBinding", bindingRule, "v1beta2"),
	newKind(FolderHub, ocmGroup, "addonplacementscores", "AddOnPlacementScore", addOnScoreRule, "v1alpha1"),
	newKind(FolderHub, ocmGroup, "placements", "Placement", placementRule, "v1beta1", "v1alpha1"),
	newKind(FolderHub, ocmGroup, "placementdecisions", "PlacementDecision", decisionRule, "v1beta1"),
	newKind(FolderHub, plimsollGroup, "clustercapacities", "ClusterCapacity", clusterCapacityRule, "v1alpha1"),
	newKind(FolderHub, "work.open-cluster-management.io", "manifestworks", "ManifestWork", manifestWorkRule, "v1"),
}

// newKind returns a kind with its versions, the preferred one first. Only pods and nodes are required.
func newKind(folder, group, resource, kind string, rule fields, versions ...string) *Kind {
	return &Kind{
		Folder: folder, Group: group, Versions: versions, Resource: resource, Kind: kind, rule: rule,
		Required: resource == "pods" || resource == "nodes",
	}
}

// IsOptional reports whether the API server serves the kind only if it was installed or enabled.
func (k *Kind) IsOptional() bool {
	return k.Folder != FolderCluster || strings.HasSuffix(k.Group, ".x-k8s.io") || k.Kind == podGroup
}

// kindOf returns the kind with a name and a group, or nil.
func kindOf(group, name string) *Kind {
	for _, kind := range Kinds {
		if kind.Kind == name && kind.Group == group {
			return kind
		}
	}
	return nil
}
