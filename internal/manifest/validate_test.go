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
	affinity := func(requirement string) string {
		const required = "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: "
		return required + requirement + "}]}]}}}, " + short
	}
	deployment := func(labels string) string {
		return "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\nspec: {selector: {matchLabels: {app: web}}, template: {metadata: {labels: " +
			labels + "}, spec: {" + short + "}}}"
	}
	budget := func(spec string) string {
		return "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: b}\nspec: {selector: {}, " + spec + "}"
	}
	class := func(mode string) string {
		return "apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: s}\nprovisioner: a.example.com\nvolumeBindingMode: " + mode
	}
	node := func(status string) string {
		return "apiVersion: v1\nkind: Node\nmetadata: {name: n2}\nspec: {taints: [{key: a, effect: NoSchedule}]}\nstatus: {" + status + "}"
	}
	for _, tc := range []struct{ spec, want string }{
		{short, ""},
		{"ephemeralContainers: [{name: d, image: i}], " + short, ""},
		{node("allocatable: {cpu: 7, memory: 1Gi, pods: 9}, capacity: {cpu: 8, memory: 2Gi, pods: 9}"), ""},
		{"containers: []", "spec.containers: Required value"},
		{"restartPolicy: Allways, " + short, `spec.restartPolicy: Unsupported value: "Allways": supported values: "Always", "OnFailure", "Never"`},
		{container("resources: {requests: {cpu: 2}, limits: {cpu: 1}}"), `resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1`},
		{container("resources: {requests: {memory: 512m}}"), `resources.requests[memory]: fractional byte value "512m" is invalid, must be an integer`},
		{container("resources: {limits: {nvidia.com/gpu: 500m}}"), `limits[nvidia.com/gpu]: Invalid value: "500m": must be an integer`},
		{"tolerations: [{key: a, operator: Exist}], " + short, `operator: Unsupported value: "Exist": supported values: "Equal", "Exists"`},
		{affinity("memory, operator: Gt, values: ['64']"), ""},
		{affinity("memory, operator: Gt, values: [64Gi]"), `matchExpressions[0].values[0]: Invalid value: "64Gi": for 'Gt', 'Lt' operators, the value must be an integer`},
		{affinity("a, operator: In, values: [x y]"), `Invalid value: "x y": a valid label must be`},
		{affinity("memory, operator: In"), "matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'"},
		{"containers: [{name: c}, {name: c}]", `spec.containers[1].name: Duplicate value: "c"`},
		{node("allocatable: {cpu: 8}, capacity: {cpu: 7}"), "status.allocatable.cpu: invalid value 8: must be at most the capacity, 7"},
		{node("allocatable: {cpu: 8, memory: 32, pods: 9}"), "Node n2: status.allocatable.memory: found 32: must be at least 1Mi"},
		{node("capacity: {cpu: 8, memory: 32Gi}"), `status.allocatable.pods: required: no pod fits a node without it, such as "110"`},
		{strings.Replace(node(""), "NoSchedule", "NoSchedul", 1), `n2: metadata.taints[0].effect: Unsupported value: "NoSchedul": supported values`},
		{node(""), "Node n2: status.allocatable: required: no pod fits a node without it"},
		{strings.Replace(node("allocatable: {cpu: 8}"), ", effect: NoSchedule", "", 1), "Node n2: spec.taints[0].effect: required: must be NoSchedule"},
		{
			"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\nspec: {template: {spec: {restartPolicy: Allways, " + short + "}}}",
			"Deployment d: spec.template.spec.restartPolicy: Unsupported value",
		},
		{budget("minAvailable: 1"), ""},
		{budget("minAvailable: 50 percent"), `PodDisruptionBudget b: spec.minAvailable: Invalid value: "50 percent": a valid percent string`},
		{budget("minAvailable: 1, maxUnavailable: 1"), "minAvailable and maxUnavailable cannot be both set"},
		{budget("unhealthyPodEvictionPolicy: Always"), `Unsupported value: "Always": supported values: "AlwaysAllow", "IfHealthyBudget"`},
		{class("WaitForFirstConsumer"), ""},
		{class("WaitForConsumer"), `StorageClass s: volumeBindingMode: Unsupported value: "WaitForConsumer": supported values: "Immediate", "Wait`},
		{deployment("{app: web, tier: front}"), ""},
		{deployment("{app: api}"), "Deployment d: spec.template.metadata.labels: must have the labels of the selector, app=web"},
	} {
		if !strings.HasPrefix(tc.spec, "api") {
			tc.spec = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {" + tc.spec + "}"
		}
		read, err := Read(
			[]string{"-"},
			strings.NewReader("apiVersion: v1\nkind: Node\nmetadata: {name: n1}\nstatus: {allocatable: {pods: 5}}\n---\n"+tc.spec),
		)
		must.Succeed(t, err)
		if text := strings.Join(
			read.Warnings,
			"; ",
		); (text == "") != (tc.want == "") ||
			tc.want != "" && strings.Count(text, tc.want) != 1 {
			t.Errorf("%s: %q, want %q", tc.spec, text, tc.want)
		}
	}
}

