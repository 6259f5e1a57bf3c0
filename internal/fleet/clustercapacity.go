package fleet

import (
	"encoding/json"
	"fmt"
	"math"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-k8s/plimsoll/api/capacity/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/fleet/fit"
	"github.com/plimsoll-k8s/plimsoll/internal/format"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// ClusterCapacity is a ClusterCapacity that is decoded to its summary: a fleet has millions of groups, which as objects of the API take
// ten times as much memory.
type ClusterCapacity struct {
	metav1.TypeMeta
	metav1.ObjectMeta

	// Summary is nil if Err is set: the object is too large, malformed, or about another cluster.
	Summary *fit.Summary
	Err     error
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
func (c *ClusterCapacity) decode(text []byte) (*fit.Summary, error) {
	const maxManaged = 100_000 // the size of the managed fields, which the API server adds
	if len(text) > v1alpha1.MaxBytes+maxManaged {
		return nil, fmt.Errorf("found %d bytes, at most %d are allowed", len(text), v1alpha1.MaxBytes)
	}
	if err := resources.CheckQuantities(text); err != nil {
		return nil, err
	}
	var object v1alpha1.ClusterCapacity
	if err := json.Unmarshal(text, &object); err != nil {
		return nil, resources.ExplainDecoding(text, &object, err)
	}
	switch {
	case object.Name != v1alpha1.Name:
		return nil, fmt.Errorf("metadata.name: found %q: must be %q", object.Name, v1alpha1.Name)
	case object.Status.Cluster != object.Namespace:
		return nil, fmt.Errorf("status.cluster: found %q: must be the namespace %q", object.Status.Cluster, object.Namespace)
	}
	return fit.NewSummary(&object.Status)
}

// DeepCopyObject implements runtime.Object. The copies share the summary, which does not change.
func (c *ClusterCapacity) DeepCopyObject() runtime.Object {
	out := *c
	c.DeepCopyInto(&out.ObjectMeta)
	return &out
}

// SetCapacity sets the capacity of a cluster, and returns the placements whose decisions can change.
func (s *State) SetCapacity(object *ClusterCapacity) []types.NamespacedName {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changeCapacity(object.Namespace, object)
}

// DeleteCapacity removes the capacity of a cluster.
func (s *State) DeleteCapacity(cluster string) []types.NamespacedName {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changeCapacity(cluster, nil)
}

func (s *State) changeCapacity(cluster string, object *ClusterCapacity) (keys []types.NamespacedName) {
	e := s.entry(cluster)
	if e.capacity != nil {
		for _, p := range s.placements {
			if p.workload != nil {
				delete(p.workload.fits, e.capacity.Summary)
			}
		}
	}
	e.capacity = object
	s.dropIfEmpty(cluster)
	if i, known := s.indexOf(cluster); known {
		keys = s.affected(s.fleet[i], nil, capacityFields, "")
	}
	return keys
}

// Bounds of the age in seconds of summaries.
const (
	maxSummaryAge   = 15 * 60
	maxSummaryAhead = 2 * 60
)

// ageOf formats a number of seconds, up to the longest duration.
func ageOf(seconds int64) string {
	return format.Age(time.Duration(min(seconds, math.MaxInt64/int64(time.Second))) * time.Second)
}

// currentSummary returns the summary of the cluster, or why there is none.
func (e *entry) currentSummary(now int64) (*fit.Summary, string) {
	object := e.capacity
	switch {
	case object == nil:
		return nil, "has no ClusterCapacity"
	case object.Err != nil:
		return nil, "has a ClusterCapacity that is not valid: " + object.Err.Error()
	case now-object.Summary.ObservedAt > maxSummaryAge:
		return nil, fmt.Sprintf("has a ClusterCapacity that is %s old: must be at most %dm",
			ageOf(now-object.Summary.ObservedAt), maxSummaryAge/60)
	case object.Summary.ObservedAt-now > maxSummaryAhead:
		return nil, fmt.Sprintf("has a ClusterCapacity that is %s in the future: must be at most %dm",
			ageOf(object.Summary.ObservedAt-now), maxSummaryAhead/60)
	}
	return object.Summary, ""
}
