// Package manifest reads Kubernetes objects from files as users have them:
// YAML or JSON, several documents in a file, Lists, folders of files.
package manifest

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	defaults "k8s.io/kubernetes/pkg/apis/core/v1"

	"github.com/plimsoll-k8s/plimsoll/internal/kube/facts"
)

// Objects are what a cluster is made of, as far as a scheduler looks.
type Objects struct {
	// Nodes in the order of the files.
	Nodes []*v1.Node
	// Running pods have a node, Pending ones have none; pods that have ended
	// are left out. Both in the order of the files.
	Running, Pending []*v1.Pod
	// Workloads are Deployments, ReplicaSets, StatefulSets, DaemonSets and Jobs.
	Workloads []runtime.Object
	// Others are what else a scheduler looks at: claims, volumes, classes,
	// namespaces, services, budgets.
	Others []runtime.Object
	// Warnings are about what was read but looks mistaken.
	Warnings []string
}

// kinds that a file may have.
var kinds = []string{
	"Node", "Pod", "Namespace", "PersistentVolume", "PersistentVolumeClaim", "StorageClass", "CSINode", "CSIDriver",
	"CSIStorageCapacity", "VolumeAttachment", "PodDisruptionBudget", "PriorityClass", "Service", "ReplicationController",
	"Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "List",
}

// Referred are the objects beside nodes and pods that decide where pods go: the
// others, and the workloads whose pods are spread.
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

// Read reads files, and folders with all that is in them. "-" is standard
// input. Errors name the file and the document in it.
func Read(paths []string, stdin io.Reader) (*Objects, error) {
	return ReadFrom(Files(paths, stdin))
}

// ReadFrom reads documents. Errors name them as the source does.
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

type reader struct {
	objects Objects
	// seen is where an object was found first, by kind and name.
	seen map[string]string
}

// strict tells of fields that Kubernetes does not know.
var strict = serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()

func (r *reader) document(where string, raw []byte) error {
	obj, _, err := strict.Decode(raw, nil, nil)
	if runtime.IsStrictDecodingError(err) && obj != nil {
		r.objects.Warnings = append(r.objects.Warnings, fmt.Sprintf("%s: %v", where, err))
	} else if err != nil {
		if runtime.IsNotRegisteredError(err) || runtime.IsMissingKind(err) || runtime.IsMissingVersion(err) {
			return fmt.Errorf("%w; want one of %s", err, strings.Join(kinds, ", "))
		}
		return err
	}
	return r.object(where, obj)
}

func (r *reader) object(where string, obj runtime.Object) error {
	if list, ok := obj.(*v1.List); ok {
		for i, item := range list.Items {
			where := fmt.Sprintf("%s, item %d", where, i+1)
			if err := r.document(where, item.Raw); err != nil {
				return fmt.Errorf("item %d: %w", i+1, err)
			}
		}
		return nil
	}
	if meta.IsListType(obj) {
		return meta.EachListItem(obj, func(item runtime.Object) error { return r.object(where, item) })
	}
	switch obj := obj.(type) {
	case *v1.Node:
		defaults.SetObjectDefaults_Node(obj)
		r.objects.Nodes = append(r.objects.Nodes, obj)
		return r.once(where, "node", "", obj.Name)
	case *v1.Pod:
		return r.pod(where, obj)
	case *appsv1.Deployment, *appsv1.ReplicaSet, *appsv1.StatefulSet, *appsv1.DaemonSet, *batchv1.Job:
		return r.namespaced(where, obj, &r.objects.Workloads)
	case *v1.PersistentVolumeClaim, *v1.Service, *v1.ReplicationController, *policyv1.PodDisruptionBudget, *storagev1.CSIStorageCapacity:
		return r.namespaced(where, obj, &r.objects.Others)
	case *v1.Namespace, *v1.PersistentVolume, *storagev1.StorageClass, *storagev1.CSINode, *storagev1.CSIDriver,
		*storagev1.VolumeAttachment, *schedulingv1.PriorityClass:
		return r.add(where, obj, &r.objects.Others)
	}
	return fmt.Errorf("found a %s, want one of %s", obj.GetObjectKind().GroupVersionKind().Kind, strings.Join(kinds, ", "))
}

func (r *reader) pod(where string, pod *v1.Pod) error {
	pod.Namespace = orDefault(pod.Namespace)
	if pod.UID == "" {
		pod.UID = types.UID(facts.Name(pod))
	}
	// As the API server does: above all, a limit without a request is also the
	// request.
	defaults.SetObjectDefaults_Pod(pod)
	switch {
	case facts.IsFinished(pod):
	case pod.Spec.NodeName != "":
		r.objects.Running = append(r.objects.Running, pod)
	default:
		r.objects.Pending = append(r.objects.Pending, pod)
	}
	return r.once(where, "pod", pod.Namespace+"/", pod.Name)
}

// namespaced takes in an object of a namespace.
func (r *reader) namespaced(where string, obj runtime.Object, to *[]runtime.Object) error {
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return err
	}
	accessor.SetNamespace(orDefault(accessor.GetNamespace()))
	return r.add(where, obj, to)
}

// add takes in an object.
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
	return r.once(where, strings.ToLower(kind[strings.LastIndex(kind, ".")+1:]), namespace, accessor.GetName())
}

// once makes sure that an object has a name, and has it alone.
func (r *reader) once(where, kind, namespace, name string) error {
	if name == "" {
		return fmt.Errorf("a %s without metadata.name", kind)
	}
	key := kind + " " + namespace + name
	if first, ok := r.seen[key]; ok {
		return fmt.Errorf("%s is there twice, first in %s", key, first)
	}
	r.seen[key] = where
	return nil
}

// finish checks what can only be checked when all is read.
func (r *reader) finish() error {
	if len(r.objects.Nodes) == 0 {
		return errors.New("no nodes in what was given; scoring needs the nodes' manifests too (kubectl get nodes,pods -A -o yaml)")
	}
	for _, pod := range r.objects.Running {
		if _, ok := r.seen["node "+pod.Spec.NodeName]; !ok {
			r.objects.Warnings = append(r.objects.Warnings, fmt.Sprintf(
				"pod %s/%s runs on node %s, which is not in what was given; it does not count", pod.Namespace, pod.Name, pod.Spec.NodeName))
		}
	}
	return nil
}

func orDefault(namespace string) string {
	if namespace == "" {
		return v1.NamespaceDefault
	}
	return namespace
}
