package integration

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// doctor examines a hub, and placement explain on the hub has the same result as placement
// decide over the same objects in files.
func TestPlimsollOnAHub(t *testing.T) {
	t.Parallel()
	h := startPlacementHub(t)

	findings, stderr, exitCode := runPlimsoll(t, "doctor", "-o", "json", "--kubeconfig", h.Kubeconfig)
	var found []struct{ Check, Level, Message, Fix string }
	if err := json.Unmarshal([]byte(findings), &found); err != nil || exitCode != 1 || !strings.Contains(stderr, "problems: ") {
		t.Errorf("doctor: %v, exit code %d: %s\n%s", err, exitCode, stderr, findings)
	}
	table, _, exitCode := runPlimsoll(t, "doctor", "--kubeconfig", h.Kubeconfig)
	for _, finding := range found {
		if finding.Level != "ok" && !strings.Contains(table, strings.ToUpper(finding.Level)+" "+finding.Check+": ") {
			t.Errorf("exit code %d, no finding of %s in\n%s", exitCode, finding.Check, table)
		}
	}

	for _, namespace := range []string{"shop", "east", "north"} {
		h.create(t, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	}
	h.apply(t, example(t, "prioritizers/fleet.yaml")...)
	h.apply(t, example(t, "prioritizers/placement.yaml")...)
	decided, _ := mustPlimsoll(t, "placement", "decide", "-f", "../../examples/placement/prioritizers")
	explained, _ := mustPlimsoll(t, "placement", "explain", "shop/web", "--kubeconfig", h.Kubeconfig)
	if diff := cmp.Diff(decided, explained); diff != "" || !strings.Contains(decided, "\neast ") {
		t.Errorf("-decided over files +explained on the hub\n%s", diff)
	}
	_, stderr, exitCode = runPlimsoll(t, "placement", "explain", "shop/none", "--kubeconfig", h.Kubeconfig)
	if exitCode != 1 || !strings.Contains(stderr, "placements \"none\" not found in namespace \"shop\"") {
		t.Errorf("exit code %d: %s", exitCode, stderr)
	}
}
