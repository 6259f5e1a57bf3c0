// Package manifest reads Kubernetes objects from YAML and JSON files with one or several documents, Lists,
// and folders of files.
package manifest

import (
	"io"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	apps "k8s.io/kubernetes/pkg/apis/apps/v1"
	batch "k8s.io/kubernetes/pkg/apis/batch/v1"
	defaults "k8s.io/kubernetes/pkg/apis/core/v1"
	resourceapi "k8s.io/kubernetes/pkg/apis/resource/v1"
	scheduling "k8s.io/kubernetes/pkg/apis/scheduling/v1"
	storage "k8s.io/kubernetes/pkg/apis/storage/v1"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// Objects has the objects of a cluster that affect scheduling, in the order of the files.
type Objects struct {
	Nodes []*v1.Node
	// Running pods have a node, Pending pods have none. Finished pods are omitted.
	Running, Pending []*v1.Pod
	// Workloads are Deployments, ReplicaSets, StatefulSets, DaemonSets and Jobs.
	Workloads []runtime.Object
	// Others are the remaining objects, such as claims, volumes, classes, namespaces, services and
	// disruption budgets.
	Others []runtime.Object
	// Warnings describe suspicious input, such as unknown fields.
	Warnings []string
	// Missing are sentences about pods with claims that the input lacks, and workloads without pods.
	Missing []string
	// Kubernetes is the version of the API server that had the objects, empty if it is not known.
	Kubernetes string
}

// kinds are the kinds that are read, with their versions. Objects of other kinds are ignored.
var kinds = map[string][]string{
	"Node": coreVersions, "Pod": coreVersions, "Namespace": coreVersions, "Service": coreVersions, "ReplicationController": coreVersions,
	"PersistentVolume": coreVersions, "PersistentVolumeClaim": coreVersions,
	"StorageClass": storageVersions, "CSINode": storageVersions, "CSIDriver": storageVersions, "CSIStorageCapacity": storageVersions,
	"VolumeAttachment": storageVersions, "PodDisruptionBudget": {"policy/v1"}, "PriorityClass": {"scheduling.k8s.io/v1"},
	"ResourceClaim": resourceVersions, "ResourceClaimTemplate": resourceVersions, "DeviceClass": resourceVersions,
	"ResourceSlice": resourceVersions, "DeviceTaintRule": resourceVersions, "Deployment": appsVersions, "ReplicaSet": appsVersions,
	"StatefulSet": appsVersions, "DaemonSet": appsVersions, "Job": {"batch/v1"},
}

var (
	coreVersions     = []string{"v1"}
	appsVersions     = []string{"apps/v1"}
	resourceVersions = []string{"resource.k8s.io/v1"}
	storageVersions  = []string{"storage.k8s.io/v1"}
)

// Referred returns the objects other than nodes and pods that a scheduler reads: Others, and the workloads
// whose pods are spread by default.
func (o *Objects) Referred() []runtime.Object {
	referred := slices.Clone(o.Others)
	for _, workload := range o.Workloads {
		switch workload.(type) {
		case *appsv1.ReplicaSet, *appsv1.StatefulSet:
			referred = append(referred, workload)
		}
	}
	return referred
}

// Read reads the objects of a cluster from files and folders, see Files.
// Fields that the API server would refuse are warnings.
func Read(paths []string, stdin io.Reader) (*Objects, error) {
	return ReadFrom(Files(paths, stdin), true)
}

// ReadFrom reads the objects of a cluster from documents, and may validate them as the API server does.
func ReadFrom(source Source, validate bool) (*Objects, error) {
	r := &clusterReader{reader: newReader(kinds, !validate)}
	if err := eachChecked(source, r.read); err != nil {
		return nil, err
	}
	err := r.finish(len(r.objects.Nodes) == 0,
		"found no nodes in the input: must have at least one (export with kubectl get nodes,pods -A -o yaml)")
	if err != nil {
		return nil, err
	}
	for _, pod := range r.objects.Running {
		if _, ok := r.seen["node "+pod.Spec.NodeName]; !ok {
			r.warn("pod %s/%s is ignored: its node %s is not in the input", pod.Namespace, pod.Name, pod.Spec.NodeName)
		}
	}
	r.setPriorities()
	r.objects.setDefaultClass()
	r.objects.Warnings = r.allWarnings()
	r.objects.Others = GenerateClaims(slices.Concat(r.objects.Running, r.objects.Pending), r.objects.Others)
	r.objects.removeMissing()
	r.objects.addUnread()
	r.objects.addUnused()
	return &r.objects, nil
}

// ReadReferred reads objects other than nodes and pods from documents. Nodes and pods are not required.
func ReadReferred(source Source) (*Objects, error) {
	r := &clusterReader{reader: newReader(kinds, true)}
	if err := eachChecked(source, r.read); err != nil {
		return nil, err
	}
	err := r.finish(false, "")
	r.objects.Warnings = r.allWarnings()
	return &r.objects, err
}

// defaulting has the functions by which API servers set the defaults of objects.
var defaulting = func() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, register := range []func(*runtime.Scheme) error{
		defaults.RegisterDefaults, apps.RegisterDefaults, batch.RegisterDefaults, resourceapi.RegisterDefaults, scheduling.RegisterDefaults,
		storage.RegisterDefaults,
	} {
		utilruntime.Must(register(s))
	}
	return s
}()

