package fleet

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// TestBadCapacities checks that a ClusterCapacity that is of no use excludes its cluster, with a reason, and that a placement which has
// selected the cluster keeps it.
func TestBadCapacities(t *testing.T) {
	const valid = `{"kind":"ClusterCapacity","metadata":{"namespace":"a","name":"plimsoll"},"status":{"cluster":"a","observedAt":"%s",
		"classes":[{}],"groups":[{"class":0,"nodes":1,"free":{"cpu":"4","pods":"9"}}]}}`
	at := func(seconds int64) string {
		return fmt.Sprintf(valid, now.Add(time.Duration(seconds)*time.Second).UTC().Format(time.RFC3339))
	}
	replace := func(old, text string) string { return strings.Replace(at(0), old, text, 1) }
	for _, tt := range []struct{ name, text, want string }{
		{"valid", at(0), ""},
		{"almost old", at(-15 * 60), ""},
		{"old", at(-15*60 - 1), "has a ClusterCapacity that is 15m old: must be at most 15m"},
		{"the clock is ahead", at(2 * 60), ""},
		{"future", at(2*60 + 1), "has a ClusterCapacity that is 2m1s in the future: must be at most 2m"},
		{"no time", replace(`"observedAt"`, `"other"`), "not valid: status.observedAt: required"},
		{"another cluster", replace(`"cluster":"a"`, `"cluster":"b"`), `not valid: status.cluster: found "b": must be the namespace "a"`},
		{"another name", replace(`"plimsoll"`, `"other"`), `not valid: metadata.name: found "other": must be "plimsoll"`},
		{"malformed", replace(`[{}]`, `7`), "not valid: status.classes: json: cannot unmarshal number"},
		{"too large", replace(`"4"`, `"4"`+strings.Repeat(" ", 200_000)), "bytes, at most 100000 are allowed"},
		{"quantity", replace(`"4"`, `"1e-2147483647"`), "not valid: ClusterCapacity plimsoll: status.groups[0].free.cpu: invalid quantity"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			object := &ClusterCapacity{}
			must.Succeed(t, json.Unmarshal([]byte(tt.text), object))
			object.Namespace = "a"
			s := hub("a")
			s.SetCapacity(capacityOf(t, "a", now, 4, nil))
			p := withWorkload(t, "kept", 1, 1, "{}")
			add(s, p)
			decideNow(t, s, "kept")
			s.SetCapacity(object)
			add(s, withWorkload(t, "new", 1, 1, "{}"))
			r := decideNow(t, s, "new")
			if (clustersOf(r) == "a") != (tt.want == "") {
				t.Errorf("selected %q", clustersOf(r))
			}
			message := ""
			for _, c := range r.Conditions {
				if c.Type == clusterv1beta1.PlacementConditionSatisfied && c.Status == metav1.ConditionFalse {
					message = c.Message
				}
			}
			if !strings.Contains(message, tt.want) {
				t.Errorf("got %q, want %q", message, tt.want)
			}
			kept := decideNow(t, s, "kept")
			if got := clustersOf(kept); got != "a" {
				t.Errorf("the decision is not kept: %q", got)
			}
			if got := strings.Join(kept.Warnings, "\n"); (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
				t.Errorf("got warnings %q, want %q", got, tt.want)
			}
		})
	}
}
