package slack

import (
	"cmp"
	"context"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/cli/base"
	"github.com/plimsoll-k8s/plimsoll/internal/kube"
)

// TestRequestRecommendation checks the patch of the spec, and the output or the error for each answer of the controller. The condition
// of another generation, and a search that runs, are no answers.
func TestRequestRecommendation(t *testing.T) {
	const generation = 3
	result := v1alpha1.Recommendation{
		Goal: v1alpha1.Recommend{Wait: "p99.9=1m"}, From: metav1.Unix(1772438400, 0), To: metav1.Unix(1772524800, 0), Pods: 12345,
		Reached: true, MinRate: "0%", Minimum: &v1alpha1.Amount{CPU: new(resource.MustParse("1500m"))}, WaitSeconds: 59,
		NodeHours: "288.65", Price: "230.92",
	}
	notReached := result
	notReached.Reached = false
	const table = "12345 pods from 2026-03-02T08:00:00Z to 2026-03-03T08:00:00Z: wait p99.9 59s, 288.65 node hours at a price of 230.92 why"
	const yaml = "apiVersion: plimsoll.dev/v1alpha1 kind: ResourceSlack metadata: name: general spec: granularity: 7 minRate: 0% " +
		"minimum: cpu: 1500m recommend: bootSeconds: 60 wait: p99.9=1m"
	const late = "policy general: no recommendation within 1m0s (--timeout): "
	type answer struct {
		status metav1.ConditionStatus
		reason string
		result *v1alpha1.Recommendation
	}
	for name, tc := range map[string]struct {
		policy, format string
		answer         answer
		want, err      string
	}{
		"reached":             {answer: answer{"True", "Reached", &result}, want: table + " " + yaml},
		"reached, YAML":       {format: base.FormatYAML, answer: answer{"True", "Reached", &result}, want: yaml},
		"not reached":         {answer: answer{"False", "NotReached", &notReached}, want: table},
		"not reached, YAML":   {format: base.FormatYAML, answer: answer{"False", "NotReached", &notReached}, err: "why"},
		"short history":       {answer: answer{"Unknown", "HistoryTooShort", nil}, want: "why"},
		"earlier result":      {answer: answer{"Unknown", "HistoryTooShort", &result}, want: "why"},
		"short history, YAML": {format: base.FormatYAML, answer: answer{"Unknown", "HistoryTooShort", nil}, err: "why"},
		"failed":              {answer: answer{"False", "SearchFailed", &result}, err: "policy general: why"},
		"search does not end": {answer: answer{"Unknown", "Searching", &result}, err: late + "why"},
		"no controller":       {err: late + "no controller has observed it (is"},
		"no policy":           {policy: "other", err: `policy "other" not found`},
		"no CRD":              {policy: "no CRD", err: "the cluster has no ResourceSlacks: install the CRD"},
		"short history, JSON": {
			format: base.FormatJSON, answer: answer{"Unknown", "HistoryTooShort", nil},
			want: `"reason": "HistoryTooShort", "message": "why"`,
		},
		"not reached, JSON": {
			format: base.FormatJSON, answer: answer{"False", "NotReached", &notReached}, want: `"reached": false, "minRate": "0%",`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			policy := &v1alpha1.ResourceSlack{ObjectMeta: metav1.ObjectMeta{Name: "general", Generation: generation}}
			policy.Spec = v1alpha1.ResourceSlackSpec{
				MinRate: "12%", Granularity: new(int32(7)), Recommend: &v1alpha1.Recommend{Wait: "p50=1s", BootSeconds: new(int32(60))},
			}
			policy.Status.Conditions = []metav1.Condition{{
				Type: v1alpha1.ConditionRecommended, Status: "True", Reason: "Reached", Message: "outdated",
				ObservedGeneration: generation - 1,
			}}
			if tc.answer.reason == "" {
				policy.Status.Conditions = nil
			}
			reads := 0
			builder := fake.NewClientBuilder().WithScheme(kube.Scheme()).WithObjects(policy).WithStatusSubresource(policy)
			c := builder.WithInterceptorFuncs(interceptor.Funcs{
				Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, options ...client.PatchOption) error {
					if tc.policy == "no CRD" {
						return &meta.NoKindMatchError{}
					}
					return c.Patch(ctx, o, p, options...)
				},
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
					err := c.Get(ctx, key, o, options...)
					found := o.(*v1alpha1.ResourceSlack)
					if reads++; reads == 1 || tc.answer.reason == "" { // the controller has not reconciled yet
						if tc.answer.reason == "" {
							cancel()
						}
						return err
					}
					found.Status.Recommendation = tc.answer.result
					found.Status.Conditions[0] = metav1.Condition{
						Type: v1alpha1.ConditionRecommended, Status: tc.answer.status, Reason: tc.answer.reason, Message: "why",
						ObservedGeneration: generation,
					}
					if tc.answer.reason == v1alpha1.ReasonSearching {
						cancel()
					}
					return err
				},
			}).Build()
			o := recommendOptions{wait: "p99.9=1m", cluster: base.Cluster{Timeout: time.Minute}}
			o.output.Format = cmp.Or(tc.format, base.FormatTable)
			var out, progress strings.Builder
			err := o.request(ctx, c, cmp.Or(tc.policy, "general"), &out, &progress)
			cancel()
			if tc.err == "" && err != nil || tc.err != "" && (err == nil || !strings.HasPrefix(err.Error(), tc.err)) {
				t.Errorf("error %v, want %q", err, tc.err)
			}
			got := strings.Join(strings.Fields(out.String()), " ")
			if got != tc.want && (tc.format != base.FormatJSON || !strings.Contains(got, tc.want)) {
				t.Errorf("output\n%s\nwant\n%s", got, tc.want)
			}
			for line := range strings.Lines(out.String() + progress.String()) {
				if len(line)-1 > 80 {
					t.Errorf("a line of %d columns: %s", len(line)-1, line)
				}
			}
			want := policy.Spec.DeepCopy()
			if tc.policy == "" {
				want.Recommend.Wait = "p99.9=1m"
			}
			after := &v1alpha1.ResourceSlack{}
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(policy), after); err != nil {
				t.Fatal(err)
			}
			if diff := gocmp.Diff(want, &after.Spec); diff != "" {
				t.Errorf("spec: -want +got:\n%s", diff)
			}
		})
	}
}
