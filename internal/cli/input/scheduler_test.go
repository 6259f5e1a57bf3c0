package input

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// TestLoadSource checks which plugin's arguments select the load source.
func TestLoadSource(t *testing.T) {
	const (
		head      = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n"
		lowRisk   = "- schedulerName: a\n  pluginConfig: [{name: LowRiskOverCommitment, args: {watcherAddress: 'http://low:2020'}}]\n"
		predicted = "- schedulerName: b\n  pluginConfig: [{name: PredictedUtilization, args: {watcherAddress: 'http://predicted:2020'}}]\n"
		neither   = "- schedulerName: c\n  pluginConfig: [{name: PredictedUtilization, args: {podUsage: {type: KubernetesMetricsServer}}}]\n"
	)
	for name, tc := range map[string]struct{ profiles, scheduler, want string }{
		"LowRiskOverCommitment": {lowRisk, "", "http://low:2020"},
		"PredictedUtilization":  {predicted, "", "http://predicted:2020"},
		"the first profile":     {neither + predicted + lowRisk, "", "http://predicted:2020"},
		"a named profile":       {predicted + lowRisk, "a", "http://low:2020"},
		"usage of pods only":    {neither, "", ""},
		"another profile":       {predicted + neither, "c", ""},
	} {
		file := filepath.Join(t.TempDir(), "scheduler.yaml")
		must.Succeed(t, os.WriteFile(file, []byte(head+tc.profiles), 0o600))
		source, err := (&Scheduler{Config: file, Name: tc.scheduler}).LoadSource()
		if want := file + ": no profile configures a load source: set watcherAddress or metricProvider in the arguments of " +
			"LowRiskOverCommitment or PredictedUtilization"; tc.want == "" && (err == nil || err.Error() != want) {
			t.Errorf("%s: error %v, want %s", name, err, want)
		}
		if tc.want != source.Address || tc.want != "" && err != nil {
			t.Errorf("%s: source %q, want %q, error %v", name, source.Address, tc.want, err)
		}
	}
}
