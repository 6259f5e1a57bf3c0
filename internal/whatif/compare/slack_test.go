package compare

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/generate"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/scaling"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// TestSlackOfAllNodes checks the warning that slack on any node may not help pods with a node selector.
func TestSlackOfAllNodes(t *testing.T) {
	spec, err := scaling.Parse([]string{"shape=4x16"})
	must.Succeed(t, err)
	for _, tc := range []struct {
		pods, pool string
		warned     bool
	}{{"{}", "", false}, {"{pool: web}", "", true}, {"{pool: web}", "web", false}} {
		file := filepath.Join(t.TempDir(), "cluster.yaml")
		text := fmt.Sprintf(`apiVersion: v1
kind: Node
metadata: {name: n1, labels: {pool: web}}
status: {allocatable: {cpu: "4", memory: 8Gi, pods: "10"}}
---
apiVersion: v1
kind: Pod
metadata: {name: web}
spec: {nodeSelector: %s, containers: [{name: c, resources: {requests: {cpu: "1"}}}]}
`, tc.pods)
		must.Succeed(t, os.WriteFile(file, []byte(text), 0o600))
		policy := &v1alpha1.ResourceSlack{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: v1alpha1.ResourceSlackSpec{MinRate: "10%"}}
		if tc.pool != "" {
			policy.Spec.Pool.NodeSelector = map[string]string{"pool": tc.pool}
		}
		var warnings []string
		_, err := NewPlan(t.Context(), Options{
			Profiles: []string{"default"}, Autoscaler: &spec, Slack: []Slack{{Text: "0%"}, {Text: "10%", Policy: policy}},
			Source: generate.Source{Source: recording.Source{Files: []string{file}}}, Seed: 1, Seeds: 1,
			Warn: func(warning string) { warnings = append(warnings, warning) },
		})
		if got := strings.Contains(strings.Join(warnings, " "), "--slack 10%: the slack may be on nodes"); err != nil || got != tc.warned {
			t.Errorf("%+v: warnings %q, error %v", tc, warnings, err)
		}
	}
}
