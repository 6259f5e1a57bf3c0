package oncluster

import (
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// sweepLabel is the label, with the name of the Job, of all objects of a sweep.
const sweepLabel = "plimsoll.dev/sweep"

// IndexCommand is the command with which the program in the image runs the jobs of one index.
const IndexCommand = "run-index"

// Settings of the Job.
const (
	// keepSeconds is how long a Job that has ended is kept if its owner does not delete it.
	keepSeconds = 3600
	inputPath   = "/input"
	workPath    = "/work"
)

// inputName returns the name of the ConfigMap with a chunk of the input of a sweep.
func inputName(sweep string, chunk int) string { return fmt.Sprintf("%s-input-%d", sweep, chunk) }

// resultName returns the name of the ConfigMap with a part of the results of an index.
func resultName(sweep string, index, part int) string {
	return fmt.Sprintf("%s-result-%d-%d", sweep, index, part)
}

// UserRules returns the rights in the namespace that a user of --on-cluster needs. Patching ConfigMaps is what the pods may do;
// who grants it must have it.
func UserRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{batchv1.GroupName}, Resources: []string{"jobs"}, Verbs: []string{"create", "get", "patch", "delete"}},
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"create", "get", "patch", "delete"}},
		{APIGroups: []string{""}, Resources: []string{"serviceaccounts"}, Verbs: []string{"create", "delete"}},
		{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"roles", "rolebindings"}, Verbs: []string{"create", "delete"}},
		{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list", "deletecollection"}},
	}
}

// podRules returns the rights of the pods: to patch the ConfigMaps of the results, which exist.
func podRules(results []string) []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{
		APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: results, Verbs: []string{"patch"},
	}}
}

// newJob returns the Job of a sweep, suspended until the objects exist that its pods need.
func newJob(name string, o Options, indexes, chunks int) *batchv1.Job {
	labels := map[string]string{sweepLabel: name, "app.kubernetes.io/managed-by": "plimsoll"}
	sources := make([]v1.VolumeProjection, chunks)
	for i := range sources {
		sources[i].ConfigMap = &v1.ConfigMapProjection{
			LocalObjectReference: v1.LocalObjectReference{Name: inputName(name, i)},
			Items:                []v1.KeyToPath{{Key: dataKey, Path: chunkFile(i)}},
		}
	}
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec: batchv1.JobSpec{
			Suspend: new(true), CompletionMode: new(batchv1.IndexedCompletion),
			Completions: new(int32(indexes)), Parallelism: new(int32(min(o.Parallelism, indexes))),
			BackoffLimitPerIndex: new(int32(o.Retries)), TTLSecondsAfterFinished: new(int32(keepSeconds)),
			PodFailurePolicy: &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{{
				Action:          batchv1.PodFailurePolicyActionIgnore,
				OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{{Type: v1.DisruptionTarget, Status: v1.ConditionTrue}},
			}}},
			Template: v1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: v1.PodSpec{
					RestartPolicy: v1.RestartPolicyNever, ServiceAccountName: name, EnableServiceLinks: new(false),
					SecurityContext: &v1.PodSecurityContext{
						RunAsNonRoot: new(true), RunAsUser: new(int64(65532)), RunAsGroup: new(int64(65532)), FSGroup: new(int64(65532)),
						SeccompProfile: &v1.SeccompProfile{Type: v1.SeccompProfileTypeRuntimeDefault},
					},
					Containers: []v1.Container{newContainer(name, o)},
					Volumes: []v1.Volume{
						{Name: "input", VolumeSource: v1.VolumeSource{Projected: &v1.ProjectedVolumeSource{Sources: sources}}},
						{Name: "work", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{}}},
					},
				},
			},
		},
	}
}

// newContainer returns the container that runs an index: one simulation at a time, so one CPU.
func newContainer(name string, o Options) v1.Container {
	return v1.Container{
		Name: "simulation", Image: o.Image,
		Args:         []string{IndexCommand, "--input=" + inputPath, "--work=" + workPath, "--namespace=" + o.Namespace, "--sweep=" + name},
		VolumeMounts: []v1.VolumeMount{{Name: "input", MountPath: inputPath, ReadOnly: true}, {Name: "work", MountPath: workPath}},
		Resources: v1.ResourceRequirements{
			Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse("1"), v1.ResourceMemory: resource.MustParse("1Gi")},
			Limits:   v1.ResourceList{v1.ResourceMemory: resource.MustParse("4Gi")},
		},
		SecurityContext: &v1.SecurityContext{
			AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
			Capabilities: &v1.Capabilities{Drop: []v1.Capability{"ALL"}},
		},
		// Why a pod failed is then in its status, and the owner needs no right to read logs.
		TerminationMessagePolicy: v1.TerminationMessageFallbackToLogsOnError,
	}
}

// ownedBy returns the metadata of an object that is deleted with a Job.
func ownedBy(owner *batchv1.Job, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Labels: owner.Labels, OwnerReferences: []metav1.OwnerReference{{
		APIVersion: batchv1.SchemeGroupVersion.String(), Kind: "Job", Name: owner.Name, UID: owner.UID,
	}}}
}
