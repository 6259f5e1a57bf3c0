package recommend

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kubernetes/pkg/apis/core/v1/helper/qos"
	"sigs.k8s.io/yaml"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/format"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/engine"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
)

// Manifest is a file to apply.
type Manifest struct {
	Name string
	Text []byte
}

// Manifests returns what to apply: the Helm values of the profile, the ResourceSlack, and a patch of the pod template of each workload.
// Comments state how each is applied. What is kept is left out. It returns an error if the goals are not confirmed.
func (r *Result) Manifests() (out []Manifest, err error) {
	if !r.Confirmed {
		part := map[bool]string{false: "first two thirds", true: "last third"}[r.Reached]
		return nil, fmt.Errorf("found nothing to apply: not confirmed: on the %s %s", part, strings.Join(r.Missed, "; "))
	}
	if !r.profileIsKept {
		out = append(out, profileManifest(r.profile))
	}
	if r.Policy != nil {
		text, err := policyText(r.Policy)
		if err != nil {
			return nil, err
		}
		out = append(out, Manifest{"resourceslack.yaml", text})
	}
	for i := range r.Requests {
		w := &r.Requests[i]
		use := r.useOf(w)
		if use == nil {
			continue
		}
		patches, err := r.constraints.patches(w, use)
		if err != nil {
			return nil, err
		}
		out = append(out, patches...)
	}
	if len(out) == 0 {
		out = append(out, Manifest{"README.yaml", []byte("# Nothing to apply: keep what is in force.\n")})
	}
	return out, nil
}

// profileManifest returns what gives pods a profile: Helm values for a profile that the chart has, else the configuration itself.
func profileManifest(profile engine.NamedConfig) Manifest {
	if slices.Contains(result.ChartProfiles, profile.Name) {
		return Manifest{
			"values.yaml",
			fmt.Appendf(nil, "# Helm values: helm upgrade -n plimsoll-system --reuse-values -f values.yaml plimsoll CHART\n"+
				"scheduler:\n  profiles:\n  - {schedulerName: plimsoll-scheduler, use: %s}\n", profile.Name),
		}
	}
	const file = "scheduler.yaml"
	const command = "# helm upgrade -n plimsoll-system --reuse-values --set-file scheduler.config=%s plimsoll CHART\n%s"
	return Manifest{file, fmt.Appendf(nil, command, file, profile.Text)}
}

// useOf returns the use of the workload of requests, nil if it is not known.
func (r *Result) useOf(w *recording.WorkloadRequests) *workloadUse {
	return r.uses[resources.Workload{Namespace: w.Namespace, Kind: w.Kind, Name: w.Name}]
}

// assumePatches adds what the patches of requests change beside them.
func (r *Result) assumePatches() {
	scaled, classes := 0, 0
	for i := range r.Requests {
		w := &r.Requests[i]
		u := r.useOf(w)
		if patches, err := r.constraints.patches(w, u); err == nil && len(patches) > 1 {
			scaled++
		}
		if qos.GetPodQOS(recording.SetRequests(u.pod, w.CPU, w.Memory)) != qos.GetPodQOS(u.pod) {
			classes++
		}
	}
	if len(r.Requests) > 0 {
		r.assume("the class of service (Guaranteed, Burstable or BestEffort) changes for %s",
			format.Part(classes, len(r.Requests), "workload"))
	}
	if scaled > 0 {
		r.assume("the number of pods is as recorded: the HorizontalPodAutoscalers of %s get amounts in place of utilizations of requests, "+
			"with patches that are applied first", format.Of(scaled, "workload"))
	}
}

// patches returns the patches of the HorizontalPodAutoscalers of a workload, and then the patch of the workload.
func (c *constraints) patches(w *recording.WorkloadRequests, u *workloadUse) (out []Manifest, err error) {
	comment, file := "", u.fileName()+".yaml"
	for _, scaler := range c.scalers[u.templateOwner()] {
		patch, err := scalerPatch(scaler, w, u.pod)
		if err != nil {
			return nil, err
		}
		if patch == nil {
			continue
		}
		name := strings.ToLower(u.Namespace+".HorizontalPodAutoscaler."+scaler.Name) + ".yaml"
		out = append(out, Manifest{name, fmt.Appendf(nil, "# kubectl patch hpa %s -n %s --type merge --patch-file %s\n"+
			"# Apply it before %s. The targets are the same amounts of use as now, so the number of pods does not change;\n"+
			"# then they do not depend on requests.\n%s", scaler.Name, u.Namespace, name, file, patch)})
		comment += fmt.Sprintf("# Apply %s first: with utilizations, other requests would change the number of pods.\n", name)
	}
	for _, updater := range c.updaters[u.templateOwner()] {
		comment += fmt.Sprintf("# VerticalPodAutoscaler %s has the mode %s: it does not change pods that run.\n", updater.Name,
			updater.Spec.UpdatePolicy.UpdateMode)
	}
	text, err := patchText(w, u, comment)
	return append(out, Manifest{file, text}), err
}

// fileName returns the name of the patch file of a workload. Names of recordings are those of Kubernetes, see manifest.CheckNames.
func (u *workloadUse) fileName() string {
	return strings.ToLower(u.Namespace + "." + u.templateKind() + "." + u.Name)
}

