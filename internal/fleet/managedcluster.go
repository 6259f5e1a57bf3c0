package fleet

import (
	"encoding/json"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	capacityv1alpha1 "github.com/plimsoll-k8s/plimsoll/api/capacity/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// ManagedCluster is a ManagedCluster whose amounts are decoded within the bounds of resources.ParseQuantity: the agent of a
// cluster may report any text, and decoding 1e-2147483647 as a quantity takes hours, in which a client receives no other
// object. Amounts out of bounds are missing.
type ManagedCluster struct{ clusterv1.ManagedCluster }

// Lists of the types of this package.
type (
	ManagedClusterList  = listOf[ManagedCluster, *ManagedCluster]
	ClusterCapacityList = listOf[ClusterCapacity, *ClusterCapacity]
)

// listOf is a list of objects.
type listOf[T any, P interface {
	*T
	runtime.Object
}] struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []T `json:"items"`
}

// DeepCopyObject implements runtime.Object.
func (l *listOf[T, P]) DeepCopyObject() runtime.Object {
	out := *l
	l.DeepCopyInto(&out.ListMeta)
	out.Items = make([]T, len(l.Items))
	for i := range l.Items {
		out.Items[i] = *P(&l.Items[i]).DeepCopyObject().(P)
	}
	return &out
}

// InstallHub adds the types of this package to a scheme, in place of the types of the API.
func InstallHub(scheme *runtime.Scheme) error {
	version := schema.GroupVersion(clusterv1.GroupVersion)
	scheme.AddKnownTypes(version, &ManagedCluster{})
	scheme.AddKnownTypeWithName(version.WithKind("ManagedClusterList"), &ManagedClusterList{})
	metav1.AddToGroupVersion(scheme, version)
	scheme.AddKnownTypes(capacityv1alpha1.GroupVersion, &ClusterCapacity{})
	scheme.AddKnownTypeWithName(capacityv1alpha1.GroupVersion.WithKind("ClusterCapacityList"), &ClusterCapacityList{})
	metav1.AddToGroupVersion(scheme, capacityv1alpha1.GroupVersion)
	return nil
}

// boundedList decodes a list of resources.
type boundedList clusterv1.ResourceList

// UnmarshalJSON implements json.Unmarshaler.
func (l *boundedList) UnmarshalJSON(text []byte) error {
	var amounts map[clusterv1.ResourceName]json.RawMessage
	if err := json.Unmarshal(text, &amounts); err != nil {
		return err
	}
	*l = make(boundedList, len(amounts))
	for name, amount := range amounts {
		if quantity, err := resources.ParseQuantity(strings.Trim(string(amount), `" `)); err == nil {
			(*l)[name] = quantity
		}
	}
	return nil
}

// UnmarshalJSON implements json.Unmarshaler. The lists of resources hide the fields of the same names of the status.
func (c *ManagedCluster) UnmarshalJSON(text []byte) error {
	in := struct {
		*clusterv1.ManagedCluster
		Status struct {
			*clusterv1.ManagedClusterStatus
			Capacity    boundedList `json:"capacity"`
			Allocatable boundedList `json:"allocatable"`
		} `json:"status"`
	}{ManagedCluster: &c.ManagedCluster}
	in.Status.ManagedClusterStatus = &c.Status
	if err := json.Unmarshal(text, &in); err != nil {
		return err
	}
	c.Status.Capacity, c.Status.Allocatable = clusterv1.ResourceList(in.Status.Capacity), clusterv1.ResourceList(in.Status.Allocatable)
	return nil
}

// DeepCopyObject implements runtime.Object.
func (c *ManagedCluster) DeepCopyObject() runtime.Object {
	return &ManagedCluster{*c.DeepCopy()}
}
