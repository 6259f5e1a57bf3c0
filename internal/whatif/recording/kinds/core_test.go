package kinds

import (
	"encoding/json"
	"testing"

	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// TestFixedNodeIsKept checks that of the managed fields of a pod only one entry remains: that its creator set its node.
func TestFixedNodeIsKept(t *testing.T) {
	const created = `{"manager":"kubectl","fieldsV1":{"f:metadata":{},"f:spec":{"f:nodeName":{},"f:containers":{}}}}`
	const started = `{"manager":"kubelet","fieldsV1":{"f:status":{},"f:spec":{"f:containers":{}}}}`
	for fields, want := range map[string]string{
		"[" + created + "," + started + "]": `{"managedFields":[{"fieldsV1":{"f:spec":{"f:nodeName":{}}}}],"name":"a"}`,
		"[" + started + "]":                 `{"name":"a"}`,
		`"none"`:                            `{"name":"a"}`,
	} {
		var pod any
		must.Succeed(t, json.Unmarshal([]byte(`{"metadata":{"name":"a","managedFields":`+fields+`}}`), &pod))
		kept, _ := podRule.rule(pod, nil)
		got, err := json.Marshal(kept.(map[string]any)["metadata"])
		if must.Succeed(t, err); string(got) != want {
			t.Errorf("%s: %s, want %s", fields, got, want)
		}
	}
}
