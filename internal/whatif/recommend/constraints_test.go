package recommend

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	api "k8s.io/kubernetes/pkg/apis/core"
	corev1 "k8s.io/kubernetes/pkg/apis/core/v1"
	"k8s.io/kubernetes/plugin/pkg/admission/limitranger"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording/kinds"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// objects returns the objects of manifests.
func objects(t must.TB, manifests string) (out []kinds.Object) {
	for text := range strings.SplitSeq(manifests, "---\n") {
		raw, err := yaml.YAMLToJSON([]byte(text))
		must.Succeed(t, err)
		var head struct{ APIVersion, Kind string }
		must.Succeed(t, yaml.Unmarshal(raw, &head))
		group, _, ok := strings.Cut(head.APIVersion, "/")
		if !ok {
			group = ""
		}
		out = append(out, kinds.Object{Kind: kinds.Of(group, head.Kind), JSON: raw})
	}
	return out
}

// resourcesOf returns requests and, unless they are empty, limits of CPU and memory, such as "1 1Gi".
func resourcesOf(requests, limits string) (out v1.ResourceRequirements) {
	list := func(text string) v1.ResourceList {
		cpu, memory, ok := strings.Cut(text, " ")
		if !ok {
			return nil
		}
		return v1.ResourceList{v1.ResourceCPU: resource.MustParse(cpu), v1.ResourceMemory: resource.MustParse(memory)}
	}
	return v1.ResourceRequirements{Requests: list(requests), Limits: list(limits)}
}

const (
	hpa = `{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {namespace: shop, name: scaler%s},
spec: {scaleTargetRef: {kind: StatefulSet, name: %s}, maxReplicas: 9, metrics: [%s]}}
`
	vpa     = `{apiVersion: autoscaling.k8s.io/v1, kind: VerticalPodAutoscaler, metadata: {namespace: shop, name: upd}, spec: {targetRef: {kind: StatefulSet, name: db}%s}}`
	limits  = `{apiVersion: v1, kind: LimitRange, metadata: {namespace: shop, name: l}, spec: {limits: [%s]}}`
	quota   = `{apiVersion: v1, kind: ResourceQuota, metadata: {namespace: shop, name: q}, status: {hard: {%s}, used: {%s}}}`
	percent = `{type: Resource, resource: {name: %s, target: {type: Utilization, averageUtilization: 80}}}`
)

