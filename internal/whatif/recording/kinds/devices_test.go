package kinds

import (
	"encoding/json"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/yaml"

	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// deviceManifests has the objects of dynamic resource allocation, with names that a redacted snapshot must not have.
const deviceManifests = `
apiVersion: v1
kind: Node
metadata: {name: acme-node}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: acme-class}
spec:
  selectors:
  - {cel: {expression: device.driver == "gpu.example.com"}}
  - {cel: {expression: 'device.attributes["gpu.example.com"].owner == "acme-owner"'}}
  config: [{opaque: {driver: gpu.example.com, parameters: {acme: secret}}}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: acme-slice}
spec:
  driver: gpu.example.com
  nodeName: acme-node
  pool: {name: acme-node, generation: 1, resourceSliceCount: 1}
  devices:
  - name: acme-gpu
    attributes: {owner: {string: acme-owner}, index: {int: 7}}
    capacity: {memory: {value: 40Gi}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: acme-claim, namespace: acme}
spec: {devices: {requests: [{name: acme-request, exactly: {deviceClassName: acme-class, allocationMode: ExactCount, count: 1}}]}}
status:
  allocation: {devices: {results: [{request: acme-request, driver: gpu.example.com, pool: acme-node, device: acme-gpu}]}}
  reservedFor: [{resource: pods, name: acme-pod, uid: acme-uid}]
---
apiVersion: v1
kind: Pod
metadata: {name: acme-pod, namespace: acme, uid: acme-uid}
spec:
  nodeName: acme-node
  schedulingGroup: {podGroupName: acme-group}
  containers: [{name: main, image: i, resources: {claims: [{name: acme-gpu-of-pod, request: acme-request}]}}]
  resourceClaims: [{name: acme-gpu-of-pod, resourceClaimName: acme-claim}]
`

// TestDevicesAreRedacted verifies that objects of dynamic resource allocation keep the fields that the scheduler reads, without
// names: only the selector of the driver remains; the allocated device and its pool have the pseudonyms of the slice, and the
// pool has the pseudonym of the node.
func TestDevicesAreRedacted(t *testing.T) {
	var objects []Object
	for document := range strings.SplitSeq(deviceManifests, "\n---\n") {
		var object map[string]any
		must.Succeed(t, yaml.Unmarshal([]byte(document), &object))
		group, _, _ := strings.Cut(object["apiVersion"].(string), "/")
		kept, err := Of(strings.TrimPrefix(group, "v1"), object["kind"].(string)).Trim(object)
		must.Succeed(t, err)
		objects = append(objects, kept)
	}
	redactor := NewRedactor([]byte("key"))
	redactor.Prepare(objects)
	redacted := map[string][]byte{}
	for _, object := range objects {
		object, err := redactor.Redact(object)
		if text := string(object.JSON); err != nil || strings.Contains(text, "acme") || strings.Contains(text, "secret") {
			t.Errorf("%s, %v has a name: %s", object, err, text)
		}
		redacted[object.Kind.Resource] = object.JSON
	}
	class := string(redacted["deviceclasses"])
	if !strings.Contains(class, "gpu.example.com") || strings.Contains(class, "attributes") {
		t.Errorf("class %s", class)
	}
	var slice struct {
		Spec struct {
			NodeName string
			Pool     struct{ Name string }
			Devices  []struct {
				Name       string
				Attributes map[string]map[string]any
			}
		}
	}
	var claim struct {
		Status struct {
			Allocation struct {
				Devices struct {
					Results []struct{ Pool, Device string }
				}
			}
		}
	}
	for resource, into := range map[string]any{"resourceslices": &slice, "resourceclaims": &claim} {
		must.Succeed(t, json.Unmarshal(redacted[resource], into))
	}
	device, result := slice.Spec.Devices[0], claim.Status.Allocation.Devices.Results[0]
	if names := sets.New(slice.Spec.NodeName, slice.Spec.Pool.Name, result.Pool); len(names) != 1 || device.Name != result.Device {
		t.Errorf("slice %+v, allocation %+v", slice, result)
	}
	if device.Attributes["index"]["int"] != 7.0 || device.Attributes["owner"]["string"] == "" {
		t.Errorf("attributes %v", device.Attributes)
	}
}
