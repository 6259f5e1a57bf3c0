package fleet

import (
	"reflect"
	"sync"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
)

// lazyObject is an object of CEL whose fields are converted when an expression uses them.
// The conversion of a whole cluster takes ten times as long as that of its labels.
type lazyObject struct {
	// field returns a field that is converted alone, nil for others and for missing ones.
	field func(name string) any
	// complete returns the object with all fields.
	complete func() traits.Mapper
	// scores has the scores of add-ons by name. It is set in the cluster.
	scores map[string]any

	mu sync.Mutex
	// fields has the fields that have been used.
	fields map[types.String]ref.Val
}

// objectOf returns the object of a cluster and its scores for expressions.
func objectOf(c *clusterv1.ManagedCluster, scores map[string]any) *lazyObject {
	complete := sync.OnceValue(func() traits.Mapper {
		object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(c)
		if err != nil {
			object = nil // expressions find no fields
		}
		return types.NewStringInterfaceMap(types.DefaultTypeAdapter, object)
	})
	part := func(name string, field func(string) any) *lazyObject {
		return &lazyObject{field: field, complete: func() traits.Mapper {
			if value, ok := complete().Find(types.String(name)); ok {
				if mapper, ok := value.(traits.Mapper); ok {
					return mapper
				}
			}
			return types.NewStringInterfaceMap(types.DefaultTypeAdapter, nil)
		}}
	}
	parts := map[string]*lazyObject{
		"metadata": part("metadata", func(name string) any { return metadataField(c, name) }),
		"spec":     part("spec", func(name string) any { return specField(c, name) }),
		"status":   part("status", func(name string) any { return statusField(c, name) }),
	}
	field := func(name string) any {
		if p := parts[name]; p != nil {
			return p
		}
		return nil
	}
	return &lazyObject{field: field, complete: complete, scores: scores}
}

// metadataField returns a field of the metadata, as in JSON.
func metadataField(c *clusterv1.ManagedCluster, name string) any {
	switch {
	case name == "name" && c.Name != "":
		return c.Name
	case name == "labels" && len(c.Labels) > 0:
		return c.Labels
	case name == "annotations" && len(c.Annotations) > 0:
		return c.Annotations
	}
	return nil
}

// specField returns a field of the spec, as in JSON.
func specField(c *clusterv1.ManagedCluster, name string) any {
	switch {
	case name == "hubAcceptsClient":
		return c.Spec.HubAcceptsClient
	case name == "leaseDurationSeconds" && c.Spec.LeaseDurationSeconds != 0:
		return int64(c.Spec.LeaseDurationSeconds)
	}
	return nil
}

// statusField returns a field of the status, as in JSON.
func statusField(c *clusterv1.ManagedCluster, name string) any {
	switch {
	case name == "version" && c.Status.Version.Kubernetes != "":
		return map[string]string{"kubernetes": c.Status.Version.Kubernetes}
	case name == "allocatable" && len(c.Status.Allocatable) > 0:
		return texts(c.Status.Allocatable)
	case name == "capacity" && len(c.Status.Capacity) > 0:
		return texts(c.Status.Capacity)
	case name == "clusterClaims" && len(c.Status.ClusterClaims) > 0:
		claims := make([]map[string]string, len(c.Status.ClusterClaims))
		for i, claim := range c.Status.ClusterClaims {
			claims[i] = map[string]string{}
			if claim.Name != "" {
				claims[i]["name"] = claim.Name
			}
			if claim.Value != "" {
				claims[i]["value"] = claim.Value
			}
		}
		return claims
	}
	return nil
}

// texts returns quantities as text.
func texts(list clusterv1.ResourceList) map[string]string {
	out := make(map[string]string, len(list))
	for name, quantity := range list {
		out[string(name)] = quantity.String()
	}
	return out
}

// Find implements traits.Mapper.
func (o *lazyObject) Find(key ref.Val) (ref.Val, bool) {
	name, ok := key.(types.String)
	if !ok {
		return o.complete().Find(key)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if value, ok := o.fields[name]; ok {
		return value, true
	}
	native := o.field(string(name))
	if native == nil {
		return o.complete().Find(key)
	}
	if o.fields == nil {
		o.fields = map[types.String]ref.Val{}
	}
	value := types.DefaultTypeAdapter.NativeToValue(native)
	o.fields[name] = value
	return value, true
}

// Contains implements traits.Container.
func (o *lazyObject) Contains(key ref.Val) ref.Val {
	if _, found := o.Find(key); found {
		return types.True
	}
	return o.complete().Contains(key)
}

// Get implements traits.Indexer.
func (o *lazyObject) Get(key ref.Val) ref.Val {
	if value, found := o.Find(key); found {
		return value
	}
	return o.complete().Get(key)
}

// Iterator implements traits.Iterable.
func (o *lazyObject) Iterator() traits.Iterator { return o.complete().Iterator() }

// Size implements traits.Sizer.
func (o *lazyObject) Size() ref.Val { return o.complete().Size() }

// ConvertToNative implements ref.Val.
func (o *lazyObject) ConvertToNative(t reflect.Type) (any, error) {
	return o.complete().ConvertToNative(t)
}

// ConvertToType implements ref.Val.
func (o *lazyObject) ConvertToType(t ref.Type) ref.Val {
	if t == types.MapType {
		return o
	}
	return o.complete().ConvertToType(t)
}

// Equal implements ref.Val.
func (o *lazyObject) Equal(other ref.Val) ref.Val {
	if lazy, ok := other.(*lazyObject); ok {
		other = lazy.complete()
	}
	return o.complete().Equal(other)
}

// Type implements ref.Val.
func (*lazyObject) Type() ref.Type { return types.MapType }

// Value implements ref.Val.
func (o *lazyObject) Value() any { return o.complete().Value() }
