package manifest

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// TestWorkloadsWithoutPods checks that workloads without pods are counted, and no others: pods may have their ReplicaSet in the input, or a
// label with its hash; workloads with no replicas and Jobs that have started have none.
func TestWorkloadsWithoutPods(t *testing.T) {
	const nodes = `
{apiVersion: v1, kind: Node, metadata: {name: a}}
---
{apiVersion: v1, kind: Pod, metadata: {name: p1, labels: {pod-template-hash: x1}, ownerReferences: [{kind: ReplicaSet, name: hashed-x1, controller: true}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: p2, ownerReferences: [{kind: ReplicaSet, name: other, controller: true}]}, spec: {nodeName: a}}
---
{apiVersion: v1, kind: Pod, metadata: {name: p3, ownerReferences: [{kind: StatefulSet, name: db, controller: true}]}}
---
{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: other, ownerReferences: [{kind: Deployment, name: owning, controller: true}]}}
---
`
	for text, want := range map[string]string{
		"{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}}":                                      "1 Deployment",
		"{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 0}}":                 "",
		"{apiVersion: apps/v1, kind: Deployment, metadata: {name: hashed}}":                                   "",
		"{apiVersion: apps/v1, kind: Deployment, metadata: {name: owning}}":                                   "",
		"{apiVersion: apps/v1, kind: Deployment, metadata: {name: owning, namespace: b}}":                     "1 Deployment",
		"{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db}}":                                      "",
		"{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: web}}":                                     "1 StatefulSet",
		"{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: web}}":                                       "",
		"{apiVersion: batch/v1, kind: Job, metadata: {name: web}}":                                            "1 Job",
		"{apiVersion: batch/v1, kind: Job, metadata: {name: web}, status: {startTime: 2026-11-21T12:00:00Z}}": "",
	} {
		objects, err := Read([]string{"-"}, strings.NewReader(nodes+text))
		must.Succeed(t, err)
		var missing []string
		if want != "" {
			missing = []string{"No pods are created from the templates of workloads without pods in the input: " + want + "."}
		}
		if diff := cmp.Diff(missing, objects.Missing); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
}

// TestDefaults checks the defaults of an API server in manifests that none has stored. Of two default classes, the newest is used.
func TestDefaults(t *testing.T) {
	const isDefault = `annotations: {storageclass.kubernetes.io/is-default-class: "true"}`
	objects, err := Read([]string{"-"}, strings.NewReader(node+`---
{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: a, `+isDefault+`}, provisioner: x}
---
{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: b, creationTimestamp: 2026-01-01T00:00:00Z, `+isDefault+`}, provisioner: x}
---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: unset}}
---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: none}, spec: {storageClassName: ""}}
---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: bound}, spec: {volumeName: v}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: gpu}
spec: {spec: {devices: {requests: [{name: g, exactly: {deviceClassName: gpu}}]}}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}}
`))
	must.Succeed(t, err)
	r := NewReferences(objects.Others)
	class, _ := find[*storagev1.StorageClass](r, "", "a")
	if mode := class.VolumeBindingMode; mode == nil || *mode != storagev1.VolumeBindingImmediate {
		t.Errorf("binding mode %v", mode)
	}
	for name, want := range map[string]*string{"unset": new("b"), "none": new(""), "bound": nil} {
		claim, _ := find[*v1.PersistentVolumeClaim](r, "default", name)
		if diff := cmp.Diff(want, claim.Spec.StorageClassName); diff != "" {
			t.Errorf("class of claim %s: %s", name, diff)
		}
	}
	template, _ := find[*resourcev1.ResourceClaimTemplate](r, "default", "gpu")
	if request := template.Spec.Spec.Devices.Requests[0].Exactly; request.AllocationMode != resourcev1.DeviceAllocationModeExactCount ||
		request.Count != 1 {
		t.Errorf("request %+v", request)
	}
	if replicas := objects.Workloads[0].(*appsv1.Deployment).Spec.Replicas; replicas == nil || *replicas != 1 {
		t.Errorf("replicas %v", replicas)
	}
}

// TestUnread checks that missing Namespaces and CSINodes are named if a pod needs them, and only then.
func TestUnread(t *testing.T) {
	term := func(selector string) string {
		return `{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [
{topologyKey: zone, namespaceSelector: ` + selector + `}]}}}}`
	}
	volume := func(source string) string {
		return `{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {volumes: [{name: v, persistentVolumeClaim: {claimName: c}}]}}
---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: c}, spec: {volumeName: v}}
---
{apiVersion: v1, kind: PersistentVolume, metadata: {name: v}, spec: {` + source + `}}
`
	}
	const csi = "csi: {driver: d.example, volumeHandle: h}"
	for text, want := range map[string]string{
		term("{matchLabels: {team: a}}"): "1 of 1 pod needs the Namespaces of an affinity to pods that the input lacks: it selects none",
		term("{matchLabels: {team: a}}") + "\n---\n{apiVersion: v1, kind: Namespace, metadata: {name: a}}": "",
		strings.NewReplacer("required", "preferred", "[\n{", "[{weight: 1, podAffinityTerm: {", "}]}}}}", "}}]}}}}").Replace(
			term("{matchLabels: {team: a}}")): "1 of 1 pod needs the Namespaces",
		term("{}"):  "",
		volume(csi): "1 of 1 pod needs the CSINodes of volumes that the input lacks: the limits",
		volume(csi) + "---\n{apiVersion: storage.k8s.io/v1, kind: CSINode, metadata: {name: node-1}}": "",
		volume("hostPath: {path: /v}"): "",
	} {
		objects, err := Read([]string{"-"}, strings.NewReader(node+"---\n"+text))
		must.Succeed(t, err)
		if got := strings.Join(objects.Missing, "\n"); want == "" && got != "" || !strings.HasPrefix(got, want) {
			t.Errorf("%s: missing %q, want %q", text, got, want)
		}
	}
}

// TestDevicesOfOldVersions checks that a version of resource.k8s.io that is not supported costs its objects, not the whole input.
func TestDevicesOfOldVersions(t *testing.T) {
	objects, err := Read([]string{"-"}, strings.NewReader(node+"---\n"+
		"{apiVersion: resource.k8s.io/v1beta1, kind: DeviceClass, metadata: {name: gpu}, spec: {selectors: many}}"))
	must.Succeed(t, err)
	const want = `DeviceClass gpu is ignored: apiVersion: invalid value "resource.k8s.io/v1beta1": must be resource.k8s.io/v1`
	if diff := cmp.Diff([]string{want}, objects.Warnings); diff != "" || len(objects.Others) > 0 {
		t.Errorf("%s, objects %v", diff, objects.Others)
	}
}
