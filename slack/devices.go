package slack

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/format"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

const (
	// maxDeviceAmount is the highest amount of a device that one pod or node is counted with.
	maxDeviceAmount = 999_999_999
	// maxDeviceShapes is the maximum number of shapes of placeholders for a device.
	maxDeviceShapes = 8
)

// deviceAmounts are amounts of the devices of a pool, by index in spec.pool.devices.
type deviceAmounts [v1alpha1.MaxDevices]int64

// devicesOf returns the amounts of devices in a list.
func devicesOf(list v1.ResourceList, devices []string) (amounts deviceAmounts) {
	for i, name := range devices {
		if quantity, ok := list[v1.ResourceName(name)]; ok {
			amounts[i] = max(0, min(quantity.Value(), maxDeviceAmount))
		}
	}
	return amounts
}

// deviceShape is an amount of a device. Device is its number in spec.pool.devices, from 1.
type deviceShape struct {
	Device uint8
	Amount int32
}

func (s deviceShape) compare(other deviceShape) int {
	return cmp.Or(cmp.Compare(s.Device, other.Device), cmp.Compare(s.Amount, other.Amount))
}

// devicePods are the pods with a shape: their number, and the sums of their requests and of their amounts of the device.
type devicePods struct {
	pods, devices int64
	requests      resources.Amounts
}

// add returns the sum of pods.
func (p devicePods) add(other devicePods) devicePods {
	return devicePods{p.pods + other.pods, p.devices + other.devices, p.requests.Add(other.requests)}
}

// deviceNode is the capacity of a node with devices, after daemon pods.
type deviceNode struct {
	resources.Amounts
	devices deviceAmounts
}

// countDevices adds a pod with devices to the pods of its shape, or removes it if sign is -1.
func (l *poolLedger) countDevices(pod ledgerPod, sign int64) {
	shape := deviceShape{pod.Device, pod.Amount}
	sum := l.devicePods[shape]
	sum = devicePods{sum.pods + sign, sum.devices + sign*int64(pod.Amount), add(sum.requests, pod.Requests, int(sign))}
	if l.devicePods[shape] = sum; sum.pods == 0 {
		delete(l.devicePods, shape)
	}
}

// DevicePods returns the pods with devices by shape: at most maxDeviceShapes for each device. The smallest amounts beyond are
// merged into the next larger one.
func (l *poolLedger) DevicePods() map[deviceShape]devicePods {
	merged := maps.Clone(l.devicePods)
	shapes := slices.SortedFunc(maps.Keys(merged), deviceShape.compare)
	for i, shape := range shapes {
		if larger := i + maxDeviceShapes; larger < len(shapes) && shapes[larger].Device == shape.Device {
			merged[shapes[i+1]] = merged[shapes[i+1]].add(merged[shape])
			delete(merged, shape)
		}
	}
	return merged
}

// fits reports whether a usable node has an amount of a device and fits a size at the same time. It also returns the node with the
// highest amount of the device.
func (l *poolLedger) fits(shape deviceShape, size resources.Amounts) (fits bool, largest deviceNode) {
	i := shape.Device - 1
	for node := range l.deviceNodes {
		fits = fits || node.devices[i] >= int64(shape.Amount) && size.FitsIn(node.Amounts)
		if more := cmp.Compare(node.devices[i], largest.devices[i]); more > 0 || more == 0 && largest.Less(node.Amounts) {
			largest = node
		}
	}
	return fits, largest
}

// heldDevices are the placeholders of a shape. As long as they cover the wanted size and it has not drifted, their size stays the
// same, because an autoscaler drops placeholders for a moment when their template changes. Their number grows at once and
// shrinks after a cool-down.
type heldDevices struct {
	size  resources.Amounts
	count damped[int64]
}

