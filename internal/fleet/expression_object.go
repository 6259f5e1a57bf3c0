package fleet

import (
	"maps"
	"reflect"
	"slices"
	"sync"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
)

// clusterObject is the variable managedCluster of expressions for one version of a cluster.
// It converts nothing before an expression uses it, and is one allocation until then.
type clusterObject struct {
	cluster *clusterv1.ManagedCluster
	scores  map[string]*addOnScore
	// root is the whole cluster, the value of the variable.
	root  lazyObject
	parts [len(partFields)]lazyObject
	// complete is the cluster with all fields, see all.
	complete  traits.Mapper
	completed sync.Once

	mu sync.Mutex
	// lists has the scores that have been used, by name.
	lists map[string]ref.Val
}

// partFields are the parts of a cluster and how their fields are converted: a field that is
// converted alone, as in JSON, nil for others and for missing ones.
var partFields = [...]struct {
	name  string
	field func(c *clusterv1.ManagedCluster, name string) any
}{{"metadata", metadataField}, {"spec", specField}, {"status", statusField}}

// newObject returns the object of a cluster and its scores, which must not be changed
// afterwards.
func newObject(c *clusterv1.ManagedCluster, scores map[string]*addOnScore) *clusterObject {
	o := &clusterObject{cluster: c, scores: scores}
	o.root = lazyObject{of: o, part: whole}
	for i := range o.parts {
		o.parts[i] = lazyObject{of: o, part: i}
	}
	return o
}

// all returns the cluster with all fields.
func (o *clusterObject) all() traits.Mapper {
	o.completed.Do(func() {
		object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o.cluster)
		if err != nil {
			object = nil // expressions find no fields
		}
		o.complete = types.NewStringInterfaceMap(types.DefaultTypeAdapter, object)
	})
	return o.complete
}

// scoreList returns the items of an AddOnPlacementScore, sorted by name.
func (o *clusterObject) scoreList(name string) (list ref.Val, ok bool) {
	score := o.scores[name]
	if score == nil {
		return nil, false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if list, ok = o.lists[name]; ok {
		return list, true
	}
	items := []map[string]any{}
	for _, item := range slices.Sorted(maps.Keys(score.values)) {
		items = append(items, map[string]any{"name": item, "value": int64(score.values[item])})
	}
	list = types.DefaultTypeAdapter.NativeToValue(items)
	if o.lists == nil {
		o.lists = map[string]ref.Val{}
	}
	o.lists[name] = list
	return list, true
}

// lazyObject is an object of CEL whose fields are converted when an expression uses them.
// The conversion of a whole cluster takes ten times as long as that of its labels.
type lazyObject struct {
	of *clusterObject
	// part is the index of the part, or whole.
	part int

	mu sync.Mutex
	// fields has the fields that have been used.
	fields []usedField
}

// whole is the part of the whole cluster.
const whole = -1

// usedField is a field that an expression has used.
type usedField struct {
	name  types.String
	value ref.Val
}

// all returns the object with all fields.
func (o *lazyObject) all() traits.Mapper {
	if o.part == whole {
		return o.of.all()
	}
	if value, ok := o.of.all().Find(types.String(partFields[o.part].name)); ok {
		if mapper, ok := value.(traits.Mapper); ok {
			return mapper
		}
	}
	return types.NewStringInterfaceMap(types.DefaultTypeAdapter, nil)
}

// field returns a field that is converted alone, nil for others and for missing ones.
func (o *lazyObject) field(name types.String) ref.Val {
	if o.part == whole {
		for i := range partFields {
			if partFields[i].name == string(name) {
				return &o.of.parts[i]
			}
		}
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range o.fields {
		if o.fields[i].name == name {
			return o.fields[i].value
		}
	}
	native := partFields[o.part].field(o.of.cluster, string(name))
	if native == nil {
		return nil
	}
	value := types.DefaultTypeAdapter.NativeToValue(native)
	o.fields = append(o.fields, usedField{name, value})
	return value
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
		return o.all().Find(key)
	}
	if value := o.field(name); value != nil {
		return value, true
	}
	return o.all().Find(key)
}

// Contains implements traits.Container.
func (o *lazyObject) Contains(key ref.Val) ref.Val {
	if _, found := o.Find(key); found {
		return types.True
	}
	return o.all().Contains(key)
}

// Get implements traits.Indexer.
func (o *lazyObject) Get(key ref.Val) ref.Val {
	if value, found := o.Find(key); found {
		return value
	}
	return o.all().Get(key)
}

// Iterator implements traits.Iterable.
func (o *lazyObject) Iterator() traits.Iterator { return o.all().Iterator() }

// Size implements traits.Sizer.
func (o *lazyObject) Size() ref.Val { return o.all().Size() }

// ConvertToNative implements ref.Val.
func (o *lazyObject) ConvertToNative(t reflect.Type) (any, error) {
	return o.all().ConvertToNative(t)
}

// ConvertToType implements ref.Val.
func (o *lazyObject) ConvertToType(t ref.Type) ref.Val {
	if t == types.MapType {
		return o
	}
	return o.all().ConvertToType(t)
}

// Equal implements ref.Val.
func (o *lazyObject) Equal(other ref.Val) ref.Val {
	if lazy, ok := other.(*lazyObject); ok {
		other = lazy.all()
	}
	return o.all().Equal(other)
}

// Type implements ref.Val.
func (*lazyObject) Type() ref.Type { return types.MapType }

// Value implements ref.Val.
func (o *lazyObject) Value() any { return o.all().Value() }
