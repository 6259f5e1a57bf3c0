package snapshot

// Folders of an archive: what a scheduler looks at, what slack is planned by, and
// what placements are decided by. Each can be read by the commands that are about
// it after unpacking.
const (
	FolderCluster = "cluster"
	FolderSlack   = "slack"
	FolderHub     = "hub"
)

// Kind is a kind of objects that a snapshot has.
type Kind struct {
	Folder string
	// Group, and the Versions that can be read, the preferred one first.
	Group    string
	Versions []string
	// Resource is the name in the API, Kind the one in objects.
	Resource, Kind string
	// Needed: without it there is no snapshot.
	Needed bool

	// rule is what is kept of an object.
	rule fields
}

// File is the name of the file in an archive.
func (k *Kind) File() string { return k.Folder + "/" + k.Resource + ".json" }

// String names the kind for people.
func (k *Kind) String() string {
	if k.Group == "" {
		return k.Resource
	}
	return k.Resource + "." + k.Group
}

const (
	ocmGroup     = "cluster.open-cluster-management.io"
	storageGroup = "storage.k8s.io"
)

// Kinds are those that there are, in the order in which they are read: pods before
// nodes, so that the nodes of all pods are there, unless they go meanwhile.
var Kinds = []*Kind{
	{Folder: FolderCluster, Versions: []string{"v1"}, Resource: "pods", Kind: "Pod", Needed: true, rule: podRule},
	{Folder: FolderCluster, Versions: []string{"v1"}, Resource: "nodes", Kind: "Node", Needed: true, rule: nodeRule},
	{Folder: FolderCluster, Versions: []string{"v1"}, Resource: "namespaces", Kind: "Namespace", rule: object("namespace", fields{})},
	{Folder: FolderCluster, Group: "apps", Versions: []string{"v1"}, Resource: "deployments", Kind: "Deployment", rule: workload("deployment")},
	{Folder: FolderCluster, Group: "apps", Versions: []string{"v1"}, Resource: "replicasets", Kind: "ReplicaSet", rule: workload("replicaset")},
	{Folder: FolderCluster, Group: "apps", Versions: []string{"v1"}, Resource: "statefulsets", Kind: "StatefulSet", rule: workload("statefulset")},
	{Folder: FolderCluster, Group: "apps", Versions: []string{"v1"}, Resource: "daemonsets", Kind: "DaemonSet", rule: workload("daemonset")},
	{Folder: FolderCluster, Group: "batch", Versions: []string{"v1"}, Resource: "jobs", Kind: "Job", rule: workload("job")},
	{Folder: FolderCluster, Versions: []string{"v1"}, Resource: "replicationcontrollers", Kind: "ReplicationController", rule: object("replicationcontroller", fields{
		"spec": in(fields{"replicas": keep, "selector": labels, "template": template}),
	})},
	{Folder: FolderCluster, Versions: []string{"v1"}, Resource: "services", Kind: "Service", rule: object("service", fields{
		"spec": in(fields{"selector": labels}),
	})},
	{Folder: FolderCluster, Versions: []string{"v1"}, Resource: "persistentvolumeclaims", Kind: "PersistentVolumeClaim", rule: claimRule},
	{Folder: FolderCluster, Versions: []string{"v1"}, Resource: "persistentvolumes", Kind: "PersistentVolume", rule: volumeRule},
	{Folder: FolderCluster, Group: storageGroup, Versions: []string{"v1"}, Resource: "storageclasses", Kind: "StorageClass", rule: storageClassRule},
	{Folder: FolderCluster, Group: storageGroup, Versions: []string{"v1"}, Resource: "csinodes", Kind: "CSINode", rule: csiNodeRule},
	{Folder: FolderCluster, Group: storageGroup, Versions: []string{"v1"}, Resource: "csidrivers", Kind: "CSIDriver", rule: csiDriverRule},
	{Folder: FolderCluster, Group: storageGroup, Versions: []string{"v1"}, Resource: "csistoragecapacities", Kind: "CSIStorageCapacity", rule: csiCapacityRule},
	{Folder: FolderCluster, Group: storageGroup, Versions: []string{"v1"}, Resource: "volumeattachments", Kind: "VolumeAttachment", rule: attachmentRule},
	{Folder: FolderCluster, Group: "policy", Versions: []string{"v1"}, Resource: "poddisruptionbudgets", Kind: "PodDisruptionBudget", rule: budgetRule},
	{Folder: FolderCluster, Group: "scheduling.k8s.io", Versions: []string{"v1"}, Resource: "priorityclasses", Kind: "PriorityClass", rule: object("priorityclass", fields{
		"value": keep, "globalDefault": keep, "preemptionPolicy": keep,
	})},

	{Folder: FolderSlack, Group: "plimsoll.dev", Versions: []string{"v1alpha1"}, Resource: "resourceslacks", Kind: "ResourceSlack", rule: slackRule},
	{Folder: FolderSlack, Group: "autoscaling.x-k8s.io", Versions: []string{"v1beta1", "v1alpha1"}, Resource: "capacitybuffers", Kind: "CapacityBuffer", rule: bufferRule},
	{Folder: FolderSlack, Versions: []string{"v1"}, Resource: "podtemplates", Kind: "PodTemplate", rule: object("podtemplate", fields{"template": template})},

	{Folder: FolderHub, Group: ocmGroup, Versions: []string{"v1"}, Resource: "managedclusters", Kind: "ManagedCluster", rule: managedClusterRule},
	{Folder: FolderHub, Group: ocmGroup, Versions: []string{"v1beta2"}, Resource: "managedclustersets", Kind: "ManagedClusterSet", rule: clusterSetRule},
	{Folder: FolderHub, Group: ocmGroup, Versions: []string{"v1beta2"}, Resource: "managedclustersetbindings", Kind: "ManagedClusterSetBinding", rule: object("managedclusterset", fields{ // a binding has the name of its set
		"spec": in(fields{"clusterSet": named("managedclusterset")}),
	})},
	{Folder: FolderHub, Group: ocmGroup, Versions: []string{"v1alpha1"}, Resource: "addonplacementscores", Kind: "AddOnPlacementScore", rule: addOnScoreRule},
	{Folder: FolderHub, Group: ocmGroup, Versions: []string{"v1beta1", "v1alpha1"}, Resource: "placements", Kind: "Placement", rule: placementRule},
	{Folder: FolderHub, Group: ocmGroup, Versions: []string{"v1beta1"}, Resource: "placementdecisions", Kind: "PlacementDecision", rule: decisionRule},
}

// kindOf returns the kind that objects of this name are of, nil for none.
func kindOf(name string) *Kind {
	for _, kind := range Kinds {
		if kind.Kind == name {
			return kind
		}
	}
	return nil
}
