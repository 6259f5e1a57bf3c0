package snapshot

import (
	"encoding/json"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/sets"
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
	s, err := FromDocuments(instant, func(each func(where string, document []byte) error) error {
		for document := range strings.SplitSeq(deviceManifests, "\n---\n") {
			if err := each("test", []byte(document)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	redacted, err := s.Redact([]byte("key"))
	if err != nil {
		t.Fatal(err)
	}
	for _, list := range redacted.Lists {
		for _, item := range list.Items {
			if text := string(item); strings.Contains(text, "acme") || strings.Contains(text, "secret") {
				t.Errorf("%s has a name: %s", list.File(), text)
			}
		}
	}
	if _, err := redacted.Cluster(); err != nil {
		t.Error(err)
	}
	class := string(redacted.List("deviceclasses")[0])
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
	for raw, into := range map[*json.RawMessage]any{&redacted.List("resourceslices")[0]: &slice, &redacted.List("resourceclaims")[0]: &claim} {
		if err := json.Unmarshal(*raw, into); err != nil {
			t.Fatal(err)
		}
	}
	device, result := slice.Spec.Devices[0], claim.Status.Allocation.Devices.Results[0]
	if names := sets.New(slice.Spec.NodeName, slice.Spec.Pool.Name, result.Pool); len(names) != 1 || device.Name != result.Device {
		t.Errorf("slice %+v, allocation %+v", slice, result)
	}
	if device.Attributes["index"]["int"] != 7.0 || device.Attributes["owner"]["string"] == "" {
		t.Errorf("attributes %v", device.Attributes)
	}
}

// FuzzUsage verifies that usage.json with any content is refused, or read into a valid reading.
func FuzzUsage(f *testing.F) {
	reading := usageReading()
	content, err := encodeUsage(&reading)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(content))
	f.Add(`{"pods":[{"namespace":"a","name":"b","cpuMillicores":1e400}]}`)
	f.Add(`{"pods":null}`)
	f.Fuzz(func(t *testing.T, content string) {
		s := &Snapshot{}
		if err := s.readUsage(strings.NewReader(content)); err != nil {
			return
		}
		for _, pod := range s.Usage.Pods {
			if !pod.Valid() {
				t.Errorf("%+v is not valid", pod)
			}
		}
	})
}