// TestValidateHub checks that fields of hub objects which the API server would refuse are warnings, and that valid objects have none.
func TestValidateHub(t *testing.T) {
	const score = "v1alpha1 AddOnPlacementScore {name: a} status: {scores: [{name: b, value: "
	const cluster, capacity = "v1 ManagedCluster {name: c} spec: ", "v1alpha1 ClusterCapacity {name: plimsoll, namespace: c} status: "
	const spread = "v1beta1 Placement {name: p} spec: {spreadPolicy: {spreadConstraints: [{topologyKey: zone, topologyKeyType: Label, "
	const status = `cluster: c, observedAt: "2026-11-21T12:00:00Z", classes: [{}], groups: [{class: 0, nodes: 1, free: {cpu: 1}}]`
	for _, tc := range []struct{ object, want string }{
		{cluster + "{taints: [{key: a, effect: NoSelect}]}\nstatus: {conditions: [{type: a, status: 'True'}], capacity: {cpu: 1, memory: 1e+9}}", ""},
		{"v1beta2 ManagedClusterSet {name: s} spec: {clusterSelector: {labelSelector: {}}}", ""},
		{"v1beta1 PlacementDecision {name: d, labels: {cluster.open-cluster-management.io/placement: p}} status: {decisions: [{clusterName: c}]}", ""},
		{"v1beta1 PlacementDecision {name: d} status: {decisions: [{clusterName: c}]}", "metadata.labels[cluster.open-cluster-management.io/placement]: required"},
		{capacity + "{" + status + "}", ""},
		{spread + "maxSkew: 1}]}}", ""},
		{spread + "whenUnsatisfiable: DoNotSchedule}]}, decisionStrategy: {groupStrategy: {clustersPerDecisionGroup: 5}}}", ""},
		{"v1beta1 Placement {name: p} spec: {numberOfClusters: -1}", ""}, // its condition
		{spread + "maxSkew: 0}]}}", "spec.spreadPolicy.spreadConstraints[0].maxSkew: Invalid value: 0: "},
		{cluster + "{taints: [{key: a, effect: NoSchedule}]}", `spec.taints[0].effect: Unsupported value: "NoSchedule": supported values: "NoSelect"`},
		{cluster + "{taints: [{key: a b, effect: NoSelect}]}", `spec.taints[0].key: Invalid value: "a b": spec.taints[0].key in body should match`},
		{"v1 ManagedCluster {name: C_1} spec: {}", `metadata.name: Invalid value: "C_1": a lowercase`},
		{"v1 ManagedCluster {name: c, labels: {a: b c}} spec: {}", `metadata.labels: Invalid value: "b c": a valid label`},
		{"v1beta2 ManagedClusterSet {name: s} spec: {clusterSelector: {selectorType: Label}}", `selectorType: Unsupported value: "Label": supported values`},
		{"v1beta2 ManagedClusterSetBinding {name: s} spec: {clusterSet: t}", `Invalid value: "t": must be the name of the binding, s`},
		{score + "140}]}", "scores[0].value: Invalid value: 140"},
		{score + "1}, {name: b, value: 2}]}", "status.scores[1]: Duplicate value"},
		{capacity + "{free: {}, " + status + "}", `unknown field "status.free"`},
		{capacity + "{" + strings.Replace(status, "2026", "today", 1) + "}", `status.observedAt: parsing time`},
		{"v1beta2 ManagedClusterSetBindings {name: s} spec: {}", "ignored: 1 ManagedClusterSetBindings"},
		{"v1 MangedCluster {name: s} spec: {}", "ignored: 1 MangedCluster"},
	} {
		parts := strings.SplitN(tc.object, " ", 3)
		group := map[bool]string{true: "plimsoll.dev/", false: clusterGroup}[parts[1] == "ClusterCapacity"]
		text := "apiVersion: " + group + parts[0] + "\nkind: " + parts[1] + "\nmetadata: " + strings.Replace(parts[2], "} ", "}\n", 1)
		hub, err := ReadHubFrom(Files([]string{"-"}, strings.NewReader(text)), false)
		must.Succeed(t, err)
		if got := strings.Join(hub.Warnings, "; "); (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
			t.Errorf("%s: %q, want %q", tc.object, got, tc.want)
		}
	}
}