// addDevices appends the groups of placeholders for pods with devices, as far as maxPlaceholders permits. For n pods of a shape
// with requests S:
//
//	count = rate x n, rounded up
//	size  = the amount of the device, S / n, rounded up
//
// The sum is therefore at least rate x S in each resource.
func (t *Tracker) addDevices(p *Plan, changed bool, seconds, jump int64) {
	pods := t.ledger.DevicePods()
	for shape := range pods {
		if t.devices[shape] == nil {
			t.devices[shape] = &heldDevices{}
		}
	}
	for _, shape := range slices.SortedFunc(maps.Keys(t.devices), deviceShape.compare) {
		held := t.devices[shape]
		if !p.NoNodes {
			if end := t.nextDevices(p, shape, pods[shape], changed, seconds); end != 0 {
				p.setCoolDown(end + jump)
			}
		}
		count := held.count.Current()
		if left := int64(*t.policy.Spec.MaxPlaceholders) - p.placeholders(); count > left {
			p.fail("%s required with %d %s, maxPlaceholders leaves %d", format.Are(uint64(count), "placeholder"), shape.Amount,
				t.policy.Spec.Pool.Devices[shape.Device-1], max(0, left))
			count = max(0, left)
		}
		if count == 0 {
			continue
		}
		name := v1.ResourceName(t.policy.Spec.Pool.Devices[shape.Device-1])
		group := Group{Name: shape.groupName(t.policy.Name), Device: name, Requests: listOf(held.size), Count: count}
		group.Requests[name] = *resource.NewQuantity(int64(shape.Amount), resource.DecimalSI)
		p.Groups = append(p.Groups, group)
		p.Total = addTimes(p.Total, group.Requests, count)
	}
	maps.DeleteFunc(t.devices, func(_ deviceShape, held *heldDevices) bool { return held.count.Current() == 0 })
}

// nextDevices updates the placeholders of a shape for the current pods. It returns the end of the cool-down in seconds, 0 if there
// is none.
func (t *Tracker) nextDevices(p *Plan, shape deviceShape, pods devicePods, changed bool, seconds int64) (coolDownEnd int64) {
	held, rate, name := t.devices[shape], t.algoPolicy.Rate, v1.ResourceName(t.policy.Spec.Pool.Devices[shape.Device-1])
	count := resources.MulDivUp(pods.pods, rate, resources.Millionth)
	if pods.pods > 0 {
		base, target := listOf(pods.requests), listOf(pods.requests.Share(rate))
		base[name] = *resource.NewQuantity(pods.devices, resource.DecimalSI)
		target[name] = *resource.NewQuantity(resources.MulDivUp(pods.devices, rate, resources.Millionth), resource.DecimalSI)
		p.Base, p.Target = addTimes(p.Base, base, 1), addTimes(p.Target, target, 1)
		size := pods.requests.DivideUp(pods.pods)
		if fits, _ := t.ledger.fits(shape, held.size); !fits || !size.FitsIn(held.size) || hasDrifted(size, held.size) {
			held.size = size
		}
	}
	if fits, largest := t.ledger.fits(shape, held.size); !fits {
		if count > 0 {
			p.fail("a placeholder with %d %s, %s does not fit any usable node of the pool: the node with the most has %d, %s",
				shape.Amount, name, held.size, largest.devices[shape.Device-1], largest.Amounts)
		}
		count, changed = 0, changed || t.ledger.usable > 0
	}
	if changed {
		held.count.Set(count)
		return 0
	}
	_, coolDownEnd = held.count.Next(count, seconds, isMore)
	return coolDownEnd
}

// groupName returns the name of the placeholders of the shape. Names of policies have at most 50 characters.
func (s deviceShape) groupName(policy string) string {
	return fmt.Sprintf("%s-d%d-%d", policy, s.Device, s.Amount)
}

// resumeDevices sets the placeholders of a group that is held already if they are for pods with devices.
func (t *Tracker) resumeDevices(group Group) {
	var shape deviceShape
	devices, suffix := t.policy.Spec.Pool.Devices, strings.TrimPrefix(group.Name, t.policy.Name)
	n, _ := fmt.Sscanf(suffix, "-d%d-%d", &shape.Device, &shape.Amount)
	if n < 2 || shape.groupName(t.policy.Name) != group.Name || shape.Device < 1 || int(shape.Device) > len(devices) ||
		devicesOf(group.Requests, devices)[shape.Device-1] != int64(shape.Amount) { // the devices of the policy changed
		return
	}
	held := &heldDevices{size: resources.CPUAndMemory(group.Requests)}
	held.count.Set(group.Count)
	t.devices[shape] = held
}
