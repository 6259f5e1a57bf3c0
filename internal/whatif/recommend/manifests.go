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
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
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
		use := r.uses[(&workloadUse{Workload: resources.Workload{Namespace: w.Namespace, Kind: w.Kind, Name: w.Name}}).text()]
		if use == nil {
			continue
		}
		text, err := patchText(w, use)
		if err != nil {
			return nil, err
		}
		out = append(out, Manifest{use.fileName() + ".yaml", text})
	}
	if len(out) == 0 {
		out = append(out, Manifest{"README.yaml", []byte("# Nothing to apply: keep what is in force.\n")})
	}
	return out, nil
}

// profileManifest returns what gives pods a profile: Helm values for a profile that the chart has, else the configuration itself.
func profileManifest(profile engine.NamedConfig) Manifest {
	switch {
	case slices.Contains(result.ChartProfiles, profile.Name):
		return Manifest{
			"values.yaml",
			fmt.Appendf(nil, "# Helm values: helm upgrade -n plimsoll-system --reuse-values -f values.yaml plimsoll CHART\n"+
				"scheduler:\n  profiles:\n  - {schedulerName: plimsoll-scheduler, use: %s}\n", profile.Name),
		}
	case profile.Name == "default":
		const text = "# Pods need schedulerName: default-scheduler, whose profile is default, and no Helm value.\n"
		return Manifest{"values.yaml", []byte(text)}
	}
	const file = "scheduler.yaml"
	const command = "# helm upgrade -n plimsoll-system --reuse-values --set-file scheduler.config=%s plimsoll CHART\n%s"
	return Manifest{file, fmt.Appendf(nil, command, file, profile.Text)}
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

// patchText returns the patch of a workload, with its use as a comment.
func patchText(w *recording.WorkloadRequests, u *workloadUse) ([]byte, error) {
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
	before := recording.PodAmounts(u.pod)
	var out bytes.Buffer
	fmt.Fprintf(&out, "# %s\n# %s of %s. CPU: p50 %s, p95 %s, maximum %s, requested %s.\n", command,
		format.Of(u.readings, "reading"), format.Of(u.pods, "pod"), format.Cores(int64(u.cpu.quantile(0.5))),
		format.Cores(int64(u.cpu.quantile(0.95))), format.Cores(int64(u.cpu.quantile(1))), format.Cores(before.CPU))
	fmt.Fprintf(&out, "# Memory: p50 %s, p99 %s, maximum %s, requested %s.\n%s", format.Bytes(int64(u.memory.quantile(0.5))),
		format.Bytes(int64(u.memory.quantile(0.99))), format.Bytes(int64(u.memory.quantile(1))), format.Bytes(before.Memory), raw)
	return out.Bytes(), nil
}

// pick returns the CPU and memory of a list, with memory in whole mebibytes.
func pick(list v1.ResourceList) map[string]any {
	out := map[string]any{}
	if cpu, ok := list[v1.ResourceCPU]; ok {
		out["cpu"] = cpu.String()
	}
	if memory, ok := list[v1.ResourceMemory]; ok {
		const mebibyte = 1 << 20
		out["memory"] = resource.NewQuantity((memory.Value()+mebibyte-1)/mebibyte*mebibyte, resource.BinarySI).String()
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
