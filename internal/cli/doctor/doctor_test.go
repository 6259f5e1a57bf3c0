package doctor

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/plimsoll-k8s/plimsoll/internal/cli/base"
	"github.com/plimsoll-k8s/plimsoll/internal/doctor"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
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
	{Check: "leaders", Level: doctor.Unmade, Message: "leases is forbidden", Fix: "grant it"},
}

// TestPrintFindings checks the order: problems, warnings, each with its remedy, and one line for passed checks.
func TestPrintFindings(t *testing.T) {
	var out bytes.Buffer
	printFindings(&out, findings)
	want := `PROBLEM load: the load is 20 minutes old
  remedy: see the logs

NOT CHECKED leaders: leases is forbidden
  remedy: grant it

WARNING nodes: node-2 is not ready
  remedy: kubectl describe node node-2

OK rights, slack
1 problem, 1 warning, 4 checks, 1 not made
`
	if out.String() != want {
		t.Errorf("got\n%s, want\n%s", out.String(), want)
	}
}

// TestWithoutRights expects that checks of an API server that refuses all but its version are not made, which is a failure, also where the
// kubeconfig has no user.
func TestWithoutRights(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if w.Header().Set("Content-Type", "application/json"); r.URL.Path == "/version" {
			fmt.Fprint(w, `{"gitVersion": "v1.37.0", "major": "1", "minor": "37"}`)
			return
		}
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(
			w,
			`{"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "forbidden", "reason": "Forbidden", "code": 403}`,
		)
	}))
	defer server.Close()
	file, out := filepath.Join(t.TempDir(), "config"), bytes.Buffer{}
	must.Succeed(t, os.WriteFile(file, fmt.Appendf(nil, "{apiVersion: v1, kind: Config, current-context: c, clusters: [{name: c, cluster: "+
		"{server: '%s'}}], contexts: [{name: c, context: {cluster: c}}]}", server.URL), 0o600))
	cmd := NewCommand()
	cmd.SetArgs([]string{"--kubeconfig", file})
	cmd.SetOut(&out)
	cmd.SilenceUsage = true
	err := cmd.Execute()
	if base.ExitCode(err, 0) != base.ExitFailure || err.Error() != "nodes, components and definitions could not be read" ||
		!strings.HasSuffix(out.String(), "\nOK api server\n0 problems, 0 warnings, 1 check, 10 not made\n") {
		t.Errorf("%v\n%s", err, out.String())
	}
}

func TestPrintMarkdown(t *testing.T) {
	var out bytes.Buffer
	printMarkdown(&out, findings)
	want := `### plimsoll doctor: 1 problem, 1 warning, 4 checks, 1 not made

| level | check | finding | remedy |
| --- | --- | --- | --- |
| problem | load | the load is 20 minutes old | see the logs |
| not checked | leaders | leases is forbidden | grant it |
| warning | nodes | node-2 is not ready | kubectl describe node node-2 |

OK: rights, slack
`
	if out.String() != want {
		t.Errorf("got\n%s, want\n%s", out.String(), want)
	}
}