// SetPodDefaults sets the defaults of the API server in a pod, such as a request equal to a limit.
func SetPodDefaults(pod *v1.Pod) {
	pod.Namespace = orDefault(pod.Namespace)
	defaults.SetObjectDefaults_Pod(pod)
}

// SetNodeDefaults sets the defaults of the API server in a node, such as allocatable amounts equal to the capacity.
func SetNodeDefaults(node *v1.Node) { defaults.SetObjectDefaults_Node(node) }

// clusterReader reads the objects of a cluster.
type clusterReader struct {
	reader

	objects Objects
}

// read reads an object in JSON.
func (r *clusterReader) read(where string, asJSON []byte, head *header) error {
	if isRead, err := r.isRead(head); err != nil || !isRead {
		return err
	}
	empty, err := scheme.Scheme.New(head.groupVersionKind())
	if err != nil {
		return err
	}
	if isNew, err := r.decode(where, asJSON, head, empty.(object)); err != nil || !isNew {
		return err
	}
	switch obj := empty.(type) {
	case *v1.Node:
		if !r.isRecorded && len(obj.Status.Allocatable) == 0 {
			r.warn("%s: %s: status.allocatable: required: no pod fits a node without it", where, head)
		} else if _, ok := obj.Status.Allocatable[v1.ResourcePods]; !r.isRecorded && !ok {
			r.warn("%s: %s: status.allocatable.pods: required: no pod fits a node without it, such as \"110\"", where, head)
		}
		if i := slices.IndexFunc(obj.Spec.Taints, func(taint v1.Taint) bool { return taint.Effect == "" }); i >= 0 {
			r.warn("%s: %s: spec.taints[%d].effect: required: must be NoSchedule, PreferNoSchedule or NoExecute", where, head, i)
		}
		r.objects.Nodes = append(r.objects.Nodes, obj)
	case *v1.Pod:
		r.pod(obj)
	case *appsv1.Deployment, *appsv1.ReplicaSet, *appsv1.StatefulSet, *appsv1.DaemonSet, *batchv1.Job:
		r.objects.Workloads = append(r.objects.Workloads, obj)
	default:
		r.objects.Others = append(r.objects.Others, obj)
	}
	if !r.isRecorded {
		r.validate(where, head, empty.(object))
	}
	return nil
}

// pod adds a pod, unless it is finished.
func (r *clusterReader) pod(pod *v1.Pod) {
	switch {
	case resources.IsFinished(pod):
	case pod.Spec.NodeName != "":
		r.objects.Running = append(r.objects.Running, pod)
	default:
		r.objects.Pending = append(r.objects.Pending, pod)
	}
}
