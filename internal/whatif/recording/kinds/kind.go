// Package kinds has the kinds of objects in recordings. Recordings keep objects except for the fields that Trim drops: what may be secret,
// and what is large and does not affect scheduling. Redaction replaces all texts that Kubernetes and Plimsoll do not define.
package kinds

import (
	"encoding/json"
	"reflect"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	workv1 "open-cluster-management.io/api/work/v1"

	capacityv1alpha1 "github.com/plimsoll-k8s/plimsoll/api/capacity/v1alpha1"
	placementv1beta1 "github.com/plimsoll-k8s/plimsoll/api/placement/v1beta1"
	slackv1alpha1 "github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
)

// Areas of kinds: the objects that affect scheduling, requests, slack planning and placement.
const (
	AreaCluster  = "cluster"
	AreaRequests = "requests"
	AreaSlack    = "slack"
	AreaHub      = "hub"
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

	// object is the type of the objects. Redaction keeps the names of its fields.
	object reflect.Type
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

// CapacityBuffer has the fields of the kind of this name that no other kind has: this module has no type for it.
type CapacityBuffer struct {
	PodTemplateRef v1.LocalObjectReference      `json:"podTemplateRef"`
	ScalableRef    v1.TypedLocalObjectReference `json:"scalableRef"`
	Percentage     int32                        `json:"percentage"`
}

// VerticalPodAutoscaler has the fields that are read of the kind of this name, whose CRD is no dependency.
type VerticalPodAutoscaler struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		TargetRef    autoscalingv2.CrossVersionObjectReference `json:"targetRef"`
		UpdatePolicy struct {
			UpdateMode string `json:"updateMode"`
		} `json:"updatePolicy"`
	} `json:"spec"`
}

// All has all kinds in the order in which they are read: pods before nodes, so that a snapshot has the
// nodes of its pods unless they are deleted meanwhile.
var All = []*Kind{
	newKind[v1.Pod](AreaCluster, "", "pods", "v1"),
	newKind[v1.Node](AreaCluster, "", "nodes", "v1"),
	newKind[v1.Namespace](AreaCluster, "", "namespaces", "v1"),
	newKind[appsv1.Deployment](AreaCluster, "apps", "deployments", "v1"),
	newKind[appsv1.ReplicaSet](AreaCluster, "apps", "replicasets", "v1"),
	newKind[appsv1.StatefulSet](AreaCluster, "apps", "statefulsets", "v1"),
	newKind[appsv1.DaemonSet](AreaCluster, "apps", "daemonsets", "v1"),
	newKind[batchv1.Job](AreaCluster, "batch", "jobs", "v1"),
	newKind[v1.ReplicationController](AreaCluster, "", "replicationcontrollers", "v1"),
	newKind[v1.Service](AreaCluster, "", "services", "v1"),
	newKind[v1.PersistentVolumeClaim](AreaCluster, "", "persistentvolumeclaims", "v1"),
	newKind[v1.PersistentVolume](AreaCluster, "", "persistentvolumes", "v1"),
	newKind[storagev1.StorageClass](AreaCluster, storageGroup, "storageclasses", "v1"),
	newKind[storagev1.CSINode](AreaCluster, storageGroup, "csinodes", "v1"),
	newKind[storagev1.CSIDriver](AreaCluster, storageGroup, "csidrivers", "v1"),
	newKind[storagev1.CSIStorageCapacity](AreaCluster, storageGroup, "csistoragecapacities", "v1"),
	newKind[storagev1.VolumeAttachment](AreaCluster, storageGroup, "volumeattachments", "v1"),
	newKind[policyv1.PodDisruptionBudget](AreaCluster, "policy", "poddisruptionbudgets", "v1"),
	newKind[schedulingv1.PriorityClass](AreaCluster, "scheduling.k8s.io", "priorityclasses", "v1"),
	newKind[resourcev1.ResourceClaim](AreaCluster, resourceGroup, "resourceclaims", "v1"),
	newKind[resourcev1.ResourceClaimTemplate](AreaCluster, resourceGroup, "resourceclaimtemplates", "v1"),
	newKind[resourcev1.DeviceClass](AreaCluster, resourceGroup, "deviceclasses", "v1"),
	newKind[resourcev1.ResourceSlice](AreaCluster, resourceGroup, "resourceslices", "v1"),
	newKind[resourcev1.DeviceTaintRule](AreaCluster, resourceGroup, "devicetaintrules", "v1"),
	newKind[autoscalingv2.HorizontalPodAutoscaler](AreaRequests, "autoscaling", "horizontalpodautoscalers", "v2"),
	newKind[VerticalPodAutoscaler](AreaRequests, "autoscaling.k8s.io", "verticalpodautoscalers", "v1", "v1beta2"),
	newKind[v1.LimitRange](AreaRequests, "", "limitranges", "v1"),
	newKind[v1.ResourceQuota](AreaRequests, "", "resourcequotas", "v1"),
	newKind[slackv1alpha1.ResourceSlack](AreaSlack, plimsollGroup, "resourceslacks", "v1alpha1"),
	newKind[CapacityBuffer](AreaSlack, "autoscaling.x-k8s.io", "capacitybuffers", "v1beta1", "v1alpha1"),
	newKind[v1.PodTemplate](AreaSlack, "", "podtemplates", "v1"),
	newKind[clusterv1.ManagedCluster](AreaHub, ocmGroup, "managedclusters", "v1"),
	newKind[clusterv1beta2.ManagedClusterSet](AreaHub, ocmGroup, "managedclustersets", "v1beta2"),
	newKind[clusterv1beta2.ManagedClusterSetBinding](AreaHub, ocmGroup, "managedclustersetbindings", "v1beta2"),
	newKind[clusterv1alpha1.AddOnPlacementScore](AreaHub, ocmGroup, "addonplacementscores", "v1alpha1"),
	newKind[placementv1beta1.Placement](AreaHub, ocmGroup, "placements", "v1beta1", "v1alpha1"),
	newKind[clusterv1beta1.PlacementDecision](AreaHub, ocmGroup, "placementdecisions", "v1beta1"),
	newKind[capacityv1alpha1.ClusterCapacity](AreaHub, plimsollGroup, "clustercapacities", "v1alpha1"),
	newKind[workv1.ManifestWork](AreaHub, "work.open-cluster-management.io", "manifestworks", "v1"),
}

// newKind returns the kind of a type with its versions, the preferred one first. Only pods and nodes are required.
func newKind[T any](area, group, resource string, versions ...string) *Kind {
	object := reflect.TypeFor[T]()
	return &Kind{
		Area: area, Group: group, Versions: versions, Resource: resource, Kind: object.Name(), object: object,
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
	out := k.trim("", object).(map[string]any)
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
