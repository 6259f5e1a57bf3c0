package replay

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/plimsoll-k8s/plimsoll/internal/manifest"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording/kinds"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// devices has two nodes with two GPUs each, of one driver; the second node has a faster model. One GPU of the first node
// belongs to a pod that runs there.
const devices = `
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu}
spec:
  selectors: [{cel: {expression: device.driver == "gpu.example.com"}}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: gpu}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu, allocationMode: ExactCount, count: 1}}]}}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: fast}
spec:
  spec:
    devices:
      requests:
      - name: gpu
        exactly:
          deviceClassName: gpu
          allocationMode: ExactCount
          count: 1
          selectors: [{cel: {expression: 'device.attributes["gpu.example.com"].model == "fast"'}}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata:
  name: old-gpu
  ownerReferences: [{apiVersion: v1, kind: Pod, name: old, uid: old, controller: true}]
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu, allocationMode: ExactCount, count: 1}}]}}
status:
  allocation: {devices: {results: [{request: gpu, driver: gpu.example.com, pool: a, device: gpu-0}]}}
  reservedFor: [{resource: pods, name: old, uid: old}]
---
apiVersion: v1
kind: Pod
metadata: {name: old, uid: old}
spec:
  nodeName: a
  containers: [{name: main, resources: {claims: [{name: gpu}]}}]
  resourceClaims: [{name: gpu, resourceClaimTemplateName: gpu}]
status:
  resourceClaimStatuses: [{name: gpu, resourceClaimName: old-gpu}]
`

// deviceNode is a node with two GPUs of a model.
const deviceNode = `
---
apiVersion: v1
kind: Node
metadata: {name: %[1]s, labels: {kubernetes.io/hostname: %[1]s}}
status: {allocatable: {cpu: "16", memory: 64Gi, pods: "110"}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: %[1]s-gpus}
spec:
  driver: gpu.example.com
  nodeName: %[1]s
  pool: {name: %[1]s, generation: 1, resourceSliceCount: 1}
  devices:
  - {name: gpu-0, attributes: {model: {string: %[2]s}}}
  - {name: gpu-1, attributes: {model: {string: %[2]s}}}
`

// devicePod is a pod that claims a GPU by a template.
const devicePod = `
---
apiVersion: v1
kind: Pod
metadata: {name: %[1]s, uid: %[1]s}
spec:
  containers: [{name: main, resources: {claims: [{name: gpu}]}}]
  resourceClaims: [{name: gpu, resourceClaimTemplateName: %[2]s}]
`

// deviceObjects returns the objects of two nodes and of pods, given with their templates.
func deviceObjects(t *testing.T, pods ...string) *manifest.Objects {
	t.Helper()
	text := devices + fmt.Sprintf(deviceNode, "a", "slow") + fmt.Sprintf(deviceNode, "b", "fast")
	for i, template := range pods {
		text += fmt.Sprintf(devicePod, fmt.Sprintf("pod-%d", i), template)
	}
	objects, err := manifest.Read([]string{"-"}, strings.NewReader(text))
	must.Succeed(t, err)
	return objects
}

// TestDevices schedules pods with resource claims: of the four GPUs, the running pod has one, so that three are free. The
// first two pods need a fast GPU, which only b has; the third pod fits on a; no GPU is left for the last pod.
func TestDevices(t *testing.T) {
	o := options(t, "default", "constant:mean=1", 1)
	got := map[string]string{}
	o.Placed = func(pod, node string) { got[pod] = node }
	run := outcomeOf(t, recording.Source{}.FromManifests(deviceObjects(t, "fast", "fast", "gpu", "gpu")), o)
	if want := map[string]string{"pod-0": "b", "pod-1": "b", "pod-2": "a"}; !cmp.Equal(got, want) {
		t.Errorf("placed %v, want %v", got, want)
	}
	if want := map[string]int{"cannot allocate all claims": 1}; !cmp.Equal(run.Reasons, want) {
		t.Errorf("reasons %v, want %v", run.Reasons, want)
	}
}