// TestConstraints verifies the requests of StatefulSet shop/db with the rule "maximum, memory maximum + 15 %", and which are kept and why.
// Its pod requests 1 CPU and 1Gi, and uses 100m (104m with the width of a class) and 100Mi (118Mi with 15 %).
func TestConstraints(t *testing.T) {
	cpu, keda := fmt.Sprintf(percent, "cpu"), `, ownerReferences: [{kind: ScaledObject, name: db, controller: true}]`
	const rest = ": StatefulSet shop/db"
	for name, tc := range map[string]struct {
		manifests        string
		requests, limits string
		use              float64 // of CPU, 100 if it is 0
		replicaSet       string  // of a Deployment, the owner in place of a StatefulSet unless it is empty
		want, kept       string
	}{
		"none":                              {want: "104 118"},
		"an HPA with utilization":           {manifests: fmt.Sprintf(hpa, "", "db", cpu), want: "104 118"},
		"a VPA of a Deployment":             {manifests: strings.Replace(fmt.Sprintf(vpa, ""), "StatefulSet", "Deployment", 1), replicaSet: "db-7d4b9", kept: reasonUpdated + ": ReplicaSet shop/db by upd"},
		"an HPA of another workload":        {manifests: fmt.Sprintf(hpa, keda, "web", cpu), want: "104 118"},
		"an HPA with utilization, of KEDA":  {manifests: fmt.Sprintf(hpa, keda, "db", cpu), want: "0 118", kept: fmt.Sprintf(reasonManaged, "cpu") + rest},
		"an HPA with an amount, of KEDA":    {manifests: fmt.Sprintf(hpa, keda, "db", "{type: Resource, resource: {name: cpu, target: {type: AverageValue, averageValue: 1}}}"), want: "104 118"},
		"an HPA from Prometheus":            {manifests: fmt.Sprintf(hpa, "", "db", "{resource: {name: cpu, target: {averageUtilization: 80}}}"), want: "0 118", kept: fmt.Sprintf(reasonUntyped, "cpu") + rest},
		"two HPAs, one of KEDA":             {manifests: fmt.Sprintf(hpa, "", "db", cpu) + "---\n" + fmt.Sprintf(hpa, keda, "db", fmt.Sprintf(percent, "memory")), want: "104 0", kept: fmt.Sprintf(reasonManaged, "memory") + rest},
		"an HPA without a target":           {manifests: fmt.Sprintf(hpa, "", "db", "{type: Resource}"), want: "104 118"},
		"an HPA of a container that is not": {manifests: fmt.Sprintf(hpa, "", "db", "{type: ContainerResource, containerResource: {name: memory, container: x, target: {averageUtilization: 5}}}"), want: "104 0", kept: fmt.Sprintf(reasonNoRequest, "memory") + rest},
		"a VPA":                             {manifests: fmt.Sprintf(vpa, ""), kept: reasonUpdated + rest + " by upd"},
		"a VPA that is off":                 {manifests: fmt.Sprintf(vpa, ", updatePolicy: {updateMode: \"Off\"}"), want: "104 118"},
		"a VPA of an old version":           {manifests: strings.Replace(fmt.Sprintf(vpa, ""), "/v1,", "/v1beta2,", 1), kept: reasonUpdated + rest + " by upd"},
		"a VPA with a selector":             {manifests: `{apiVersion: autoscaling.k8s.io/v1beta1, kind: VerticalPodAutoscaler, metadata: {namespace: shop, name: old}, spec: {selector: {}}}`, want: "104 118"},
		// Requests are at least 200m and the limit of 1Gi / 4 = 256 MiB.
		"a minimum and a ratio": {manifests: fmt.Sprintf(limits, "{type: Container, min: {cpu: 200m}, maxLimitRequestRatio: {memory: 4}}"), limits: "2 1Gi", want: "200 256", kept: reasonBounds + rest},
		"a maximum of pods":     {manifests: fmt.Sprintf(limits, "{type: Pod, max: {cpu: 50m}}"), want: "50 118", kept: reasonBounds + rest},
		"a contradiction":       {manifests: fmt.Sprintf(limits, "{type: Pod, max: {cpu: 50m}}, {type: Container, min: {cpu: 60m}}"), want: "0 118", kept: fmt.Sprintf(reasonConflict, "cpu") + rest},
		// 2080m where 1 was requested: the quota leaves 500m.
		"a quota":                   {manifests: fmt.Sprintf(quota, "requests.cpu: 3", "requests.cpu: 2500m"), use: 2000, want: "1500 118", kept: reasonBounds + rest},
		"a quota with scopes":       {manifests: strings.Replace(fmt.Sprintf(quota, "requests.cpu: 3", "requests.cpu: 2500m"), "status:", "spec: {scopes: [BestEffort]}, status:", 1), use: 2000, want: "1500 118", kept: reasonBounds + rest},
		"a quota of limits":         {manifests: fmt.Sprintf(quota, "limits.cpu: 3", "limits.cpu: 2500m"), limits: "1200m 2Gi", use: 2000, want: "1200 118", kept: reasonBounds + rest},
		"a quota that has enough":   {manifests: fmt.Sprintf(quota, "cpu: 9", "cpu: 1"), use: 2000, want: "2000 118"},
		"a change of less than 5 %": {requests: "103m 115Mi", want: ""},
		// The maximum and 15 %.
		"Guaranteed":                 {requests: "500m 1Gi", limits: "500m 1Gi", want: "119 118"},
		"Guaranteed, near its limit": {requests: "110m 1Gi", limits: "110m 1Gi", want: "0 118", kept: fmt.Sprintf(reasonNearLimit, "cpu") + rest},
		"Guaranteed with whole CPUs": {requests: "2 1Gi", limits: "2 1Gi", kept: reasonExclusive + rest},
	} {
		r := recordingOf(slices.Repeat([]float64{max(tc.use, 100)}, 1441), slices.Repeat([]float64{100}, 1441))
		if tc.requests == "" {
			tc.requests = "1 1Gi"
		}
		r.Pods[0].Object.Spec.Containers = []v1.Container{{Name: "main", Resources: resourcesOf(tc.requests, tc.limits)}}
		if tc.replicaSet != "" {
			r.Pods[0].Object.OwnerReferences[0].Kind, r.Pods[0].Object.OwnerReferences[0].Name = "ReplicaSet", tc.replicaSet
			r.Pods[0].Object.Labels = map[string]string{"pod-template-hash": "7d4b9"}
		}
		if tc.manifests != "" {
			r.Objects = objects(t, tc.manifests)
		}
		c, err := newConstraints(r)
		must.Succeed(t, err)
		rules := newRules()[len(newRules())-1:]
		kept := append(fillRules(rules, usesOf(r, 0, 1441*60), c, resources.Amounts{}), rules[0].kept...)
		got, why := "", ""
		for _, w := range rules[0].table {
			got = fmt.Sprint(w.CPU, " ", resources.DivUp(w.Memory, 1<<20))
		}
		for _, k := range kept {
			why += k.Reason + ": " + strings.Join(k.Workloads, ", ")
		}
		var wantCPU, gotCPU, wantMemory, gotMemory float64 // a class of the histogram is 4.5 % wide
		_, _ = fmt.Sscan(tc.want, &wantCPU, &wantMemory)
		_, _ = fmt.Sscan(got, &gotCPU, &gotMemory)
		if gotCPU < wantCPU || gotCPU > 1.05*wantCPU || gotMemory < wantMemory || gotMemory > 1.05*wantMemory || why != tc.kept {
			t.Errorf("%s: %q, kept %q, want %q, %q", name, got, why, tc.want, tc.kept)
		}
	}
}

