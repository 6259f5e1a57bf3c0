package snapshot

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

// File returns the name of the kind's file in an archive.
func (k *Kind) File() string { return k.Folder + "/" + k.Resource + ".json" }

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
)

// Kinds has all kinds in the order in which they are read: pods before nodes, so that a snapshot has the
// nodes of its pods unless they are deleted meanwhile.
var Kinds = []*Kind{
	{Folder: FolderCluster, Versions: []string{"v1"}, Resource: "pods", Kind: "Pod", Required: true, rule: podRule},
	{Folder: FolderCluster, Versions: []string{"v1"}, Resource: "nodes", Kind: "Node", Required: true, rule: nodeRule},
	{Folder: FolderCluster, Versions: []string{"v1"}, Resource: "namespaces", Kind: "Namespace", rule: object("namespace", fields{})},
	{
		Folder: FolderCluster, Group: "apps", Versions: []string{"v1"}, Resource: "deployments", Kind: "Deployment",
		rule: workload("deployment"),
	},
	{
		Folder: FolderCluster, Group: "apps", Versions: []string{"v1"}, Resource: "replicasets", Kind: "ReplicaSet",
		rule: workload("replicaset"),
	},
	{
		Folder: FolderCluster, Group: "apps", Versions: []string{"v1"}, Resource: "statefulsets", Kind: "StatefulSet",
		rule: workload("statefulset"),
	},
	{
		Folder: FolderCluster, Group: "apps", Versions: []string{"v1"}, Resource: "daemonsets", Kind: "DaemonSet",
		rule: workload("daemonset"),
	},
	{Folder: FolderCluster, Group: "batch", Versions: []string{"v1"}, Resource: "jobs", Kind: "Job", rule: workload("job")},
	{
		Folder: FolderCluster, Versions: []string{"v1"}, Resource: "replicationcontrollers", Kind: "ReplicationController",
		rule: replicationControllerRule,
	},
	{Folder: FolderCluster, Versions: []string{"v1"}, Resource: "services", Kind: "Service", rule: object("service", fields{
		"spec": in(fields{"selector": labels}),
	})},
	{Folder: FolderCluster, Versions: []string{"v1"}, Resource: "persistentvolumeclaims", Kind: "PersistentVolumeClaim", rule: claimRule},
	{Folder: FolderCluster, Versions: []string{"v1"}, Resource: "persistentvolumes", Kind: "PersistentVolume", rule: volumeRule},
	{
		Folder: FolderCluster, Group: storageGroup, Versions: []string{"v1"}, Resource: "storageclasses", Kind: "StorageClass",
		rule: storageClassRule,
	},
	{Folder: FolderCluster, Group: storageGroup, Versions: []string{"v1"}, Resource: "csinodes", Kind: "CSINode", rule: csiNodeRule},
	{Folder: FolderCluster, Group: storageGroup, Versions: []string{"v1"}, Resource: "csidrivers", Kind: "CSIDriver", rule: csiDriverRule},
	{
		Folder: FolderCluster, Group: storageGroup, Versions: []string{"v1"}, Resource: "csistoragecapacities", Kind: "CSIStorageCapacity",
		rule: csiCapacityRule,
	},
	{
		Folder: FolderCluster, Group: storageGroup, Versions: []string{"v1"}, Resource: "volumeattachments", Kind: "VolumeAttachment",
		rule: attachmentRule,
	},
	{
		Folder: FolderCluster, Group: "policy", Versions: []string{"v1"}, Resource: "poddisruptionbudgets", Kind: "PodDisruptionBudget",
		rule: budgetRule,
	},
	{
		Folder: FolderCluster, Group: "scheduling.k8s.io", Versions: []string{"v1"}, Resource: "priorityclasses", Kind: "PriorityClass",
		rule: priorityClassRule,
	},
	{
		Folder: FolderCluster, Group: resourceGroup, Versions: []string{"v1"}, Resource: "resourceclaims", Kind: "ResourceClaim",
		rule: resourceClaimRule,
	},
	{
		Folder: FolderCluster, Group: resourceGroup, Versions: []string{"v1"}, Resource: "resourceclaimtemplates",
		Kind: "ResourceClaimTemplate", rule: resourceClaimTemplateRule,
	},
	{
		Folder: FolderCluster, Group: resourceGroup, Versions: []string{"v1"}, Resource: "deviceclasses", Kind: "DeviceClass",
		rule: deviceClassRule,
	},
	{
		Folder: FolderCluster, Group: resourceGroup, Versions: []string{"v1"}, Resource: "resourceslices", Kind: "ResourceSlice",
		rule: resourceSliceRule,
	},

	{
		Folder: FolderSlack, Group: "plimsoll.dev", Versions: []string{"v1alpha1"}, Resource: "resourceslacks", Kind: "ResourceSlack",
		rule: slackRule,
	},
	{
		Folder: FolderSlack, Group: "autoscaling.x-k8s.io", Versions: []string{"v1beta1", "v1alpha1"}, Resource: "capacitybuffers",
		Kind: "CapacityBuffer", rule: bufferRule,
	},
	{
		Folder: FolderSlack, Versions: []string{"v1"}, Resource: "podtemplates", Kind: "PodTemplate",
		rule: object("podtemplate", fields{"template": template}),
	},

	{
		Folder: FolderHub, Group: ocmGroup, Versions: []string{"v1"}, Resource: "managedclusters", Kind: "ManagedCluster",
		rule: managedClusterRule,
	},
	{
		Folder: FolderHub, Group: ocmGroup, Versions: []string{"v1beta2"}, Resource: "managedclustersets", Kind: "ManagedClusterSet",
		rule: clusterSetRule,
	},
	{
		Folder: FolderHub, Group: ocmGroup, Versions: []string{"v1beta2"}, Resource: "managedclustersetbindings",
		Kind: "ManagedClusterSetBinding", rule: bindingRule,
	},
	{
		Folder: FolderHub, Group: ocmGroup, Versions: []string{"v1alpha1"}, Resource: "addonplacementscores", Kind: "AddOnPlacementScore",
		rule: addOnScoreRule,
	},
	{
		Folder: FolderHub, Group: ocmGroup, Versions: []string{"v1beta1", "v1alpha1"}, Resource: "placements", Kind: "Placement",
		rule: placementRule,
	},
	{
		Folder: FolderHub, Group: ocmGroup, Versions: []string{"v1beta1"}, Resource: "placementdecisions", Kind: "PlacementDecision",
		rule: decisionRule,
	},
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
