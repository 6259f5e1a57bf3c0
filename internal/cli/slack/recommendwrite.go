package slack

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/cli/base"
	"github.com/plimsoll-k8s/plimsoll/internal/format"
)

// runWrite requests a recommendation for a policy of the cluster, and prints it.
func (o *recommendOptions) runWrite(cmd *cobra.Command, name string) error {
	if err := o.output.Validate(); err != nil {
		return err
	}
	if _, _, err := v1alpha1.ParseWait(o.wait); err != nil {
		return base.InvalidValue("wait", o.wait, err.Error())
	}
	c, err := newClient(&o.cluster)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), o.cluster.Timeout)
	defer cancel()
	return base.Failure(o.request(ctx, c, name, cmd.OutOrStdout(), cmd.ErrOrStderr()))
}

// request sets the goal of a policy, waits until the controller has searched or states why it cannot search yet, and prints the answer.
func (o *recommendOptions) request(ctx context.Context, c client.Client, name string, out, progress io.Writer) error {
	policy := &v1alpha1.ResourceSlack{ObjectMeta: metav1.ObjectMeta{Name: name}}
	patch := fmt.Appendf(nil, `{"spec":{"recommend":{"wait":%q}}}`, o.wait)
	if err := c.Patch(ctx, policy, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return o.explain(name, err)
	}
	fmt.Fprintf(progress, "%s: spec.recommend.wait is %s: waiting up to %s for the controller\n",
		base.Escape(name), o.wait, o.cluster.Timeout)
	generation, state := policy.Generation, ""
	var answer *metav1.Condition
	err := wait.PollUntilContextCancel(ctx, time.Second, true, func(ctx context.Context) (bool, error) {
		err := c.Get(ctx, client.ObjectKeyFromObject(policy), policy)
		answer, state = meta.FindStatusCondition(policy.Status.Conditions, v1alpha1.ConditionRecommended), readyMessage(policy.Status)
		if answer == nil || answer.ObservedGeneration < generation {
			return false, err
		}
		state = answer.Message
		return answer.Reason != v1alpha1.ReasonSearching, err
	})
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("policy %s: no recommendation within %s (--timeout): %s", name, o.cluster.Timeout, state)
	case err != nil:
		return o.explain(name, err)
	}
	if answer.Reason == v1alpha1.ReasonSearchFailed {
		return fmt.Errorf("policy %s: %s", name, answer.Message)
	}
	return o.printAnswer(out, answer, policy)
}

// explain returns the error of a request for a policy.
func (o *recommendOptions) explain(name string, err error) error {
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("policy %q not found", name)
	case meta.IsNoMatchError(err):
		return errNoCRD
	}
	return fmt.Errorf("policy %s: %w", name, o.cluster.Explain(err))
}

// printAnswer prints an answer, and the policy with the recommended fields if it reaches the goal. The JSON is as in slack status.
func (o *recommendOptions) printAnswer(out io.Writer, answer *metav1.Condition, policy *v1alpha1.ResourceSlack) error {
	r, status := policy.Status.Recommendation, newStatusResult(policy)
	if answer.Status == metav1.ConditionUnknown {
		r = nil // of an earlier search
	}
	var recommended *v1alpha1.ResourceSlack
	if r != nil && r.Reached {
		recommended = policy
		policy.Spec.MinRate, policy.Spec.Minimum, policy.Spec.Schedules = r.MinRate, r.Minimum, r.Schedules
	}
	return o.printWithPolicy(out, status, func(out io.Writer) {
		if r != nil {
			percentile, _, _ := strings.Cut(r.Goal.Wait, "=")
			text := fmt.Sprintf("%s from %s to %s: wait %s %s, %s node hours", format.Of(r.Pods, "pod"), r.From.UTC().Format(time.RFC3339),
				r.To.UTC().Format(time.RFC3339), percentile, time.Duration(r.WaitSeconds)*time.Second, r.NodeHours)
			if r.Price != "" {
				text += " at a price of " + r.Price
			}
			fmt.Fprintln(out, base.Wrap("", base.Escape(text), base.DefaultWidth))
		}
		fmt.Fprintln(out, base.Wrap("", base.Escape(answer.Message), base.DefaultWidth))
	}, recommended, answer.Message)
}