// TestInvalidConstraints verifies that a recording with an object that no API server has is refused.
func TestInvalidConstraints(t *testing.T) {
	for manifest, want := range map[string]string{
		fmt.Sprintf(hpa, "\\nrm", "db", ""):        `horizontalpodautoscalers.autoscaling: metadata.name: invalid value "scaler\nrm"`,
		fmt.Sprintf(quota, "cpu: 1e999999999", ""): "resourcequotas: ",
		fmt.Sprintf(limits, "5"):                   "limitranges: ",
	} {
		_, err := newConstraints(&recording.Recording{Objects: objects(t, strings.Replace(manifest, `scaler\nrm`, `"scaler\nrm"`, 1))})
		if err == nil || !strings.HasPrefix(err.Error(), "--recording: "+want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// TestLimitRangesAdmit verifies with the admission plugin of the API server that pods which LimitRanges admit are admitted with any requests
// that are recommended, as they are in the patch.
func TestLimitRangesAdmit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		amount := func(name string) (resource.Quantity, resource.Quantity) {
			cpu := rapid.Int64Range(1, 4000).Draw(t, name+" CPU")
			memory := rapid.Int64Range(1, 4<<30).Draw(t, name+" memory")
			return *resource.NewMilliQuantity(cpu, resource.DecimalSI), *resource.NewQuantity(memory, resource.BinarySI)
		}
		list := func(name string) v1.ResourceList {
			if rapid.Bool().Draw(t, "without "+name) {
				return nil
			}
			cpu, memory := amount(name)
			return v1.ResourceList{v1.ResourceCPU: cpu, v1.ResourceMemory: memory}
		}
		r := recordingOf(
			[]float64{float64(rapid.IntRange(1, 5000).Draw(t, "use"))},
			[]float64{float64(rapid.IntRange(1, 5000).Draw(t, "MiB"))},
		)
		pod := r.Pods[0].Object
		for i := range rapid.IntRange(1, 3).Draw(t, "containers") {
			c := v1.Container{Name: rapid.SampledFrom([]string{"istio-proxy", fmt.Sprint(i)}).Draw(t, "name")}
			cpu, memory := amount("request")
			c.Resources.Requests = v1.ResourceList{v1.ResourceCPU: cpu, v1.ResourceMemory: memory}
			if rapid.Bool().Draw(t, "limited") {
				c.Resources.Limits = v1.ResourceList{}
				for name, quantity := range c.Resources.Requests {
					quantity.Mul(rapid.Int64Range(1, 3).Draw(t, "limit"))
					c.Resources.Limits[name] = quantity
				}
			}
			pod.Spec.Containers = append(pod.Spec.Containers, c)
		}
		kind := rapid.SampledFrom([]v1.LimitType{v1.LimitTypePod, v1.LimitTypeContainer}).Draw(t, "type")
		item := v1.LimitRangeItem{Type: kind, Min: list("min"), Max: list("max")}
		if rapid.Bool().Draw(t, "ratio") {
			item.MaxLimitRequestRatio = v1.ResourceList{v1.ResourceCPU: resource.MustParse("2"), v1.ResourceMemory: resource.MustParse("3")}
		}
		limit := &v1.LimitRange{Spec: v1.LimitRangeSpec{Limits: []v1.LimitRangeItem{item}}}
		admitted := func(pod *v1.Pod) error {
			var internal api.Pod
			must.Succeed(t, corev1.Convert_v1_Pod_To_core_Pod(pod, &internal, nil))
			return limitranger.PodValidateLimitFunc(limit, &internal)
		}
		if admitted(pod) != nil {
			t.Skip("admission refuses the pod as it is") // the draw: another is made
		}
		c := &constraints{limits: map[string][]v1.LimitRangeItem{"shop": {item}}}
		u := usesOf(r, 0, 60)[0]
		u.seconds, u.readings = minUse, minReadings
		rules := newRules()
		fillRules(rules, []*workloadUse{u}, c, resources.Amounts{})
		for _, rule := range rules {
			for _, w := range rule.table {
				if err := admitted(recording.SetRequests(pod, w.CPU, w.Memory)); err != nil {
					t.Errorf("%s, %+v: %v", rule.Name, w, err)
				}
			}
		}
	})
}