// templateKind returns the kind of the object that has the template of the pods. Names that differ from the name of the owner are those of
// its owner.
func (u *workloadUse) templateKind() string {
	owner := metav1.GetControllerOfNoCopy(u.pod)
	switch {
	case owner == nil || owner.Name == u.Name || owner.Kind != u.Kind:
	case u.Kind == "Job":
		return "CronJob"
	case u.pod.Labels[resources.RolloutHash] != "":
		return "Rollout"
	case u.Kind == "ReplicaSet":
		return "Deployment"
	}
	return u.Kind
}

// templateOwner returns the object that has the template of the pods, which autoscalers have as their target.
func (u *workloadUse) templateOwner() resources.Workload {
	return resources.Workload{Namespace: u.Namespace, Kind: u.templateKind(), Name: u.Name}
}

// patchCommand returns the command that patches the pod template of a workload from a file, and the fields on the way to the template. The
// command is empty if there is no object whose template can be changed: of Pods and Jobs it cannot, the owner of a ReplicaSet may not be
// known, and kubectl knows no strategic merge for kinds of others.
func patchCommand(u *workloadUse) (command string, path []string) {
	kind := u.templateKind()
	switch path = []string{"spec", "template", "spec"}; kind {
	case "Deployment", "StatefulSet", "ReplicationController":
	case "CronJob":
		path = append([]string{"spec", "jobTemplate"}, path...)
	case resources.KindPod:
		path = path[2:]
		fallthrough
	default:
		return fmt.Sprintf("%s %s of namespace %s: set these requests in its manifest.", kind, u.Name, u.Namespace), path
	}
	return fmt.Sprintf("kubectl patch %s %s -n %s --patch-file %s.yaml", strings.ToLower(kind), u.Name, u.Namespace, u.fileName()), path
}

// patchText returns the patch of a workload, with its use and more lines as a comment.
func patchText(w *recording.WorkloadRequests, u *workloadUse, comment string) ([]byte, error) {
	pod := recording.SetRequests(u.pod, w.CPU, w.Memory)
	change := func(before, after *v1.ResourceRequirements) map[string]any {
		out := map[string]any{"requests": pick(after.Requests)}
		if !reflect.DeepEqual(before.Limits, after.Limits) {
			out["limits"] = pick(after.Limits)
		}
		return out
	}
	template := u.template
	if template == nil {
		for _, own := range recording.OwnContainers(pod) {
			template = append(template, own.Name)
		}
	}
	var containers []map[string]any
	for i := range pod.Spec.Containers {
		before, after := &u.pod.Spec.Containers[i], &pod.Spec.Containers[i]
		if !slices.Contains(template, after.Name) {
			continue
		}
		containers = append(containers, map[string]any{"name": after.Name, "resources": change(&before.Resources, &after.Resources)})
	}
	patch := map[string]any{"containers": containers}
	if pod.Spec.Resources != nil {
		patch["resources"] = change(u.pod.Spec.Resources, pod.Spec.Resources)
	}
	command, path := patchCommand(u)
	for _, field := range slices.Backward(path) {
		patch = map[string]any{field: patch}
	}
	raw, err := yaml.Marshal(patch)
	if err != nil {
		return nil, err
	}
	if u.template == nil && len(containers) > 1 {
		command += "\n# Remove containers that the template lacks, which is not recorded."
	}
	if u.isBelowP99(w) {
		comment += "# The memory request is below p99 of the use: pods whose use is above it are evicted first when a node runs out.\n"
	}
	before := recording.PodAmounts(u.pod)
	var out bytes.Buffer
	fmt.Fprintf(&out, "# %s\n# %s of %s. CPU: p50 %s, p95 %s, maximum %s, requested %s.\n", command,
		format.Of(u.readings, "reading"), format.Of(u.pods, "pod"), format.Cores(int64(u.cpu.quantile(0.5))),
		format.Cores(int64(u.cpu.quantile(0.95))), format.Cores(int64(u.cpu.quantile(1))), format.Cores(before.CPU))
	fmt.Fprintf(&out, "# Memory: p50 %s, p99 %s, maximum %s, requested %s.\n%s%s", format.Bytes(int64(u.memory.quantile(0.5))),
		format.Bytes(int64(u.memory.quantile(0.99))), format.Bytes(int64(u.memory.quantile(1))), format.Bytes(before.Memory), comment, raw)
	return out.Bytes(), nil
}

// pick returns the CPU and memory of a list.
func pick(list v1.ResourceList) map[string]any {
	out := map[string]any{}
	for _, name := range []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory} {
		if quantity, ok := list[name]; ok {
			out[string(name)] = quantity.String()
		}
	}
	return out
}

// policyText returns a policy without its status and without fields that have their default.
func policyText(policy *v1alpha1.ResourceSlack) ([]byte, error) {
	var defaults v1alpha1.ResourceSlackSpec
	defaults.Default()
	unset, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&defaults)
	if err != nil {
		return nil, err
	}
	spec, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&policy.Spec)
	if err != nil {
		return nil, err
	}
	maps.DeleteFunc(spec, func(field string, value any) bool { return reflect.DeepEqual(value, unset[field]) })
	return yaml.Marshal(map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": v1alpha1.Kind, "spec": spec,
		"metadata": map[string]any{"name": cmp.Or(policy.Name, "default")},
	})
}
