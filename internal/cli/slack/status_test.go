package slack

import (
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/cli/base"
	"github.com/plimsoll-k8s/plimsoll/slack"
)

// TestStatusFitsTerminal checks that the status of a policy with a refused buffer fits terminals of 80 and 40 columns, and
// is complete.
func TestStatusFitsTerminal(t *testing.T) {
	amounts := v1.ResourceList{v1.ResourceCPU: resource.MustParse("1234500m"), v1.ResourceMemory: resource.MustParse("1234Gi")}
	results := []statusResult{
		{
			Policy: "general-purpose", Rate: "12.5%",
			Status: v1alpha1.ResourceSlackStatus{
				Base: amounts, Target: amounts, Total: amounts, Available: amounts, Placeholders: 1234, Placed: 1233,
				Conditions: []metav1.Condition{
					{
						Type:    v1alpha1.ConditionReady,
						Status:  metav1.ConditionFalse,
						Reason:  "Refused",
						Message: "the autoscaler refuses CapacityBuffer plimsoll-system/general-rate: pods is forbidden, exceeded quota: compute",
					},
				},
			},
			Buffers: []bufferStatus{{
				Namespace: "plimsoll-system", Name: "general-purpose-rate", Placeholders: 1234, Answer: slack.AnswerRefused,
				Message: "violates PodSecurity restricted:latest: allowPrivilegeEscalation != false",
			}},
		},
		{Policy: "new", Rate: "10%"},
	}
	var out strings.Builder
	printStatus(&out, &base.Output{}, results)
	for line := range strings.Lines(out.String()) {
		if strings.Contains(line, "   ") && len(line) > 95 { // the name of the buffer has 36 columns
			t.Errorf("a row of %d columns: %s", len(line)-1, line)
		}
	}
	for _, want := range []string{"general-", "1234", "12.5%", "1234.5", "1233 fit", "refused", "exceeded quota: compute", "new: no controller has"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in\n%s", want, out.String())
		}
	}
}
