package doctor

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
)

// checkSlack reads the policies and checks their conditions.
func (e *examination) checkSlack(ctx context.Context) error {
	var list v1alpha1.ResourceSlackList
	if err := e.client.List(ctx, &list); err != nil {
		if meta.IsNoMatchError(err) {
			e.ok("there are no slack policies")
			return nil
		}
		return err
	}
	e.policies = list.Items
	if len(e.policies) == 0 {
		e.ok("there are no slack policies")
		return nil
	}
	if len(e.components) > 0 && !slices.Contains(e.controllers(), "slack") {
		e.add(Problem, fmt.Sprintf("there are %d slack policies, but the slack controller is not installed", len(e.policies)),
			"helm upgrade plimsoll charts/plimsoll --set controller.enabled=true")
	}
	for i := range e.policies {
		policy := &e.policies[i]
		ready := meta.FindStatusCondition(policy.Status.Conditions, v1alpha1.ConditionReady)
		switch {
		case ready == nil:
			e.add(Problem, "policy "+policy.Name+" has no status: no controller has reconciled it",
				"check whether plimsoll-controller runs and is the leader")
		case ready.Status != metav1.ConditionTrue:
			e.add(Warning, fmt.Sprintf("policy %s is not ready: %s: %s", policy.Name, ready.Reason, ready.Message),
				"plimsoll slack status "+policy.Name)
		default:
			e.ok("policy %s is ready", policy.Name)
		}
	}
	return nil
}
