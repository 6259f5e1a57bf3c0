package slack

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/cli/base"
	"github.com/plimsoll-k8s/plimsoll/slack"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// TestStatusFitsTerminal checks that the status of a policy with a refused buffer fits terminals of 80 columns, is complete,
// and has each message once.
func TestStatusFitsTerminal(t *testing.T) {
	amounts := v1.ResourceList{v1.ResourceCPU: resource.MustParse("1234500m"), v1.ResourceMemory: resource.MustParse("1234Gi")}
	const message = "violates PodSecurity restricted:latest: allowPrivilegeEscalation != false, exceeded quota: compute"
	const refusal = "the autoscaler refuses CapacityBuffer plimsoll-system/general-rate: " + message
	results := []statusResult{
		{
			Policy: "general-purpose", Rate: "12.5%",
			Status: v1alpha1.ResourceSlackStatus{
				Base: amounts, Target: amounts, Total: amounts, Available: amounts, Placeholders: 1234, Placed: 1233,
				Conditions: []metav1.Condition{
					{Type: v1alpha1.ConditionFeasible, Status: metav1.ConditionTrue, Reason: "Planned", Message: "target 100 CPU"},
					{Type: v1alpha1.ConditionProvisioned, Status: metav1.ConditionTrue, Reason: "Available", Message: "target 100 CPU"},
					{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: "Refused", Message: refusal},
					{Type: v1alpha1.ConditionAccepted, Status: metav1.ConditionFalse, Reason: "Refused", Message: refusal},
				},
			},
			Buffers: []bufferStatus{{
				Namespace: "plimsoll-system", Name: "general-purpose-rate", Placeholders: 1234, Answer: slack.AnswerRefused,
				Message: message,
			}},
		},
		{Policy: "new", Rate: "10%"},
		{Policy: "scheduled", Rate: "0", Status: v1alpha1.ResourceSlackStatus{Schedule: &v1alpha1.ScheduleStatus{
			MinRate: "0", NextChange: &metav1.Time{Time: time.Unix(1772438400, 0)}, NextMinRate: "5%",
			NextMinimum: &v1alpha1.Amount{CPU: new(resource.MustParse("2500m")), Memory: new(resource.MustParse("10Gi"))},
		}}},
		{Policy: "constant", Rate: "0", Minimum: &v1alpha1.Amount{Placeholders: new(int32(3))}},
	}
	var out strings.Builder
	printStatus(&out, &base.Output{}, results)
	for line := range strings.Lines(out.String()) {
		if len(line)-1 > 80 {
			t.Errorf("a line of %d columns: %s", len(line)-1, line)
		}
	}
	words := strings.Join(strings.Fields(out.String()), " ")
	for want, count := range map[string]int{
		"12.5%": 1, "1233 fit": 1, "refused no": 1, message: 1, "target 100 CPU": 1, "new: no controller has": 1,
		"scheduled: rate 0 until 2026-03-02T08:00:00Z, then rate 5%, minimum 2.5 CPU and 10Gi memory": 1,
		"constant: rate 0, minimum 3 placeholders":                                                    1,
		"MEMORY PLACEHOLDERS": 1, "Accepted: false (Refused)": 1, "false (Refused) the autoscaler": 1,
	} {
		if got := strings.Count(words, want); got != count {
			t.Errorf("%q: %d times, want %d in\n%s", want, got, count, out.String())
		}
	}
	if strings.Index(words, "Ready: false") > strings.Index(words, "Feasible: true") {
		t.Errorf("Ready is not the first condition:\n%s", out.String())
	}
}

// TestNotReady checks that a policy whose last change the controller has not observed is not reported with the reason of an earlier
// generation.
func TestNotReady(t *testing.T) {
	for want, conditions := range map[string][]metav1.Condition{
		"no controller has observed it (is plimsoll-controller running?)": nil,
		"Refused": {{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: "Refused", Message: "no"}},
		"the controller has not observed its last change": {{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: "Held"}},
	} {
		if got := notReady(v1alpha1.ResourceSlackStatus{Conditions: conditions}); got != want {
			t.Errorf("%v: %s, want %s", conditions, got, want)
		}
	}
}

// TestStatusTimeout checks that a server that accepts connections and never answers is an error after --timeout.
func TestStatusTimeout(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must.Succeed(t, err)
	defer listener.Close()
	kubeconfig := filepath.Join(t.TempDir(), "config")
	must.Succeed(t, os.WriteFile(kubeconfig, []byte(`{apiVersion: v1, kind: Config, current-context: c,
		clusters: [{name: c, cluster: {server: "http://`+listener.Addr().String()+`"}}], contexts: [{name: c, context: {cluster: c}}]}`), 0o600))
	cmd := newStatusCommand()
	cmd.SetArgs([]string{"--kubeconfig", kubeconfig, "--timeout", "50ms"})
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	if err := cmd.ExecuteContext(
		t.Context(),
	); err == nil ||
		!strings.Contains(err.Error(), "--kubeconfig and --context select the server") {
		t.Errorf("%v, want an error that names the server", err)
	}
}
