// Package manifest reads Kubernetes objects from YAML and JSON files with one or several documents, Lists,
// and folders of files.
package manifest

import (
	"fmt"
	"io"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	defaults "k8s.io/kubernetes/pkg/apis/core/v1"

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
}

// kinds are the kinds that are read, with their versions. Objects of other kinds are ignored.
var kinds = map[string]string{
	"Node": "v1", "Pod": "v1", "Namespace": "v1", "PersistentVolume": "v1", "PersistentVolumeClaim": "v1", "Service": "v1",
	"ReplicationController": "v1", "StorageClass": storageVersion, "CSINode": storageVersion, "CSIDriver": storageVersion,
	"CSIStorageCapacity": storageVersion, "VolumeAttachment": storageVersion, "PodDisruptionBudget": "policy/v1",
	"PriorityClass": "scheduling.k8s.io/v1", "ResourceClaim": resourceVersion, "ResourceClaimTemplate": resourceVersion,
	"DeviceClass": resourceVersion, "ResourceSlice": resourceVersion, "Deployment": appsVersion, "ReplicaSet": appsVersion,
	"StatefulSet": appsVersion,
	"DaemonSet":   appsVersion, "Job": "batch/v1",
}

const (
	appsVersion     = "apps/v1"
	resourceVersion = "resource.k8s.io/v1"
	storageVersion  = "storage.k8s.io/v1"
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

// Read reads the objects of a cluster from files and folders, see Documents.
func Read(paths []string, stdin io.Reader) (*Objects, error) {
	return ReadFrom(Files(paths, stdin))
}

// ReadFrom reads the objects of a cluster from documents.
func ReadFrom(source Source) (*Objects, error) {
	r := &reader{seen: map[string]string{}}
	if err := source(r.document); err != nil {
		return nil, err
	}
	if err := r.finish(); err != nil {
		return nil, err
	}
	return &r.objects, nil
}

// ReadReferred reads objects other than nodes and pods from documents. Nodes and pods are not required.
func ReadReferred(source Source) (*Objects, error) {
	r := &reader{seen: map[string]string{}}
	if err := source(r.document); err != nil {
		return nil, err
	}
	if ignored := r.ignored.String(); ignored != "" {
		r.objects.Warnings = append(r.objects.Warnings, ignored)
	}
	return &r.objects, nil
}

// SetPodDefaults sets the defaults of the API server in a pod, such as a request equal to a limit.
func SetPodDefaults(pod *v1.Pod) {
	pod.Namespace = orDefault(pod.Namespace)
	defaults.SetObjectDefaults_Pod(pod)
}

// SetNodeDefaults sets the defaults of the API server in a node, such as allocatable amounts equal to the capacity.
func SetNodeDefaults(node *v1.Node) { defaults.SetObjectDefaults_Node(node) }

// reader reads the objects of a cluster.
type reader struct {
	objects Objects
	ignored Ignored
	// seen has the location of each object by kind and name.
	seen map[string]string
}

// strict decodes objects and reports unknown fields.
var strict = serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()

// document reads the objects of a document.
func (r *reader) document(where string, raw []byte) error { return eachChecked(where, raw, r.read) }

// read reads an object in JSON.
func (r *reader) read(where string, asJSON []byte, head *header) error {
	isRead, err := isRead(head)
	if err != nil {
		return err
	}
	if !isRead {
		r.ignored.Add(head.groupVersionKind().GroupKind())
		return nil
	}
	obj, err := r.decode(where, asJSON, head)
	if err == nil {
		err = checkAmountsOf(obj)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", head, err)
	}
	return r.object(where, obj)
}

// decode decodes an object of a known kind. Unknown fields are warnings.
func (r *reader) decode(where string, asJSON []byte, head *header) (runtime.Object, error) {
	kind := head.groupVersionKind()
	empty, err := scheme.Scheme.New(kind)
	if err != nil {
		return nil, err
	}
	obj, _, err := strict.Decode(asJSON, &kind, nil)
	switch {
	case runtime.IsStrictDecodingError(err) && obj != nil:
		r.objects.Warnings = append(r.objects.Warnings, fmt.Sprintf("%s: %s: %v", where, head, err))
	case err != nil:
		return nil, ExplainDecoding(asJSON, empty, err)
	}
	return obj, nil
}

// checkAmountsOf checks the amounts of an object.
func checkAmountsOf(obj runtime.Object) error {
	switch obj := obj.(type) {
	case *v1.Node:
		return CheckNode(obj)
	case *v1.Pod:
		return CheckPod(obj)
	}
	return nil
}

// isRead reports whether objects of a kind are read. It returns an error for a version that is not
// supported.
func isRead(head *header) (bool, error) {
	version, known := kinds[head.Kind]
	found := head.groupVersionKind()
	switch supported := schema.FromAPIVersionAndKind(version, head.Kind); {
	case !known || found.Group != supported.Group: // such as a Service of Knative
		return false, nil
	case found != supported:
		return false, fmt.Errorf("%s: apiVersion: invalid value %q: must be %s", head, head.APIVersion, version)
	}
	return true, nil
}

// object adds an object.
func (r *reader) object(where string, obj runtime.Object) error {
	switch obj := obj.(type) {
	case *v1.Node:
		SetNodeDefaults(obj)
		r.objects.Nodes = append(r.objects.Nodes, obj)
		return r.requireUnique(where, "node", "", obj.Name)
	case *v1.Pod:
		return r.pod(where, obj)
	case *appsv1.Deployment, *appsv1.ReplicaSet, *appsv1.StatefulSet, *appsv1.DaemonSet, *batchv1.Job:
		return r.namespaced(where, obj, &r.objects.Workloads)
	case *v1.PersistentVolumeClaim, *v1.Service, *v1.ReplicationController, *policyv1.PodDisruptionBudget, *storagev1.CSIStorageCapacity,
		*resourcev1.ResourceClaim, *resourcev1.ResourceClaimTemplate:
		return r.namespaced(where, obj, &r.objects.Others)
	}
	return r.add(where, obj, &r.objects.Others)
}

func (r *reader) pod(where string, pod *v1.Pod) error {
	SetPodDefaults(pod)
	if pod.UID == "" {
		pod.UID = types.UID(resources.Name(pod))
	}
	switch {
	case resources.IsFinished(pod):
	case pod.Spec.NodeName != "":
		r.objects.Running = append(r.objects.Running, pod)
	default:
		r.objects.Pending = append(r.objects.Pending, pod)
	}
	return r.requireUnique(where, "pod", pod.Namespace+"/", pod.Name)
}

// namespaced adds a namespaced object.
func (r *reader) namespaced(where string, obj runtime.Object, to *[]runtime.Object) error {
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return err
	}
	accessor.SetNamespace(orDefault(accessor.GetNamespace()))
	return r.add(where, obj, to)
}

