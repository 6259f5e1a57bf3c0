package monitoring

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

const alertsFile = "../../charts/plimsoll/files/alerts/plimsoll.yaml"

// alert is one of the rules.
type alert struct {
	Alert       string
	Expr        string
	For         string
	Labels      map[string]string
	Annotations map[string]string
}

func alerts(t *testing.T) (all []alert) {
	t.Helper()
	var file struct{ Groups []struct{ Rules []alert } }
	readYAML(t, alertsFile, &file)
	for _, group := range file.Groups {
		all = append(all, group.Rules...)
	}
	if len(all) == 0 {
		t.Fatalf("%s: no alerts", alertsFile)
	}
	return all
}

func readYAML(t *testing.T, file string, into any) {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(raw, into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

// Prometheus takes the rules, and they fire and do not fire as testdata says.
func TestAlerts(t *testing.T) {
	promtool(t, "check", "rules", alertsFile)
	if out := promtool(t, "test", "rules", filepath.Join("testdata", "alerts.yaml")); !strings.Contains(out, "SUCCESS") {
		t.Error(out)
	}
}

// Each alert is seen to fire and not to fire.
func TestEveryAlertIsTested(t *testing.T) {
	var file struct {
		Tests []struct {
			Rules []struct {
				Alertname string `json:"alertname"`
				Alerts    []any  `json:"exp_alerts"`
			} `json:"alert_rule_test"`
		}
	}
	readYAML(t, "testdata/alerts.yaml", &file)
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
	for _, a := range alerts(t) {
		if !fires[a.Alert] || !silent[a.Alert] {
			t.Errorf("%s: is tested to fire: %t, not to fire: %t", a.Alert, fires[a.Alert], silent[a.Alert])
		}
		delete(fires, a.Alert)
	}
	for name := range fires {
		t.Errorf("%s is tested, and is no alert", name)
	}
}

// Each alert says how bad it is, what it is, and where it says what to do; and
// asks for metrics that there are.
func TestAlertsSayWhatToDo(t *testing.T) {
	raw, err := os.ReadFile("../../docs/troubleshooting.md")
	if err != nil {
		t.Fatal(err)
	}
	names := known(t)
	for _, a := range alerts(t) {
		if severity := a.Labels["severity"]; severity != "critical" && severity != "warning" {
			t.Errorf("%s: severity %q, want critical or warning", a.Alert, severity)
		}
		if a.For == "" || a.Annotations["summary"] == "" || a.Annotations["description"] == "" {
			t.Errorf("%s: want for, summary and description", a.Alert)
		}
		if want := "/docs/troubleshooting.md#" + strings.ToLower(a.Alert); !strings.HasSuffix(a.Annotations["runbook_url"], want) {
			t.Errorf("%s: runbook_url %q, want it to end with %s", a.Alert, a.Annotations["runbook_url"], want)
		}
		if !strings.Contains(string(raw), "\n### "+a.Alert+"\n") {
			t.Errorf("docs/troubleshooting.md has no heading ### %s", a.Alert)
		}
		for _, name := range metricsIn(a.Expr) {
			if !names[name] {
				t.Errorf("%s: nobody registers %s", a.Alert, name)
			}
		}
	}
}
