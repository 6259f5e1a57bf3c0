package slack

import (
	"cmp"
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/demo/page"
)

// View returns the timeline for the live page, nil before the scenario has run.
func (d *Demo) View() *page.LiveTimeline { return d.timeline.view() }

// Policies returns the policies for the live page, nil before the controller has been started.
func (d *Demo) Policies(ctx context.Context) (*page.LivePolicies, error) {
	s := d.services.Load()
	if s == nil {
		return nil, nil
	}
	var list v1alpha1.ResourceSlackList
	if err := s.api.List(ctx, &list); err != nil {
		return nil, err
	}
	out := &page.LivePolicies{Autoscaler: d.Autoscaler()}
	for i := range list.Items {
		out.Policies = append(out.Policies, viewPolicy(&list.Items[i]))
	}
	return out, nil
}

// viewPolicy returns a row of the table of policies.
func viewPolicy(policy *v1alpha1.ResourceSlack) page.LivePolicy {
	out := page.LivePolicy{
		Name: policy.Name, Rate: policy.Spec.MinRate, Placeholders: policy.Status.Placeholders,
		Target: formatAmounts(policy.Status.Target), Available: formatAmounts(policy.Status.Available),
		Message: "not observed yet",
	}
	if ready := meta.FindStatusCondition(policy.Status.Conditions, v1alpha1.ConditionReady); ready != nil {
		out.Ready, out.Message = ready.Status == metav1.ConditionTrue, cmp.Or(ready.Message, ready.Reason)
	}
	return out
}

// formatAmounts returns CPU and memory of a list, in Gi or Mi rounded up, such as "0.8 CPUs, 1639Mi".
func formatAmounts(list v1.ResourceList) string {
	const mebibyte = 1 << 20
	memory := resource.NewQuantity((list.Memory().Value()+mebibyte-1)/mebibyte*mebibyte, resource.BinarySI)
	return fmt.Sprintf("%g CPUs, %s", float64(list.Cpu().MilliValue())/1000, memory)
}
