package fleet

import (
	"encoding/json"
	"fmt"
	"math"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

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
		return nil, resources.DecodingError(text, &object, err)
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

// Bounds of the age in seconds of summaries.
const (
	maxSummaryAge   = 15 * 60
	maxSummaryAhead = 2 * 60
)

// ageOf formats a number of seconds, up to the longest duration.
func ageOf(seconds int64) string {
	return format.Age(time.Duration(min(seconds, math.MaxInt64/int64(time.Second))) * time.Second)
}

// currentSummary returns the summary of the cluster, or why there is none. The receiver is nil if the cluster has no ClusterCapacity.
func (c *ClusterCapacity) currentSummary(now int64) (*fit.Summary, string) {
	switch {
	case c == nil:
		return nil, "has no ClusterCapacity"
	case c.Err != nil:
		return nil, "has a ClusterCapacity that is not valid: " + c.Err.Error()
	case now-c.Summary.ObservedAt > maxSummaryAge:
		return nil, fmt.Sprintf("has a ClusterCapacity that is %s old: must be at most %dm",
			ageOf(now-c.Summary.ObservedAt), maxSummaryAge/60)
	case c.Summary.ObservedAt-now > maxSummaryAhead:
		return nil, fmt.Sprintf("has a ClusterCapacity that is %s in the future: must be at most %dm",
			ageOf(c.Summary.ObservedAt-now), maxSummaryAhead/60)
	}
	return c.Summary, ""
}
