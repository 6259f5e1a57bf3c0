package fleet

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/plimsoll-k8s/plimsoll/api/capacity/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/fleet/capacity"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// ClusterCapacity is a ClusterCapacity that is decoded to its summary: a fleet has millions of groups, which as objects of the API take
// ten times as much memory.
type ClusterCapacity struct {
	metav1.TypeMeta
	metav1.ObjectMeta

	// Summary is nil if Err is set: the object is too large, malformed, or about another cluster.
	Summary *capacity.Summary
	Err     error
}

// ClusterCapacityList is a list of ClusterCapacities.
type ClusterCapacityList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []ClusterCapacity `json:"items"`
}

// UnmarshalJSON implements json.Unmarshaler. It returns an error only if the metadata cannot be decoded: one bad object must not keep a
// client from the others.
func (c *ClusterCapacity) UnmarshalJSON(text []byte) error {
	var head struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`
	}
	if err := json.Unmarshal(text, &head); err != nil {
		return err
	}
	c.TypeMeta, c.ObjectMeta = head.TypeMeta, head.ObjectMeta
	c.ManagedFields = nil
	c.Summary, c.Err = c.decode(text)
	return nil
}

// decode returns the summary of the object.
func (c *ClusterCapacity) decode(text []byte) (*capacity.Summary, error) {
	const maxManaged = 100_000 // the size of the managed fields, which the API server adds
	if len(text) > v1alpha1.MaxBytes+maxManaged {
		return nil, fmt.Errorf("found %d bytes, at most %d are allowed", len(text), v1alpha1.MaxBytes)
	}
	if err := resources.CheckQuantities(text); err != nil {
		return nil, err
	}
	var object v1alpha1.ClusterCapacity
	if err := json.Unmarshal(text, &object); err != nil {
		return nil, err
	}
	switch {
	case object.Name != v1alpha1.Name:
		return nil, fmt.Errorf("metadata.name: found %q: must be %q", object.Name, v1alpha1.Name)
	case object.Status.Cluster != object.Namespace:
		return nil, fmt.Errorf("status.cluster: found %q: must be the namespace %q", object.Status.Cluster, object.Namespace)
	}
	return capacity.NewSummary(&object.Status)
}

// DeepCopyObject implements runtime.Object. The copies share the summary, which does not change.
func (c *ClusterCapacity) DeepCopyObject() runtime.Object {
	out := *c
	c.DeepCopyInto(&out.ObjectMeta)
	return &out
}

// DeepCopyObject implements runtime.Object.
func (l *ClusterCapacityList) DeepCopyObject() runtime.Object {
	out := *l
	l.DeepCopyInto(&out.ListMeta)
	out.Items = make([]ClusterCapacity, len(l.Items))
	for i := range l.Items {
		out.Items[i] = *l.Items[i].DeepCopyObject().(*ClusterCapacity)
	}
	return &out
}