// TestTaintedDevices verifies that devices that a DeviceTaintRule taints are not allocated: of three free GPUs, the one of node a is left.
func TestTaintedDevices(t *testing.T) {
	const rule = "---\napiVersion: resource.k8s.io/v1\nkind: DeviceTaintRule\nmetadata: {name: broken}\n" +
		"spec: {deviceSelector: {driver: gpu.example.com, pool: b}, taint: {key: broken, effect: NoSchedule}}\n"
	text := devices + fmt.Sprintf(deviceNode, "a", "slow") + fmt.Sprintf(deviceNode, "b", "fast") + rule
	for i := range 2 {
		text += fmt.Sprintf(devicePod, fmt.Sprintf("pod-%d", i), "gpu")
	}
	objects, err := manifest.Read([]string{"-"}, strings.NewReader(text))
	must.Succeed(t, err)
	o, got := options(t, "default", "constant:mean=1", 1), map[string]string{}
	o.Placed = func(pod, node string) { got[pod] = node }
	outcomeOf(t, recording.Source{}.FromManifests(objects), o)
	if want := map[string]string{"pod-0": "a"}; !cmp.Equal(got, want) || len(objects.Warnings) > 0 {
		t.Errorf("placed %v, want %v; warnings %v", got, want, objects.Warnings)
	}
}

// TestDevicesAreReleased verifies that a device is free again when its pod ends, and that a pod that is scheduled again gives
// its device back.
func TestDevicesAreReleased(t *testing.T) {
	in := recording.Source{}.FromManifests(deviceObjects(t, "fast", "fast", "fast"))
	for i := range in.Pods {
		if in.Pods[i].Object.Name == "pod-0" {
			in.Pods[i].Duration = 120
		}
	}
	run := outcomeOf(t, in, options(t, "default", "constant:mean=1", 1))
	if run.Scheduled != 3 || run.PendingSeconds.Max != 120 {
		t.Errorf("%d scheduled, pending %+v, want 3 and 120 s", run.Scheduled, run.PendingSeconds)
	}
	// All five pods arrive again; the claim of the pod that had a node is not allocated.
	in = recording.Source{Reschedule: true}.FromManifests(deviceObjects(t, "gpu", "gpu", "gpu", "gpu"))
	run = outcomeOf(t, in, options(t, "default", "constant:mean=1", 1))
	if run.Scheduled != 4 || run.Unschedulable != 1 {
		t.Errorf("%d scheduled, %d not, want 4 and 1", run.Scheduled, run.Unschedulable)
	}
}

// TestRecordedDevices replays a recording of these pods, in which pods have no status: they are placed as recorded, and the
// last pod gets the GPU of the initial pod, which ends at 120 s.
func TestRecordedDevices(t *testing.T) {
	objects := deviceObjects(t, "fast", "fast", "gpu", "gpu")
	r := &recording.Recording{About: recording.About{From: recording.Time(0), To: recording.Time(600), Step: 60}}
	for _, object := range objects.Others {
		if claim, ok := object.(*resourcev1.ResourceClaim); ok && claim.Name != "old-gpu" {
			continue // generated
		}
		r.Objects = append(r.Objects, encode(t, object))
	}
	for _, node := range objects.Nodes {
		r.Nodes = append(r.Nodes, recording.Node{Object: node, Appeared: -1, Gone: never})
	}
	times := map[string]recording.Pod{
		"old":   {Created: -10, Scheduled: -5, Ended: 120, Node: "a"},
		"pod-0": {Ended: never, Node: "b"}, "pod-1": {Ended: never, Node: "b"}, "pod-2": {Ended: never, Node: "a"},
		"pod-3": {Scheduled: 130, Ended: never, Node: "a"},
	}
	for _, pod := range slices.Concat(objects.Running, objects.Pending) {
		p := times[pod.Name]
		p.Object = pod.DeepCopy()
		p.Object.Status, p.Object.Spec.NodeName = v1.PodStatus{}, ""
		p.Started = p.Scheduled
		r.Pods = append(r.Pods, p)
	}
	in, err := r.Part(0, 0)
	must.Succeed(t, err)
	run := outcomeOf(t, in.Input(recording.Source{}), options(t, "default", "constant:mean=1", 1))
	if run.Recorded.Placements.Same != 4 || run.PendingSeconds.Max != 120 || run.Unschedulable != 0 {
		t.Errorf("%+v, pending %+v, %d unschedulable", run.Recorded.Placements, run.PendingSeconds, run.Unschedulable)
	}
}