// add adds an object.
func (r *reader) add(where string, obj runtime.Object, to *[]runtime.Object) error {
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return err
	}
	*to = append(*to, obj)
	namespace := accessor.GetNamespace()
	if namespace != "" {
		namespace += "/"
	}
	kind := fmt.Sprintf("%T", obj)
	return r.requireUnique(where, strings.ToLower(kind[strings.LastIndex(kind, ".")+1:]), namespace, accessor.GetName())
}

// requireUnique returns an error if another object has the same name.
func (r *reader) requireUnique(where, kind, namespace, name string) error {
	if name == "" {
		return fmt.Errorf("a %s without metadata.name", kind)
	}
	key := kind + " " + namespace + name
	if first, ok := r.seen[key]; ok {
		return fmt.Errorf("duplicate %s, first defined in %s", key, first)
	}
	r.seen[key] = where
	return nil
}

// finish checks the complete set of objects.
func (r *reader) finish() error {
	ignored := r.ignored.String()
	if len(r.objects.Nodes) == 0 {
		if ignored != "" {
			ignored = "; " + ignored
		}
		return fmt.Errorf("found no nodes in the input: must have at least one (export with kubectl get nodes,pods -A -o yaml)%s", ignored)
	}
	if ignored != "" {
		r.objects.Warnings = append(r.objects.Warnings, ignored)
	}
	for _, pod := range r.objects.Running {
		if _, ok := r.seen["node "+pod.Spec.NodeName]; !ok {
			r.objects.Warnings = append(r.objects.Warnings, fmt.Sprintf(
				"pod %s/%s is ignored: its node %s is not in the input", pod.Namespace, pod.Name, pod.Spec.NodeName))
		}
	}
	r.objects.Others = GenerateClaims(slices.Concat(r.objects.Running, r.objects.Pending), r.objects.Others)
	return nil
}

// orDefault returns the namespace, or "default" if it is empty.
func orDefault(namespace string) string {
	if namespace == "" {
		return v1.NamespaceDefault
	}
	return namespace
}
