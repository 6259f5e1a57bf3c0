package fleet

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/plimsoll-k8s/plimsoll/api/capacity/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/demo"
	"github.com/plimsoll-k8s/plimsoll/internal/kube"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// TestRenew checks that no ClusterCapacity is older than 15 minutes while the demo runs, as such ones do not count.
func TestRenew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &hub{Cluster: &demo.Cluster{API: fake.NewClientBuilder().WithScheme(kube.Scheme()).Build()}}
		must.Succeed(t, h.publishAll(t.Context()))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() { _ = h.renew(ctx) }()
		<-time.After(time.Hour)
		synctest.Wait()
		var list v1alpha1.ClusterCapacityList
		must.Succeed(t, h.API.List(t.Context(), &list))
		if len(list.Items) != len(members) {
			t.Errorf("got %d ClusterCapacities, want %d", len(list.Items), len(members))
		}
		for _, c := range list.Items {
			if age := time.Since(c.Status.ObservedAt.Time); age > 15*time.Minute {
				t.Errorf("%s was observed %s ago", c.Namespace, age)
			}
		}
	})
}
