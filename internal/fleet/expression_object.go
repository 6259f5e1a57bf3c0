package fleet

import (
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	celcommon "k8s.io/apiserver/pkg/cel/common"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
)

// clusterValue is the variable managedCluster: a cluster as in JSON, and its scores.
type clusterValue struct {
	traits.Mapper
	scores map[string]*addOnScore
}

// newClusterValue returns the variable for a cluster and its scores, which must not be changed afterwards.
func newClusterValue(c *clusterv1.ManagedCluster, scores map[string]*addOnScore) *clusterValue {
	parts := map[string]any{"metadata": &c.ObjectMeta, "spec": &c.Spec, "status": &c.Status}
	return &clusterValue{types.NewStringInterfaceMap(lazyAdapter{}, parts), scores}
}

// lazyAdapter converts the parts of a cluster each time that an expression uses one, and their fields as far as it uses
// them: these values are not safe for concurrent use.
type lazyAdapter struct{}

// NativeToValue implements types.Adapter.
func (lazyAdapter) NativeToValue(part any) ref.Val { return celcommon.SchemalessTypedToVal(part) }
