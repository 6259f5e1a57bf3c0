package plugins

import (
	"context"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"

	"github.com/plimsoll-k8s/plimsoll/api/config"
	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
	"github.com/plimsoll-k8s/plimsoll/test/support/schedtest"
)

var oneNode = schedtest.Cluster{
	Nodes: []*v1.Node{schedtest.Node("a", "cpu", "8", "memory", "32Gi")},
	Pods:  []*v1.Pod{schedtest.CPU("1", "a", "4", "12")},
}

// withLoad returns the plugins with a reading of load of that age, or without load if nodes is nil.
func withLoad(nodes map[string]load.Node, age time.Duration) frameworkruntime.Registry {
	return RegistryWithLoad(schedtest.WithLoad(nodes, age), nil)
}

// The scheduler batches equal pods only if every plugin of a profile signs them.
func TestPodsAreSigned(t *testing.T) {
	for _, plugin := range All {
		name := plugin.Name
		s, err := schedtest.New(t.Context(), Registry(), schedtest.Plugin{Name: name}, oneNode)
		must.Succeed(t, err)
		signature := func(pod *v1.Pod) string {
			if f, ok := any(s.Framework).(interface { // Kubernetes 1.35
				SignPod(context.Context, *v1.Pod, bool) fwk.PodSignature
			}); ok {
				return string(f.SignPod(t.Context(), pod, false))
			}
			return string(any(s.Framework).(interface {
				SignPod(context.Context, *v1.Pod) fwk.PodSignature
			}).SignPod(t.Context(), pod))
		}
		same, twin, other := schedtest.CPU("1", "", "1", "2"), schedtest.CPU("2", "", "1", "2"), schedtest.CPU("3", "", "1", "3")
		if signature(same) == "" || signature(same) != signature(twin) {
			t.Errorf("%s: signatures of equal pods are %q and %q", name, signature(same), signature(twin))
		}
		// The score of NodeResourcesAllocatable does not depend on the pod.
		if differs := signature(same) != signature(other); differs == (name == "NodeResourcesAllocatable") {
			t.Errorf("%s: pods with other limits: signatures differ: %v", name, differs)
		}
	}
}

// Invalid arguments are an error of the constructor that names the field.
func TestInvalidArguments(t *testing.T) {
	for name, tc := range map[string]struct {
		plugin schedtest.Plugin
		want   string
	}{
		"risk": {
			schedtest.Plugin{Name: "LowRiskOverCommitment", Args: &config.LowRiskOverCommitmentArgs{SmoothingWindowSize: new(int64)}},
			"args of LowRiskOverCommitment: smoothingWindowSize",
		},
		"another plugin's": {
			schedtest.Plugin{Name: "LowRiskOverCommitment", Args: &config.NodeResourcesLimitsArgs{}},
			"args of LowRiskOverCommitment: found a *config.NodeResourcesLimitsArgs: must be a *config.LowRiskOverCommitmentArgs",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := schedtest.New(t.Context(), Registry(), tc.plugin, schedtest.Cluster{})
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}
