package kinds

import (
	"reflect"
	"strings"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/sets"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"

	capacityv1alpha1 "github.com/plimsoll-k8s/plimsoll/api/capacity/v1alpha1"
	placementv1beta1 "github.com/plimsoll-k8s/plimsoll/api/placement/v1beta1"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// StandardKeys has keys of labels, taints and annotations with a meaning in Kubernetes or Plimsoll.
var StandardKeys = []string{
	v1.LabelHostname, v1.LabelOSStable, v1.LabelArchStable, v1.LabelMetadataName,
	"beta.kubernetes.io/os", "beta.kubernetes.io/arch", v1.LabelInstanceType, v1.LabelInstanceTypeStable, v1.LabelWindowsBuild,
	v1.LabelTopologyZone, v1.LabelTopologyRegion, v1.LabelFailureDomainBetaZone, v1.LabelFailureDomainBetaRegion,
	"node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master", "node-role.kubernetes.io/worker",
	"node.kubernetes.io/exclude-from-external-load-balancers",
	v1.TaintNodeNotReady, v1.TaintNodeUnreachable, v1.TaintNodeUnschedulable, v1.TaintNodeMemoryPressure, v1.TaintNodeDiskPressure,
	v1.TaintNodePIDPressure, v1.TaintNodeNetworkUnavailable, v1.TaintNodeOutOfService,
	"node.cloudprovider.kubernetes.io/uninitialized", "node.cloudprovider.kubernetes.io/shutdown",
	"app.kubernetes.io/name", "app.kubernetes.io/instance", "app.kubernetes.io/version", "app.kubernetes.io/component",
	"app.kubernetes.io/part-of", "app.kubernetes.io/managed-by",
	"pod-template-hash", resources.RolloutHash, "pod-template-generation", "controller-revision-hash", "controller-uid", "job-name",
	"apps.kubernetes.io/pod-index", "statefulset.kubernetes.io/pod-name",
	"batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name", "batch.kubernetes.io/job-completion-index",
	clusterv1beta2.ClusterSetLabel, clusterv1beta1.PlacementLabel,
	clusterv1beta1.DecisionGroupNameLabel, clusterv1beta1.DecisionGroupIndexLabel,
}

// vocabulary has texts that Kubernetes, Open Cluster Management and Plimsoll define, in addition to StandardKeys and the names of kinds.
const vocabulary = `
	metadata.name default global kube-system kube-public kube-node-lease system-cluster-critical system-node-critical plimsoll
	kubernetes.io/config.mirror volume.kubernetes.io/selected-node volume.beta.kubernetes.io/storage-class
	volume.kubernetes.io/storage-provisioner volume.beta.kubernetes.io/storage-provisioner
	pv.kubernetes.io/bind-completed pv.kubernetes.io/bound-by-controller pv.kubernetes.io/provisioned-by
	storageclass.kubernetes.io/is-default-class storage.alpha.kubernetes.io/migrated-plugins
	karpenter.sh/nodepool karpenter.sh/do-not-disrupt cluster-autoscaler.kubernetes.io/safe-to-evict
	cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes cluster-autoscaler.kubernetes.io/scale-down-disabled
	cluster.open-cluster-management.io/experimental-scheduling-disable
	cluster.open-cluster-management.io/unavailable cluster.open-cluster-management.io/unreachable

	In NotIn Exists DoesNotExist Gt Lt Equal NoSchedule PreferNoSchedule NoExecute NoSelect PreferNoSelect NoSelectIfNew
	DoNotSchedule ScheduleAnyway Honor Ignore True False Unknown true false yes no linux windows amd64 arm64
	Always OnFailure Never PreemptLowerPriority Guaranteed Burstable BestEffort TCP UDP SCTP 0.0.0.0 :: 127.0.0.1 ::1
	Pending Running Succeeded Failed Bound Lost Available Released Active Terminating
	PodScheduled Ready Initialized ContainersReady PodReadyToStartContainers DisruptionTarget PodResizePending PodResizeInProgress
	Unschedulable SchedulingGated MemoryPressure DiskPressure PIDPressure NetworkUnavailable
	ReadWriteOnce ReadOnlyMany ReadWriteMany ReadWriteOncePod Filesystem Block Retain Delete Recycle Immediate WaitForFirstConsumer
	Persistent Ephemeral IfHealthyBudget AlwaysAllow ExactCount All cpu memory pods ephemeral-storage storage
	RollingUpdate Recreate OnDelete OrderedReady Parallel Indexed NonIndexed ClusterIP NodePort LoadBalancer ExternalName None
	CronJob PodGroup InternalIP ExternalIP Hostname Requested Allocatable ignore Memory Karpenter ClusterAutoscaler
	HubAcceptedManagedCluster ManagedClusterJoined ManagedClusterConditionAvailable PlacementSatisfied PlacementMisconfigured
	AllDecisionsScheduled ExclusiveClusterSetLabel LabelSelector Additive Exact BuiltIn AddOn Label Claim ClusterName Score
	Resource ContainerResource Pods Object External Utilization AverageValue Value Off Initial Auto InPlaceOrRecreate Container
	requests.cpu requests.memory limits.cpu limits.memory NotTerminating NotBestEffort
	Balance Steady ResourceRatioCPU ResourceRatioMemory ResourceAllocatableCPU ResourceAllocatableMemory FitReplicas FitWait FitCost`

// words returns the texts that redaction keeps.
var words = sync.OnceValue(func() sets.Set[string] {
	out := sets.New(StandardKeys...).Insert(strings.Fields(vocabulary)...)
	for _, kind := range All {
		out.Insert(kind.Kind, kind.Resource, kind.Group)
		for _, version := range kind.Versions {
			out.Insert(version, kind.Group+"/"+version)
		}
	}
	return out
})

// fields are the names of the fields of all kinds.
type fields struct {
	// all has all names. amounts has the names of fields with amounts, or with an object whose keys are names of resources or of
	// attributes of devices: redaction keeps both.
	all, amounts sets.Set[string]
}

// known has the fields of all kinds.
var known = sync.OnceValue(func() fields {
	out := fields{sets.New("f:spec", "f:nodeName", "since"), sets.New(
		"capacity", "counters", "attributes", "nodeAllocatableResources", "pricePerHour",
		capacityv1alpha1.AnnotationLimit, capacityv1alpha1.AnnotationPrice,
	)}
	seen := sets.New[reflect.Type]()
	var add func(name string, t reflect.Type)
	add = func(name string, t reflect.Type) {
		switch {
		case t == reflect.TypeFor[resource.Quantity]():
			out.amounts.Insert(name)
		case t.Kind() == reflect.Pointer, t.Kind() == reflect.Slice, t.Kind() == reflect.Map:
			add(name, t.Elem())
		case t.Kind() == reflect.Struct && !seen.Has(t):
			seen.Insert(t)
			for field := range t.Fields() {
				name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
				out.all.Insert(name)
				add(name, field.Type)
			}
		}
	}
	for _, kind := range All {
		add("", kind.object)
	}
	out.amounts.Delete("", "value") // of a device, and of a claim of a cluster, which may be an account
	return out
})

// keptFields has the fields and annotations whose texts redaction keeps: names of schedulers, drivers and resources, versions, and
// schedules.
var keptFields = sets.New(strings.Fields(`
	schedulerName driver provisioner attacher pv.kubernetes.io/provisioned-by storage.alpha.kubernetes.io/migrated-plugins
	volume.kubernetes.io/storage-provisioner volume.beta.kubernetes.io/storage-provisioner
	matchAttribute distinctAttribute partitionTypeAttribute capacityKey
	extendedResourceName declaredFeatures devices kubernetes version days timeZone provisioningStrategy`)...)

// byCluster is the annotation whose JSON object has names of clusters as keys.
const byCluster = placementv1beta1.AnnotationReplicas
