package shared

import (
	"strings"
	"testing"

	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
)

// TestReportAside checks the events of the ConfigMap with the history; without one there is no event.
func TestReportAside(t *testing.T) {
	for _, tc := range []struct {
		configMap      string
		byRequestsOnly bool
		want           string
	}{
		{"kube-system/history", true, "Warning PredictsByRequests"},
		{"kube-system/history", false, "Normal PredictsByUsage"},
		{"", true, ""},
	} {
		recorder := events.NewFakeRecorder(1)
		reportAside(klog.Background(), recorder, tc.configMap, tc.byRequestsOnly)
		close(recorder.Events)
		if got := <-recorder.Events; !strings.HasPrefix(got, tc.want) || (got == "") != (tc.want == "") {
			t.Errorf("%+v: event %q", tc, got)
		}
	}
}
