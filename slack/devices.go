package slack

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
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

// fits reports whether a usable node has an amount of a device and fits a size at the same time.
func (l *poolLedger) fits(shape deviceShape, size resources.Amounts) bool {
	for node := range l.deviceNodes {
		if node.devices[shape.Device-1] >= int64(shape.Amount) && size.FitsIn(node.Amounts) {
			return true
		}
	}
	return false
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
func (t *Tracker) addDevices(p *Plan, seconds, jump int64) {
	changed := t.devicePolicy != t.algoPolicy && t.devicePolicy != ratePolicy{}
	t.devicePolicy = t.algoPolicy
	if t.devices == nil {
		t.devices = map[deviceShape]*heldDevices{}
	}
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
			p.fail("%s: %s required, maxPlaceholders leaves %d", t.deviceText(shape), format.Are(uint64(count), "placeholder"), max(0, left))
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
	held, rate := t.devices[shape], t.algoPolicy.Rate
	count := resources.MulDivUp(pods.pods, rate, resources.Millionth)
	if pods.pods > 0 {
		name := v1.ResourceName(t.policy.Spec.Pool.Devices[shape.Device-1])
		base, target := listOf(pods.requests), listOf(pods.requests.Share(rate))
		base[name] = *resource.NewQuantity(pods.devices, resource.DecimalSI)
		target[name] = *resource.NewQuantity(resources.MulDivUp(pods.devices, rate, resources.Millionth), resource.DecimalSI)
		p.Base, p.Target = addTimes(p.Base, base, 1), addTimes(p.Target, target, 1)
		size := pods.requests.DivideUp(pods.pods)
		if !size.FitsIn(held.size) || hasDrifted(size, held.size) || !t.ledger.fits(shape, held.size) {
			held.size = size
		}
	}
	if !t.ledger.fits(shape, held.size) {
		if count > 0 {
			p.fail("a placeholder with %s, %s does not fit any usable node of the pool: %s", t.deviceText(shape), held.size, t.largestNode(shape))
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

// fail marks the plan as not feasible for a reason.
func (p *Plan) fail(format string, args ...any) {
	p.Feasible = false
	p.Reasons = append(p.Reasons, fmt.Sprintf(format, args...))
}

// deviceText returns a shape as a text.
func (t *Tracker) deviceText(shape deviceShape) string {
	return fmt.Sprintf("%d %s", shape.Amount, t.policy.Spec.Pool.Devices[shape.Device-1])
}

// largestNode describes the usable node with the highest amount of the device of a shape.
func (t *Tracker) largestNode(shape deviceShape) string {
	var largest deviceNode
	amount := func(n deviceNode) int64 { return n.devices[shape.Device-1] }
	for node := range t.ledger.deviceNodes {
		if more := cmp.Compare(amount(node), amount(largest)); more > 0 || more == 0 && largest.Less(node.Amounts) {
			largest = node
		}
	}
	return fmt.Sprintf("the node with the most has %d, %s", amount(largest), largest.Amounts)
}

// groupName returns the name of the placeholders of the shape. Names of policies have at most 50 characters.
func (s deviceShape) groupName(policy string) string {
	return fmt.Sprintf("%s-d%d-%d", policy, s.Device, s.Amount)
}

var deviceName = regexp.MustCompile(`^-d([1-8])-([1-9][0-9]{0,8})$`)

// resumeDevices sets the placeholders of a group that is held already. It returns false if the group has another purpose.
func (t *Tracker) resumeDevices(group Group) bool {
	suffix, _ := strings.CutPrefix(group.Name, t.policy.Name)
	parts := deviceName.FindStringSubmatch(suffix)
	if parts == nil {
		return false
	}
	device, _ := strconv.Atoi(parts[1])
	amount, _ := strconv.Atoi(parts[2])
	if device > len(t.policy.Spec.Pool.Devices) {
		return true
	}
	held := &heldDevices{size: resources.CPUAndMemory(group.Requests)}
	held.count.Set(group.Count)
	if t.devices == nil {
		t.devices = map[deviceShape]*heldDevices{}
	}
	t.devices[deviceShape{uint8(device), int32(amount)}] = held
	return true
}
