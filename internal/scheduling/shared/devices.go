package shared

import (
	"context"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/utils/ptr"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// maxExpressions is the number of compiled expressions that are kept.
const maxExpressions = 100

// DeviceCounter counts the devices of nodes that are requested as extended resources and allocated by claims (Dynamic Resource
// Allocation): nodes do not list them as allocatable. A nil Counter has none. It is safe for concurrent use.
type DeviceCounter struct {
	manager   fwk.SharedDRAManager
	resources []v1.ResourceName
	compiled  *cel.Cache
}

// NewDeviceCounter returns a counter of the extended resources among some resources, nil if there are none.
func NewDeviceCounter(handle fwk.Handle, all []resources.Resource) *DeviceCounter {
	c := &DeviceCounter{manager: handle.SharedDRAManager()}
	for _, r := range all {
		if r.Index() == resources.Extended {
			c.resources = append(c.resources, r.Name())
		}
	}
	if c.manager == nil || len(c.resources) == 0 {
		return nil
	}
	c.compiled = cel.NewCache(maxExpressions, cel.Features{})
	return c
}

// DeviceCount is a number of devices, and how many of them are allocated.
type DeviceCount struct{ Devices, Allocated int64 }

func (c *DeviceCount) add(isAllocated bool) {
	c.Devices++
	if isAllocated {
		c.Allocated++
	}
}

// Counts are the devices of all nodes at one time. They are immutable. The zero value has none.
type Counts struct {
	resources map[v1.ResourceName]*nodeCounts
}

// nodeCounts are the devices of one resource by the nodes that can use them.
type nodeCounts struct {
	nodes map[string]*DeviceCount
	// everywhere are the devices that all nodes can use, selected those of the nodes that a selector matches.
	everywhere DeviceCount
	selected   []selectedCount
}

type selectedCount struct {
	selector *nodeaffinity.NodeSelector
	DeviceCount
}

// Of returns the devices that a node can use, nothing if the resource is not backed by devices.
func (c *Counts) Of(r resources.Resource, node *v1.Node) DeviceCount {
	counts := c.resources[r.Name()]
	if counts == nil || node == nil {
		return DeviceCount{}
	}
	sum := counts.everywhere
	if of := counts.nodes[node.Name]; of != nil {
		sum.Devices, sum.Allocated = sum.Devices+of.Devices, sum.Allocated+of.Allocated
	}
	for i := range counts.selected {
		if s := &counts.selected[i]; s.selector.Match(node) {
			sum.Devices, sum.Allocated = sum.Devices+s.Devices, sum.Allocated+s.Allocated
		}
	}
	return sum
}

// Count counts the devices in the state of the present scheduling cycle. What cannot be read is logged, and has no devices.
func (c *DeviceCounter) Count(ctx context.Context) Counts {
	counts := Counts{}
	if c == nil {
		return counts
	}
	logger := klog.FromContext(ctx)
	var allocated *structured.AllocatedState
	var slices []*resourceapi.ResourceSlice
	for _, name := range c.resources {
		class := c.manager.DeviceClassResolver().GetDeviceClass(name)
		if class == nil {
			continue
		}
		if allocated == nil {
			var err error
			if allocated, err = c.manager.ResourceClaims().GatherAllocatedState(); err != nil {
				logger.Error(err, "Devices are not scored: allocated devices are not known")
				return Counts{}
			}
			if slices, err = c.manager.ResourceSlices().ListWithDeviceTaintRules(); err != nil {
				logger.Error(err, "Devices are not scored: devices are not known")
				return Counts{}
			}
			counts.resources = map[v1.ResourceName]*nodeCounts{}
		}
		of := &nodeCounts{nodes: map[string]*DeviceCount{}}
		for _, slice := range slices {
			if err := c.addSlice(ctx, of, class, slice, allocated); err != nil {
				logger.Error(err, "Devices of a ResourceSlice are not scored", "resourceSlice", slice.Name, "deviceClass", class.Name)
			}
		}
		counts.resources[name] = of
	}
	return counts
}

// addSlice adds the devices of a slice that are in a class.
func (c *DeviceCounter) addSlice(
	ctx context.Context, of *nodeCounts, class *resourceapi.DeviceClass, slice *resourceapi.ResourceSlice,
	allocated *structured.AllocatedState,
) error {
	spec := &slice.Spec
	perDevice := ptr.Deref(spec.PerDeviceNodeSelection, false)
	var shared *DeviceCount
	for i := range spec.Devices {
		device := &spec.Devices[i]
		matches, err := c.inClass(ctx, class, spec.Driver, device)
		if err != nil {
			return err
		}
		if !matches {
			continue
		}
		count := shared
		if perDevice {
			count, err = of.count(device.NodeName, device.AllNodes, device.NodeSelector)
		} else if shared == nil {
			shared, err = of.count(spec.NodeName, spec.AllNodes, spec.NodeSelector)
			count = shared
		}
		if err != nil {
			return err
		}
		count.add(structured.IsDeviceAllocated(structured.MakeDeviceID(spec.Driver, spec.Pool.Name, device.Name), allocated))
	}
	return nil
}

// count returns the count of the nodes of a device.
func (n *nodeCounts) count(name *string, all *bool, selector *v1.NodeSelector) (*DeviceCount, error) {
	switch {
	case ptr.Deref(all, false):
		return &n.everywhere, nil
	case selector != nil:
		parsed, err := nodeaffinity.NewNodeSelector(selector)
		if err != nil {
			return nil, err
		}
		n.selected = append(n.selected, selectedCount{selector: parsed})
		return &n.selected[len(n.selected)-1].DeviceCount, nil
	case name != nil:
		if n.nodes[*name] == nil {
			n.nodes[*name] = &DeviceCount{}
		}
		return n.nodes[*name], nil
	default:
		return &DeviceCount{}, nil
	}
}

// inClass reports whether a device matches all selectors of a class.
func (c *DeviceCounter) inClass(
	ctx context.Context, class *resourceapi.DeviceClass, driver string, device *resourceapi.Device,
) (bool, error) {
	for _, selector := range class.Spec.Selectors {
		if selector.CEL == nil {
			continue
		}
		compiled := c.compiled.GetOrCompile(selector.CEL.Expression)
		if compiled.Error != nil {
			return false, compiled.Error
		}
		matches, _, err := compiled.DeviceMatches(ctx, cel.Device{Driver: driver, Attributes: device.Attributes, Capacity: device.Capacity})
		if err != nil || !matches {
			return false, err
		}
	}
	return true, nil
}
