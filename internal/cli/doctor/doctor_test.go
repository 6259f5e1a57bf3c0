package doctor

import (
	"bytes"
	"testing"

	"github.com/plimsoll-k8s/plimsoll/internal/doctor"
)

// TestParseName checks the value of --autoscaler.
func TestParseName(t *testing.T) {
	for text, want := range map[string]string{
		"": "/", "kube-system/cluster-autoscaler": "kube-system/cluster-autoscaler", "scaler": "error", "/scaler": "error", "a/b/c": "error",
		"kube-system/": "error", "kube-system/Scaler": "error",
	} {
		got, err := parseName(text)
		if (err != nil) != (want == "error") || err == nil && got.String() != want {
			t.Errorf("parseName(%q) = %v, %v; want %s", text, got, err, want)
		}
		if err != nil && err.Error() != `--autoscaler: invalid value "`+text+`": must be NAMESPACE/NAME of a Deployment` {
			t.Errorf("error %q", err)
		}
	}
}

var findings = []doctor.Finding{
	{Check: "rights", Level: doctor.OK, Message: "complete"},
	{Check: "nodes", Level: doctor.OK, Message: "3 nodes"},
	{Check: "nodes", Level: doctor.Warning, Message: "node-2 is not ready", Fix: "kubectl describe node node-2"},
	{Check: "load", Level: doctor.Problem, Message: "the load is 20 minutes old", Fix: "see the logs"},
	{Check: "slack", Level: doctor.OK, Message: "no policies"},
}

// TestPrintFindings checks the order: problems, warnings, each with its remedy, and one line for passed checks.
func TestPrintFindings(t *testing.T) {
	var out bytes.Buffer
	printFindings(&out, findings)
	want := `PROBLEM load: the load is 20 minutes old
  remedy: see the logs

WARNING nodes: node-2 is not ready
  remedy: kubectl describe node node-2

OK rights, slack
1 problem, 1 warning, 4 checks
`
	if out.String() != want {
		t.Errorf("got\n%s, want\n%s", out.String(), want)
	}
}

func TestPrintMarkdown(t *testing.T) {
	var out bytes.Buffer
	printMarkdown(&out, findings)
	want := `### plimsoll doctor: 1 problem, 1 warning, 4 checks

| level | check | finding | remedy |
| --- | --- | --- | --- |
| problem | load | the load is 20 minutes old | see the logs |
| warning | nodes | node-2 is not ready | kubectl describe node node-2 |

OK: rights, slack
`
	if out.String() != want {
		t.Errorf("got\n%s, want\n%s", out.String(), want)
	}
}