// TestScalerPatches verifies that an HPA with utilizations gets the amounts that they are of the requests before the change, and that both
// patches say which is first.
func TestScalerPatches(t *testing.T) {
	const container = "{type: ContainerResource, containerResource: {name: cpu, container: log, target: {type: Utilization, averageUtilization: 50}}}"
	const pods = "{type: Pods, pods: {metric: {name: requests}, target: {type: AverageValue, averageValue: 7}}}"
	r := recordingOf([]float64{100}, []float64{50})
	r.Pods[0].Object.Spec.Containers = []v1.Container{
		{Name: "main", Resources: resourcesOf("1 1Gi", "")}, {Name: "log", Resources: resourcesOf("250m 1Gi", "")},
	}
	metrics := strings.Join([]string{fmt.Sprintf(percent, "cpu"), fmt.Sprintf(percent, "memory"), container, pods}, ", ")
	r.Objects = objects(t, fmt.Sprintf(hpa, "", "db", metrics)+"---\n"+fmt.Sprintf(vpa, ", updatePolicy: {updateMode: Initial}"))
	c, err := newConstraints(r)
	must.Succeed(t, err)
	// 80 % of 1250m, and 50 % of 250m; memory keeps its request, and so does its metric.
	patches, err := c.patches(
		&recording.WorkloadRequests{Namespace: "shop", Kind: "StatefulSet", Name: "db", CPU: 200},
		usesOf(r, 0, 60)[0],
	)
	must.Succeed(t, err)
	const want = `{"spec":{"metrics":[{"resource":{"name":"cpu","target":{"averageValue":"1","type":"AverageValue"}},"type":"Resource"},` +
		`{"resource":{"name":"memory","target":{"averageUtilization":80,"type":"Utilization"}},"type":"Resource"},` +
		`{"containerResource":{"container":"log","name":"cpu","target":{"averageValue":"125m","type":"AverageValue"}},"type":"ContainerResource"},` +
		`{"pods":{"metric":{"name":"requests"},"target":{"averageValue":"7","type":"AverageValue"}},"type":"Pods"}]}}`
	got, err := yaml.YAMLToJSON(patches[0].Text)
	if err != nil || string(got) != want {
		t.Errorf("%s, %v, want %s", got, err, want)
	}
	for i, text := range []string{
		"# kubectl patch hpa scaler -n shop --type merge --patch-file shop.horizontalpodautoscaler.scaler.yaml\n# Apply it before shop.statefulset.db.yaml.",
		"\n# Apply shop.horizontalpodautoscaler.scaler.yaml first: with utilizations, other requests would change the number of pods.\n" +
			"# VerticalPodAutoscaler upd has the mode Initial: it does not change pods that run.\n",
	} {
		if !strings.Contains(string(patches[i].Text), text) || len(patches) != 2 {
			t.Errorf("%s, want %s", patches[i].Text, text)
		}
	}
}

// TestClassOfService verifies that the answer has the number of workloads whose class of service changes, as that of pods without requests.
func TestClassOfService(t *testing.T) {
	for requests, want := range map[string]string{"": "1 of 1 workload", "1 1Gi": "0 of 1 workload"} {
		r := recordingOf([]float64{100}, []float64{50})
		r.Pods[0].Object.Spec.Containers = []v1.Container{{Name: "main", Resources: resourcesOf(requests, "")}}
		u := usesOf(r, 0, 60)[0]
		out := Result{uses: map[resources.Workload]*workloadUse{u.Workload: u}, constraints: &constraints{}}
		out.Requests = []recording.WorkloadRequests{{Namespace: u.Namespace, Kind: u.Kind, Name: u.Name, CPU: 200}}
		if out.assumePatches(); !strings.HasSuffix(out.Assumed[0], " changes for "+want) {
			t.Errorf("%q: %q, want %s", requests, out.Assumed, want)
		}
	}
}
