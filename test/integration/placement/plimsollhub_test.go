package placement

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-k8s/plimsoll/test/support/testcluster"
)

// doctor examines a hub, and placement explain on the hub has the same result as placement
// decide over the same objects in files.
func TestPlimsollOnAHub(t *testing.T) {
	h := testcluster.StartPlacementHub(t)

	findings, stderr, exitCode := testcluster.RunPlimsoll(t, "doctor", "-o", "json", "--kubeconfig", h.Kubeconfig)
	var found []struct{ Check, Level, Message, Fix string }
	if err := json.Unmarshal([]byte(findings), &found); err != nil || exitCode != 1 || !strings.Contains(stderr, "problems: ") {
		t.Errorf("doctor: %v, exit code %d: %s\n%s", err, exitCode, stderr, findings)
	}
	table, _, exitCode := testcluster.RunPlimsoll(t, "doctor", "--kubeconfig", h.Kubeconfig)
	for _, finding := range found {
		if finding.Level != "ok" && !strings.Contains(table, strings.ToUpper(finding.Level)+" "+finding.Check+": ") {
			t.Errorf("exit code %d, no finding of %s in\n%s", exitCode, finding.Check, table)
		}
	}

	for _, namespace := range []string{"shop", "east", "north"} {
		h.Create(t, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	}
	h.Apply(t, testcluster.Example(t, "prioritizers/fleet.yaml")...)
	h.Apply(t, testcluster.Example(t, "prioritizers/placement.yaml")...)
	decided, _ := testcluster.MustPlimsoll(t, "placement", "decide", "-f", "../../../examples/placement/prioritizers")
	explained, _ := testcluster.MustPlimsoll(t, "placement", "explain", "shop/web", "--kubeconfig", h.Kubeconfig)
	if diff := cmp.Diff(decided, explained); diff != "" || !strings.Contains(decided, "\neast ") {
		t.Errorf("-decided over files +explained on the hub\n%s", diff)
	}
	_, stderr, exitCode = testcluster.RunPlimsoll(t, "placement", "explain", "shop/none", "--kubeconfig", h.Kubeconfig)
	if exitCode != 1 || !strings.Contains(stderr, "placements \"none\" not found in namespace \"shop\"") {
		t.Errorf("exit code %d: %s", exitCode, stderr)
	}
}
