//go:build foreign

package monitoring

import (
	"os"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

const (
	alertsFile        = "../../charts/plimsoll/files/alerts/plimsoll.yaml"
	rolloutAlertsFile = "../../examples/rollout/alerts.yaml"
)

// alert is an alerting rule.
type alert struct {
	Alert       string
	Expr        string
	For         string
	Labels      map[string]string
	Annotations map[string]string
}

func alerts(t *testing.T, name string) (all []alert) {
	t.Helper()
	var file struct{ Groups []struct{ Rules []alert } }
	readYAML(t, name, &file)
	for _, group := range file.Groups {
		all = append(all, group.Rules...)
	}
	if len(all) == 0 {
		t.Fatalf("%s: no alerts", name)
	}
	return all
}

func readYAML(t *testing.T, file string, into any) {
	t.Helper()
	raw, err := os.ReadFile(file)
	must.Succeed(t, err)
	if err := yaml.Unmarshal(raw, into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

// TestAlerts checks with promtool that the alerts fire as specified in testdata.
func TestAlerts(t *testing.T) {
	promtool(t, "check", "rules", alertsFile, rolloutAlertsFile)
	if out := promtool(t, "test", "rules", "testdata/alerts.yaml", "testdata/rollout.yaml"); strings.Count(out, "SUCCESS") != 2 {
		t.Error(out)
	}
}

// TestEveryAlertIsTested checks that testdata has a case for each alert in which it fires and one in which it does not.
func TestEveryAlertIsTested(t *testing.T) {
	for tests, rules := range map[string]string{"testdata/alerts.yaml": alertsFile, "testdata/rollout.yaml": rolloutAlertsFile} {
		expectEveryAlertTested(t, tests, rules)
	}
}

func expectEveryAlertTested(t *testing.T, tests, rules string) {
	t.Helper()
	var file struct {
		Tests []struct {
			Rules []struct {
				Alertname string `json:"alertname"`
				Alerts    []any  `json:"exp_alerts"`
			} `json:"alert_rule_test"`
		}
	}
	readYAML(t, tests, &file)
	fires, silent := map[string]bool{}, map[string]bool{}
	for _, test := range file.Tests {
		for _, rule := range test.Rules {
			if len(rule.Alerts) > 0 {
				fires[rule.Alertname] = true
			} else {
				silent[rule.Alertname] = true
			}
		}
	}
	for _, a := range alerts(t, rules) {
		if !fires[a.Alert] || !silent[a.Alert] {
			t.Errorf("%s: tested firing: %t, tested not firing: %t", a.Alert, fires[a.Alert], silent[a.Alert])
		}
		delete(fires, a.Alert)
	}
	for name := range fires {
		t.Errorf("%s is tested but is not an alert", name)
	}
}

// TestAlertsAreDocumented checks that each alert has a severity, a summary, a description, a runbook and
// only registered metrics.
func TestAlertsAreDocumented(t *testing.T) {
	raw, err := os.ReadFile("../../docs/troubleshooting.md")
	must.Succeed(t, err)
	names := known(t)
	for _, a := range alerts(t, alertsFile) {
		if severity := a.Labels["severity"]; severity != "critical" && severity != "warning" {
			t.Errorf("%s: severity %q, want critical or warning", a.Alert, severity)
		}
		if a.For == "" || a.Annotations["summary"] == "" || a.Annotations["description"] == "" {
			t.Errorf("%s: want for, summary and description", a.Alert)
		}
		if want := "/docs/troubleshooting.md#" + strings.ToLower(a.Alert); !strings.HasSuffix(a.Annotations["runbook_url"], want) {
			t.Errorf("%s: runbook_url %q, want the suffix %s", a.Alert, a.Annotations["runbook_url"], want)
		}
		if !strings.Contains(string(raw), "\n### "+a.Alert+"\n") {
			t.Errorf("docs/troubleshooting.md has no heading ### %s", a.Alert)
		}
		for _, name := range metricsIn(a.Expr) {
			if !names[name] {
				t.Errorf("%s: %s is not registered", a.Alert, name)
			}
		}
	}
}