// encode returns an object as JSON, with its type.
func encode(t *testing.T, object runtime.Object) kinds.Object {
	t.Helper()
	types, _, err := scheme.Scheme.ObjectKinds(object)
	must.Succeed(t, err)
	object = object.DeepCopyObject()
	object.GetObjectKind().SetGroupVersionKind(types[0])
	raw, err := json.Marshal(object)
	must.Succeed(t, err)
	return kinds.Object{Kind: kinds.Of(types[0].Group, types[0].Kind), JSON: raw}
}

// TestMissingClaims checks pods that refer to objects that the input lacks: pods with a node run, and are scheduled again, as their claims
// exist; pods without a node wait for reasons without the names of claims.
func TestMissingClaims(t *testing.T) {
	const bound = `
---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: bound-%[1]d, annotations: {pv.kubernetes.io/bind-completed: "yes"}},
 spec: {volumeName: pv-%[1]d, storageClassName: gone}}
---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: unbound-%[1]d}, spec: {storageClassName: gone}}
---
{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, metadata: {name: classless-%[1]d},
 spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gone, allocationMode: ExactCount, count: 1}}]}}}`
	for name, test := range map[string]struct{ spec, reason string }{
		"claim":  {`volumes: [{name: data, persistentVolumeClaim: {claimName: data-%d}}]`, "persistentvolumeclaim not found"},
		"volume": {`volumes: [{name: data, persistentVolumeClaim: {claimName: bound-%d}}]`, "persistentvolume not found"},
		"class": {
			`volumes: [{name: data, persistentVolumeClaim: {claimName: unbound-%d}}]`, "pod has unbound immediate PersistentVolumeClaims",
		},
		"devices": {`resourceClaims: [{name: gpu, resourceClaimName: gpu-%d}]`, "could not find ResourceClaim"},
		"ephemeral": {
			`volumes: [{name: data-%d, ephemeral: {volumeClaimTemplate: {spec: {}}}}]`,
			"waiting for ephemeral volume controller to create the persistentvolumeclaim",
		},
		"template":     {`resourceClaims: [{name: gpu-%d, resourceClaimTemplateName: gone}]`, "pod: ResourceClaim not created yet"},
		"device class": {`resourceClaims: [{name: gpu, resourceClaimName: classless-%d}]`, "request gpu: device class gone does not exist"},
		"runtime":      {`runtimeClassName: gone-%d`, ""},
		"priority":     {`priorityClassName: gone-%d`, ""},
	} {
		for _, node := range []string{"a", ""} {
			text := poolNode("a")
			for i := range 2 {
				text += fmt.Sprintf(bound, i) + "\n---\n" + podOn(fmt.Sprintf("p-%d", i), node, "x",
					`containers: [{name: main, image: x}], `+fmt.Sprintf(test.spec, i))
			}
			objects, err := manifest.Read([]string{"-"}, strings.NewReader(text))
			must.Succeed(t, err)
			in := recording.Source{Reschedule: true}.FromManifests(objects)
			run := outcomeOf(t, in, options(t, "default", "constant:mean=1", 1))
			want, missing := map[string]int{}, 0
			if test.reason != "" {
				missing = 1
				if node == "" {
					want[test.reason] = 2
				}
			}
			if diff := cmp.Diff(want, run.Reasons); diff != "" || len(in.Missing) != missing {
				t.Errorf("%s on node %q: %s, %q", name, node, diff, in.Missing)
			}
		}
	}
}
