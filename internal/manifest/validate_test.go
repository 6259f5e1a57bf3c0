package manifest

import (
	"strings"
	"testing"

	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// TestValidate checks that fields which the API server would refuse are warnings, and fields that short manifests lack are not.
func TestValidate(t *testing.T) {
	const short = "containers: [{name: c, volumeMounts: [{name: v, mountPath: /v}], resources: {requests: {cpu: 1, memory: 1Gi}}}]"
	container := func(fields string) string { return "containers: [{name: c, " + fields + "}]" }
	node := func(status string) string {
		return "apiVersion: v1\nkind: Node\nmetadata: {name: n2}\nspec: {taints: [{key: a, effect: NoSchedule}]}\nstatus: {" + status + "}"
	}
	for _, tc := range []struct{ spec, want string }{
		{short, ""},
		{"ephemeralContainers: [{name: d, image: i}], " + short, ""},
		{node("allocatable: {cpu: 7, memory: 1Gi}, capacity: {cpu: 8, memory: 2Gi}"), ""},
		{"containers: []", "spec.containers: required"},
		{"restartPolicy: Allways, " + short, `spec.restartPolicy: invalid value "Allways": must be one of Always, OnFailure, Never`},
		{container("resources: {requests: {cpu: 2}, limits: {cpu: 1}}"), `resources.requests: invalid value "2": must be at most the cpu limit of 1`},
		{container("resources: {limits: {nvidia.com/gpu: 500m}}"), "limits[nvidia.com/gpu]: invalid value 500m: must be an integer"},
		{container("resources: {requests: {memory: 512}}"), "requests.memory: 512 is in bytes; did you mean 512Mi or 512Gi?"},
		{"tolerations: [{key: a, operator: Exist}], " + short, `operator: invalid value "Exist": must be one of Equal, Exists`},
		{"containers: [{name: c}, {name: c}]", `spec.containers[1].name: found twice: "c"`},
		{node("allocatable: {cpu: 8}, capacity: {cpu: 7}"), "status.allocatable.cpu: invalid value 8: must be at most the capacity, 7"},
		{node("capacity: {cpu: 8, memory: 32}"), "status.allocatable.memory: 32 is in bytes; did you mean 32Mi or 32Gi?"},
		{strings.Replace(node(""), "NoSchedule", "NoSchedul", 1), `n2: spec.taints[0].effect: invalid value "NoSchedul": must be one of`},
		{
			"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\nspec: {template: {spec: {restartPolicy: Allways, " + short + "}}}",
			"Deployment d: spec.template.spec.restartPolicy: invalid value",
		},
	} {
		if !strings.HasPrefix(tc.spec, "api") {
			tc.spec = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {" + tc.spec + "}"
		}
		read, err := Read([]string{"-"}, strings.NewReader("apiVersion: v1\nkind: Node\nmetadata: {name: n1}\n---\n"+tc.spec))
		must.Succeed(t, err)
		if text := strings.Join(read.Warnings, "; "); (text == "") != (tc.want == "") || !strings.Contains(text, tc.want) {
			t.Errorf("%s: %q, want %q", tc.spec, text, tc.want)
		}
	}
}
