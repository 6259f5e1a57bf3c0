package plugins

import (
	"context"
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clientcache "k8s.io/client-go/tools/cache"
	"k8s.io/dynamic-resource-allocation/resourceslice/tracker"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	internalconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	inTree "k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
	"k8s.io/kubernetes/pkg/scheduler/util/assumecache"

	"github.com/plimsoll-k8s/plimsoll/api/config"
	"github.com/plimsoll-k8s/plimsoll/plugins/noderesourcesallocatable"
	"github.com/plimsoll-k8s/plimsoll/plugins/noderesourceslimits"
	"github.com/plimsoll-k8s/plimsoll/test/support/eventually"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
	"github.com/plimsoll-k8s/plimsoll/test/support/schedtest"
)

const gpu = "example.com/gpu"

// manager returns kube-scheduler's manager of devices and claims.
func manager(t *testing.T, objects ...runtime.Object) fwk.SharedDRAManager {
	t.Helper()
	client := fake.NewClientset(objects...)
	factory := informers.NewSharedInformerFactory(client, 0)
	slices, err := tracker.StartTracker(t.Context(), tracker.Options{
		SliceInformer: factory.Resource().V1().ResourceSlices(), KubeClient: client,
	})
	must.Succeed(t, err)
	claims := assumecache.NewAssumeCache(
		klog.FromContext(t.Context()), factory.Resource().V1().ResourceClaims().Informer(), "resource claim", "", nil,
	)
	m := dynamicresources.NewDRAManager(t.Context(), claims, slices, factory)
	classes := m.DeviceClassResolver().(clientcache.ResourceEventHandler)
	if _, err := factory.Resource().V1().DeviceClasses().Informer().AddEventHandler(classes); err != nil {
		t.Fatal(err)
	}
	factory.Start(t.Context().Done())
	factory.WaitForCacheSync(t.Context().Done())
	eventually.True(t, "devices and claims are not known", nil, func(context.Context) (bool, error) {
		known, err := m.ResourceSlices().ListWithDeviceTaintRules()
		if err != nil {
			return false, err
		}
		state, err := m.ResourceClaims().GatherAllocatedState()
		return m.DeviceClassResolver().GetDeviceClass(gpu) != nil && len(known) == 4 && state.AllocatedDevices.Len() == 3, err
	})
	return m
}

// slice returns a slice with devices of a model.
func slice(name string, devices int, model string, of resourceapi.ResourceSliceSpec) *resourceapi.ResourceSlice {
	of.Driver, of.Pool = "gpu.example.com", resourceapi.ResourcePool{Name: name, ResourceSliceCount: 1}
	for i := range devices {
		of.Devices = append(of.Devices, resourceapi.Device{
			Name:       fmt.Sprint("gpu-", i),
			Attributes: map[resourceapi.QualifiedName]resourceapi.DeviceAttribute{"model": {StringValue: &model}},
		})
	}
	return &resourceapi.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: of}
}

// claim returns a claim with allocated devices of a pool.
func claim(pool string, devices ...string) *resourceapi.ResourceClaim {
	c := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: "claim-" + pool, Namespace: "default", UID: types.UID(pool)}}
	c.Status.Allocation = &resourceapi.AllocationResult{}
	for _, device := range devices {
		c.Status.Allocation.Devices.Results = append(c.Status.Allocation.Devices.Results, resourceapi.DeviceRequestAllocationResult{
			Request: "r", Driver: "gpu.example.com", Pool: pool, Device: device,
		})
	}
	return c
}

// TestDevices has nodes whose GPUs are requested as extended resources and allocated by claims:
//
//	a: 4 GPUs, 1 allocated; b: 8 GPUs, 2 allocated, and 3 devices of another class
//	c: 2 GPUs that are attached to nodes with the label rack; d: none; e: 2 GPUs by a device plugin
//
// A pod requests one. NodeResourcesLimits scores as NodeResourcesFit of kube-scheduler does, by (devices - allocated - 1) x 100 / devices;
// NodeResourcesAllocatable by the number of devices.
func TestDevices(t *testing.T) {
	class := &resourceapi.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "gpu"}}
	class.Spec.ExtendedResourceName = new(string(gpu))
	class.Spec.Selectors = []resourceapi.DeviceSelector{{CEL: &resourceapi.CELDeviceSelector{
		Expression: `device.attributes["gpu.example.com"].model == "large"`,
	}}}
	rack := &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
		MatchExpressions: []v1.NodeSelectorRequirement{{Key: "rack", Operator: v1.NodeSelectorOpExists}},
	}}}
	devices := manager(t, class, slice("a", 4, "large", resourceapi.ResourceSliceSpec{NodeName: new("a")}),
		slice("b", 8, "large", resourceapi.ResourceSliceSpec{NodeName: new("b")}),
		slice("b-small", 3, "small", resourceapi.ResourceSliceSpec{NodeName: new("b")}),
		slice("rack", 2, "large", resourceapi.ResourceSliceSpec{NodeSelector: rack}), claim("a", "gpu-0"), claim("b", "gpu-0", "gpu-3"))
	var nodes []*v1.Node
	for _, name := range []string{"a", "b", "c", "d"} {
		nodes = append(nodes, schedtest.Node(name, "cpu", "64"))
	}
	nodes[2].Labels = map[string]string{"rack": "1"}
	cluster := schedtest.Cluster{Nodes: append(nodes, schedtest.Node("e", "cpu", "64", gpu, "2")), Devices: devices}
	one := schedtest.Amounts(gpu, "1")
	weight := int64(1)
	weighted := []config.ResourceWeight{{Name: gpu, Weight: &weight}}
	registry := Registry()
	registry["NodeResourcesFit"] = inTree.NewInTreeRegistry()["NodeResourcesFit"]
	score := func(name string, args runtime.Object) map[string]int64 {
		t.Helper()
		plugin := schedtest.Plugin{Name: name, Args: args, ScoreOnly: true}
		scores, err := schedtest.Run(t, registry, plugin, cluster, schedtest.Pod("p", "", one, one))
		must.Succeed(t, err)
		raw := map[string]int64{}
		for node, s := range scores {
			raw[node] = s.Raw
		}
		return raw
	}
	fit := score("NodeResourcesFit", &internalconfig.NodeResourcesFitArgs{ScoringStrategy: &internalconfig.ScoringStrategy{
		Type: internalconfig.LeastAllocated, Resources: []internalconfig.ResourceSpec{{Name: gpu, Weight: 1}},
	}})
	limits := score(noderesourceslimits.Name, &config.NodeResourcesLimitsArgs{Resources: weighted})
	allocatable := score(noderesourcesallocatable.Name, &config.NodeResourcesAllocatableArgs{Mode: config.Most, Resources: weighted})
	for node, want := range map[string][2]int64{"a": {50, 4}, "b": {62, 8}, "c": {50, 2}, "d": {0, 0}, "e": {50, 2}} {
		if fit[node] != want[0] || limits[node] != want[0] || allocatable[node] != want[1] {
			t.Errorf("%s: NodeResourcesFit %d, NodeResourcesLimits %d, NodeResourcesAllocatable %d; want %d, %d and %d",
				node, fit[node], limits[node], allocatable[node], want[0], want[0], want[1])
		}
	}
}
