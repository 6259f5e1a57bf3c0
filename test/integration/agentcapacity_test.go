package integration

import (
	"context"
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	capacityv1alpha1 "github.com/plimsoll-k8s/plimsoll/api/capacity/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/fleet/capacity"
	"github.com/plimsoll-k8s/plimsoll/test/support/eventually"
)

// templateOf returns a pod template with requests.
func templateOf(cpu, memory string) *v1.PodTemplateSpec {
	return &v1.PodTemplateSpec{Spec: v1.PodSpec{Containers: []v1.Container{{Name: "c", Image: "c", Resources: v1.ResourceRequirements{
		Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse(cpu), v1.ResourceMemory: resource.MustParse(memory)},
	}}}}}
}

// awaitFit waits until a number of pods fits a cluster according to its ClusterCapacity on the hub.
func (h *fleetHub) awaitFit(t *testing.T, agent fmt.Stringer, cluster string, pod *v1.PodTemplateSpec, want int64) {
	t.Helper()
	template, err := capacity.NewTemplate(types.NamespacedName{Namespace: "shop", Name: "web"}, pod)
	if err != nil {
		t.Fatal(err)
	}
	eventually.True(t, fmt.Sprintf("%d pods do not fit %s", want, cluster), agent, func(ctx context.Context) (bool, error) {
		var object capacityv1alpha1.ClusterCapacity
		err := h.client.Get(ctx, client.ObjectKey{Namespace: cluster, Name: capacityv1alpha1.Name}, &object)
		if client.IgnoreNotFound(err) != nil || err != nil {
			return false, client.IgnoreNotFound(err)
		}
		summary, err := capacity.NewSummary(&object.Status)
		if err != nil {
			return false, err
		}
		w := capacity.Workload{Parts: []capacity.Part{{Template: template, Pods: 1}}, Replicas: 1}
		return w.Fit(summary, nil, 0).Now == want, nil
	})
}
