package compare

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/plimsoll-k8s/plimsoll/internal/manifest"
	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/emulation"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// taintedDevice is a node whose only device has a taint, and a pod that claims it without a toleration.
const taintedDevice = `
apiVersion: v1
kind: Node
metadata: {name: node, labels: {kubernetes.io/hostname: node}}
status: {allocatable: {cpu: "16", memory: 64Gi, pods: "110"}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: gpus}
spec:
  driver: gpu.example.com
  nodeName: node
  pool: {name: node, generation: 1, resourceSliceCount: 1}
  devices: [{name: gpu, taints: [{key: broken, effect: NoSchedule}]}]
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu}
spec: {selectors: [{cel: {expression: device.driver == "gpu.example.com"}}]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: gpu, namespace: default}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu, allocationMode: ExactCount, count: 1}}]}}
---
apiVersion: v1
kind: Pod
metadata: {name: pod, namespace: default}
spec:
  containers: [{name: main, image: i, resources: {requests: {cpu: "1", memory: 1Gi}, claims: [{name: gpu}]}}]
  resourceClaims: [{name: gpu, resourceClaimName: gpu}]
`

// TestEmulatedVersion expects that a run has the features of the version of the snapshot's cluster: schedulers read the taints of devices
// from 1.36 on, so that earlier ones place the pod.
func TestEmulatedVersion(t *testing.T) {
	t.Cleanup(func() { _ = emulation.Use(emulation.Built().String()) })
	documents := filepath.Join(t.TempDir(), "cluster.yaml")
	must.Succeed(t, os.WriteFile(documents, []byte(taintedDevice), 0o600))
	for _, tc := range []struct {
		version   string
		scheduled int
		assumed   string
	}{
		{"v1.31.2", 1, "with the features of Kubernetes 1.34, the nearest to the version of the cluster, v1.31.2"},
		{"v1.35.8", 1, "with the features of Kubernetes 1.35, as the cluster has v1.35.8"},
		{"v1.37.1", 0, "with the features of Kubernetes 1.37, as the cluster has v1.37.1"},
		{"v1.39.0", 0, "with the features of Kubernetes 1.37, the nearest to the version of the cluster, v1.39.0"},
	} {
		s, _, err := recording.ReadSnapshot(time.Now(), manifest.Files([]string{documents}, nil))
		must.Succeed(t, err)
		s.About.Kubernetes = tc.version
		path := filepath.Join(t.TempDir(), "snapshot.ndjson.gz")
		must.Succeed(t, s.WriteFile(path))
		job := jobs(t, "", "default")[0]
		job.Source.Recording = path
		run, err := job.Run(t.Context(), nil)
		must.Succeed(t, err)
		if run.Scheduled != tc.scheduled {
			t.Errorf("%s: %d pods scheduled, want %d; reasons %v", tc.version, run.Scheduled, tc.scheduled, run.Reasons)
		}
		in, err := job.Source.Input(0)
		must.Succeed(t, err)
		if text := schedulerOf(&in); !strings.HasSuffix(text, tc.assumed) {
			t.Errorf("%s: assumed %q, want its end to be %q", tc.version, text, tc.assumed)
		}
	}
}
