package shared

import (
	"strings"
	"testing"

	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
)

// TestReportWorse checks the events of the ConfigMap with the history; without one there is no event.
func TestReportWorse(t *testing.T) {
	for _, tc := range []struct {
		configMap string
		worse     bool
		want      string
	}{
		{"kube-system/history", true, "Warning PredictionsWorse"},
		{"kube-system/history", false, "Normal PredictionsImproved"},
		{"", true, ""},
	} {
		recorder := events.NewFakeRecorder(1)
		reportWorse(klog.Background(), recorder, tc.configMap, tc.worse)
		close(recorder.Events)
		if got := <-recorder.Events; !strings.HasPrefix(got, tc.want) || (got == "") != (tc.want == "") {
			t.Errorf("%+v: event %q", tc, got)
		}
	}
}
