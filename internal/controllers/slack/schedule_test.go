package slack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/slack"
)

// TestSchedule checks that a policy follows its schedule, is reconciled at the next change, has the change in its status, and
// writes nothing between changes.
func TestSchedule(t *testing.T) {
	policy := newPolicy("web", "web", func(s *v1alpha1.ResourceSlackSpec) {
		s.MinRate = "25%"
		s.Schedules = []v1alpha1.Schedule{
			{Days: "Mon-Fri", From: "07:30", To: "19:00", MinRate: "100%", Minimum: &v1alpha1.Amount{Placeholders: new(int32(3))}},
		}
	})
	c := controllerOf(t, interceptor.Funcs{}, append(webPool(), policy)...)
	placeholders := func(a *v1alpha1.Amount) int32 {
		if a == nil {
			return 0
		}
		return *a.Placeholders
	}
	writes := func() float64 { return testutil.ToFloat64(c.metrics.writes.WithLabelValues("CapacityBuffer", "apply")) }
	for _, step := range []struct {
		at      string
		want    string // placeholders, rate, minimum of placeholders, next change, rate and minimum
		requeue time.Duration
		writes  float64
	}{
		// 25% of (4, 16Gi) is one pod, the biggest; 100% is four.
		{"2026-01-05T07:00:00Z", "1 25% 0 2026-01-05T07:30:00Z 100% 3", resyncPeriod, 1},
		{"2026-01-05T07:29:50Z", "1 25% 0 2026-01-05T07:30:00Z 100% 3", 10 * time.Second, 1},
		{"2026-01-05T07:30:00Z", "4 100% 3 2026-01-05T19:00:00Z 25% 0", resyncPeriod, 2},
		{"2026-01-05T12:00:00Z", "4 100% 3 2026-01-05T19:00:00Z 25% 0", resyncPeriod, 2},
		{"2026-01-09T19:00:00Z", "1 25% 0 2026-01-12T07:30:00Z 100% 3", resyncPeriod, 2}, // Friday: the buffer is deleted
	} {
		now, err := time.Parse(time.RFC3339, step.at)
		if err != nil {
			t.Fatal(err)
		}
		c.now = func() time.Time { return now }
		result, err := c.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Name: "web"}})
		if err != nil {
			t.Fatal(err)
		}
		before := reconcileOnce(t, c, "web")
		s := before.Status
		got := fmt.Sprint(s.Placeholders, " ", s.Schedule.MinRate, " ", placeholders(s.Schedule.Minimum), " ",
			s.Schedule.NextChange.UTC().Format(time.RFC3339), " ", s.Schedule.NextMinRate, " ", placeholders(s.Schedule.NextMinimum))
		if got != step.want || result.RequeueAfter != step.requeue || writes() != step.writes {
			t.Errorf("%s: %s after %s and %v writes, want %s, %s and %v", step.at, got, result.RequeueAfter, writes(), step.want,
				step.requeue, step.writes)
		}
		if after := reconcileOnce(t, c, "web"); after.ResourceVersion != before.ResourceVersion {
			t.Errorf("%s: the status is written although nothing changed", step.at)
		}
	}
	// A schedule that never applies: the last plan remains.
	policy = reconcileOnce(t, c, "web")
	policy.Generation++
	policy.Spec.Schedules[0].To = policy.Spec.Schedules[0].From
	if err := c.client.Update(t.Context(), policy); err != nil {
		t.Fatal(err)
	}
	held := managed(t, c)
	policy = reconcileOnce(t, c, "web")
	ready := meta.FindStatusCondition(policy.Status.Conditions, v1alpha1.ConditionReady)
	if ready.Reason != reasonInvalid || !strings.Contains(ready.Message, "spec.schedules[0].to: Invalid value: must differ from from") {
		t.Errorf("condition %+v, want %s", ready, reasonInvalid)
	}
	if policy.Status.Schedule != nil {
		t.Errorf("schedule %+v, whose next change does not happen", policy.Status.Schedule)
	}
	if after := managed(t, c); fmt.Sprint(after) != fmt.Sprint(held) || policy.Status.Placeholders != 1 {
		t.Errorf("objects %v, %d placeholders; want those before, %v", after, policy.Status.Placeholders, held)
	}
}

// TestProvisioningStrategy checks that the strategy is in the buffers, and that buffers are written without it, once, if the installed
// definition has no such field.
func TestProvisioningStrategy(t *testing.T) {
	for _, known := range []bool{true, false} {
		policy := newPolicy("web", "web", func(s *v1alpha1.ResourceSlackSpec) { s.ProvisioningStrategy = "example.com/spot" })
		refused := 0
		c := controllerOf(t, interceptor.Funcs{
			Apply: func(ctx context.Context, c client.WithWatch, o runtime.ApplyConfiguration, options ...client.ApplyOption) error {
				raw, err := json.Marshal(o)
				if err != nil {
					return err
				}
				if !known && strings.Contains(string(raw), "provisioningStrategy") {
					refused++
					return apierrors.NewInternalError(errors.New("failed to create typed patch object (plimsoll-system/web-head; " +
						"autoscaling.x-k8s.io/v1beta1, Kind=CapacityBuffer): .spec.provisioningStrategy: field not declared in schema"))
				}
				return c.Apply(ctx, o, options...)
			},
		}, append(webPool(), policy)...)
		c.now = func() time.Time { return time.Unix(1_800_000_000, 0) }
		reconcileOnce(t, c, "web")
		writes := testutil.ToFloat64(c.metrics.writes.WithLabelValues("CapacityBuffer", "apply"))
		policy = reconcileOnce(t, c, "web")
		if again := testutil.ToFloat64(c.metrics.writes.WithLabelValues("CapacityBuffer", "apply")); again != writes {
			t.Errorf("known %t: %v writes, then %v", known, writes, again)
		}
		accepted := meta.FindStatusCondition(policy.Status.Conditions, v1alpha1.ConditionAccepted)
		if stated := strings.Contains(accepted.Message, "spec.provisioningStrategy is not passed on"); stated == known {
			t.Errorf("known %t: message %q", known, accepted.Message)
		}
		objects, err := c.existing(t.Context(), "web")
		if err != nil {
			t.Fatal(err)
		}
		for i := range objects {
			strategy, has, _ := unstructured.NestedString(objects[i].Object, "spec", slack.StrategyField)
			if objects[i].GetKind() == "CapacityBuffer" && (has != known || has && strategy != "example.com/spot") {
				t.Errorf("known %t: strategy %q in buffer %s", known, strategy, objects[i].GetName())
			}
		}
		if !known && refused == 0 {
			t.Error("the strategy was never written")
		}
	}
}
