package doctor

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
)

// slack reads the policies, and what their controller says of them.
func (x *examination) slack(ctx context.Context) error {
	var list v1alpha1.ResourceSlackList
	if err := x.client.List(ctx, &list); err != nil {
		if meta.IsNoMatchError(err) {
			x.ok("there are no slack policies")
			return nil
		}
		return err
	}
	x.policies = list.Items
	if len(x.policies) == 0 {
		x.ok("there are no slack policies")
		return nil
	}
	if len(x.components) > 0 && !slices.Contains(x.controllers(), "slack") {
		x.add(Problem, fmt.Sprintf("there are %d slack policies and no controller for them", len(x.policies)), "helm upgrade plimsoll charts/plimsoll --set controller.enabled=true")
	}
	for i := range x.policies {
		policy := &x.policies[i]
		ready := meta.FindStatusCondition(policy.Status.Conditions, v1alpha1.ConditionReady)
		switch {
		case ready == nil:
			x.add(Problem, "policy "+policy.Name+" has no status: no controller has seen it", "look whether plimsoll-controller runs and leads")
		case ready.Status != metav1.ConditionTrue:
			x.add(Warning, fmt.Sprintf("policy %s is not ready: %s: %s", policy.Name, ready.Reason, ready.Message), "plimsoll slack status "+policy.Name)
		default:
			x.ok("policy %s is ready", policy.Name)
		}
	}
	return nil
}
