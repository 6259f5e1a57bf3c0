package recording

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-k8s/plimsoll/internal/manifest"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording/kinds"
	"github.com/plimsoll-k8s/plimsoll/load"
)

// A snapshot is a recording of one instant. It has all objects of a cluster as they were, nodes and pods included, in Objects, and may have
// the load of the nodes and the usage of the pods that were measured then.

// NewSnapshot returns a snapshot.
func NewSnapshot(now time.Time, kubernetes string, objects []kinds.Object, missing []Missing) *Recording {
	r := &Recording{About: About{From: now, To: now, Kubernetes: kubernetes, Missing: missing}, Objects: objects}
	r.About.complete()
	return r
}

// ReadSnapshot returns a snapshot of the objects in manifests, in their order, and counts the objects of other kinds.
func ReadSnapshot(now time.Time, source manifest.Source) (*Recording, manifest.Ignored, error) {
	var objects []kinds.Object
	var ignored manifest.Ignored
	err := manifest.EachObject(source, func(group, name string, object map[string]any) error {
		kind := kinds.Of(group, name)
		if kind == nil {
			ignored.Add(schema.GroupKind{Group: group, Kind: name})
			return nil
		}
		kept, err := kind.Trim(object)
		objects = append(objects, kept)
		return err
	})
	return NewSnapshot(now, "", objects, nil), ignored, err
}

// isSnapshot reports whether the recording is of one instant.
func (a *About) isSnapshot() bool { return a.Step == 0 }

// IsSnapshot reports whether the file in a value of --recording is a snapshot. An error of the file is found when it is read.
func IsSnapshot(text string) bool {
	path, _, _ := strings.Cut(text, ",")
	about, err := manifest.Open(path, readAbout)
	return err == nil && about.isSnapshot()
}

// isOfCluster reports whether objects of a kind affect scheduling.
func isOfCluster(k *kinds.Kind) bool { return k.Area == kinds.AreaCluster }

// Cluster returns the objects of a snapshot that affect scheduling.
func (r *Recording) Cluster() (*manifest.Objects, error) {
	objects, err := manifest.ReadFrom(r.documents(isOfCluster), false)
	if err != nil {
		return nil, err
	}
	objects.Kubernetes = r.About.Kubernetes
	return objects, nil
}

// Hub returns the objects that affect placements, and the objects that workloads of placements can refer to. The snapshot may be
// required to have placements.
func (r *Recording) Hub(requirePlacements bool) (*manifest.Hub, error) {
	return manifest.ReadRecordedHub(r.documents(func(k *kinds.Kind) bool {
		return k.Area == kinds.AreaHub || k.Resource == "deployments" || k.Resource == "podtemplates"
	}), requirePlacements)
}

// documents returns the objects of some kinds.
func (r *Recording) documents(has func(*kinds.Kind) bool) manifest.Source {
	return func(each func(where string, document []byte) error) error {
		for i, object := range r.Objects {
			if object.Kind == nil || !has(object.Kind) {
				continue
			}
			where := fmt.Sprintf("object %d", i+1)
			if err := each(where, object.JSON); err != nil {
				return fmt.Errorf("%s: %w", where, err)
			}
		}
		return nil
	}
}

// List returns the objects of the kind with a resource name, such as "pods".
func (r *Recording) List(resource string) (list []json.RawMessage) {
	for _, object := range r.Objects {
		if object.Kind != nil && object.Kind.Resource == resource {
			list = append(list, object.JSON)
		}
	}
	return list
}

// Redact returns a snapshot with pseudonyms in place of names, see kinds.Redactor. The key must be random and must not be stored.
func (r *Recording) Redact(key []byte) (*Recording, error) {
	redactor := kinds.NewRedactor(key)
	redactor.Prepare(r.Objects)
	omitted := map[string]int{}
	var objects []kinds.Object
	for i, object := range r.Objects {
		if object.Kind == nil || object.HasExpression() {
			omitted[object.String()]++
			continue
		}
		redacted, err := redactor.Redact(object)
		if err != nil {
			return nil, fmt.Errorf("object %d: %w", i+1, err)
		}
		objects = append(objects, redacted)
	}
	missing := slices.Clone(r.About.Missing)
	for _, kind := range slices.Sorted(maps.Keys(omitted)) {
		why := fmt.Sprintf("%d have an unknown kind or a CEL expression, in which names cannot be replaced", omitted[kind])
		missing = append(missing, Missing{kind, why})
	}
	out := NewSnapshot(r.About.From, r.About.Kubernetes, objects, missing)
	out.About.Redacted, out.About.HasAutoscalers = true, r.About.HasAutoscalers
	if r.Load != nil {
		reading := *r.Load
		reading.Nodes = make(map[string]load.Node, len(r.Load.Nodes))
		for name, node := range r.Load.Nodes {
			reading.Nodes[redactor.Name(name)] = node
		}
		out.Load = &reading
	}
	if r.Usage != nil {
		reading := *r.Usage
		reading.Pods = slices.Clone(r.Usage.Pods)
		for i, pod := range reading.Pods {
			pod.Namespace, pod.Name = redactor.Name(pod.Namespace), redactor.Name(pod.Name)
			reading.Pods[i] = pod
		}
		out.Usage = &reading
	}
	return out, nil
}

// releaseClaims returns the objects, with resource claims that are allocated only if a pod that runs from the start uses
// them.
func releaseClaims(objects []runtime.Object, pods []InputPod) []runtime.Object {
	running := map[types.UID]bool{}
	for i := range pods {
		if object := pods[i].Object; object.Spec.NodeName != "" {
			running[object.UID] = true
		}
	}
	objects = slices.Clone(objects)
	for i, object := range objects {
		claim, ok := object.(*resourcev1.ResourceClaim)
		if !ok {
			continue
		}
		claim = claim.DeepCopy()
		claim.Status.ReservedFor = slices.DeleteFunc(claim.Status.ReservedFor,
			func(r resourcev1.ResourceClaimConsumerReference) bool { return !running[r.UID] })
		if len(claim.Status.ReservedFor) == 0 {
			claim.Status.Allocation = nil
		}
		objects[i] = claim
	}
	return objects
}

// mapsExtendedResources reports whether a device class provides an extended resource, for which kube-scheduler creates
// resource claims.
func mapsExtendedResources(objects []runtime.Object) bool {
	return slices.ContainsFunc(objects, func(object runtime.Object) bool {
		class, ok := object.(*resourcev1.DeviceClass)
		return ok && class.Spec.ExtendedResourceName != nil
	})
}
