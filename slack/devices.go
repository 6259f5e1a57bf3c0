package slack

import (
	"cmp"
	"fmt"
	"hash/fnv"
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
	// maxDeviceShapes is the maximum number of shapes of placeholders with the same first device.
	maxDeviceShapes = 8
	// maxDeviceSuffix is the maximum length of the part of a group's name that names its devices: labels have at most 63 characters.
	maxDeviceSuffix = 63 - v1alpha1.MaxNameLength
)

// deviceAmounts are amounts of devices, by index in spec.pool.devices.
type deviceAmounts [v1alpha1.MaxDevices]int64

// devicesOf returns the amounts of devices in a list.
func devicesOf(list v1.ResourceList, devices []string) (amounts deviceAmounts) {
	for i, name := range devices {
		if quantity, ok := list[v1.ResourceName(name)]; ok {
			amounts[i] = max(0, min(quantity.Value(), maxAmount))
		}
	}
	return amounts
}

// plus returns the sum of the amounts and n times other amounts.
func (a deviceAmounts) plus(other deviceAmounts, n int64) deviceAmounts {
	for i := range a {
		a[i] += n * other[i]
	}
	return a
}

// fitsIn reports whether no amount is higher than in a capacity.
func (a deviceAmounts) fitsIn(capacity deviceAmounts) bool {
	for i := range a {
		if a[i] > capacity[i] {
			return false
		}
	}
	return true
}

// first returns the index of the first device with an amount.
func (a deviceAmounts) first() int {
	return slices.IndexFunc(a[:], func(n int64) bool { return n > 0 })
}

// compare orders amounts by their first device and then by amount.
func (a deviceAmounts) compare(b deviceAmounts) int {
	return cmp.Or(cmp.Compare(a.first(), b.first()), slices.Compare(a[:], b[:]))
}

// groupName returns the name of the placeholders with the amounts, which is unique among the groups of all policies.
func (a deviceAmounts) groupName(policy string) string {
	first, only := a.first(), deviceAmounts{}
	only[first] = a[first]
	suffix := fmt.Sprintf("-d%d-%d", first+1, a[first])
	if a != only || len(suffix) > maxDeviceSuffix {
		hash := fnv.New32a()
		fmt.Fprint(hash, a)
		suffix = fmt.Sprintf("-d-%08x", hash.Sum32())
	}
	return policy + suffix
}

// devicePods are pods that request devices: their number, and the sums of their requests.
type devicePods struct {
	pods     int64
	requests resources.Amounts
	devices  deviceAmounts
}

// plus returns the sum of the pods and n times other pods; n is 1 or -1.
func (p devicePods) plus(other devicePods, n int64) devicePods {
	return devicePods{p.pods + n*other.pods, add(p.requests, other.requests, int(n)), p.devices.plus(other.devices, n)}
}

// deviceNode is the capacity of a node with devices, after daemon pods.
type deviceNode struct {
	resources.Amounts
	devices deviceAmounts
}

// countDevices adds a pod with devices to the pods with equal devices, or removes it if sign is -1.
func (l *poolLedger) countDevices(pod ledgerPod, sign int64) {
	shape := pod.Devices.Value()
	sum := l.devicePods[shape].plus(devicePods{1, pod.Requests, shape}, sign)
	if l.devicePods[shape] = sum; sum.pods == 0 {
		delete(l.devicePods, shape)
	}
}

// DevicePods returns the pods with devices by the amounts of the devices: at most maxDeviceShapes with the same first device. The
// smallest amounts beyond are merged into the next larger ones, which then have the higher amount of each device.
func (l *poolLedger) DevicePods() map[deviceAmounts]devicePods {
	merged := maps.Clone(l.devicePods)
	shapes := slices.SortedFunc(maps.Keys(merged), deviceAmounts.compare)
	for i, shape := range shapes {
		last := i + maxDeviceShapes
		if last >= len(shapes) || shapes[last].first() != shape.first() || shapes[i+1] == shape {
			continue
		}
		next, larger := shapes[i+1], &shapes[i+1]
		pods := merged[shape].plus(merged[next], 1)
		delete(merged, shape)
		delete(merged, next)
		for device := range larger {
			larger[device] = max(shape[device], next[device])
		}
		merged[*larger] = merged[*larger].plus(pods, 1)
	}
	return merged
}

// fits reports whether a usable node has amounts of devices and fits a size at the same time. It also returns the node with the
// highest amount of the first device.
func (l *poolLedger) fits(shape deviceAmounts, size resources.Amounts) (fits bool, largest deviceNode) {
	i := shape.first()
	for node := range l.deviceNodes {
		fits = fits || shape.fitsIn(node.devices) && size.FitsIn(node.Amounts)
		if more := cmp.Compare(node.devices[i], largest.devices[i]); more > 0 || more == 0 && largest.Compare(node.Amounts) < 0 {
			largest = node
		}
	}
	return fits, largest
}

// heldDevices are the placeholders for pods with equal devices. As long as they cover the wanted size and it has not drifted, their
// size stays the same, because an autoscaler drops placeholders for a moment when their template changes. Their number grows at once
// and shrinks after a cool-down.
type heldDevices struct {
	size  resources.Amounts
	count damped[int64]
}

// addDevices appends the groups of placeholders for pods with devices, as far as maxPlaceholders permits. For n pods with equal
// devices and requests S:
//
//	count = rate x n, rounded up
//	size  = the devices, S / n, rounded up
//
// The sum is therefore at least rate x S in each resource. A changed policy takes effect at once.
func (t *Tracker) addDevices(p *Plan, changed bool) {
	pods := t.ledger.DevicePods()
	for shape := range pods {
		if t.devices[shape] == nil {
			t.devices[shape] = &heldDevices{}
		}
	}
	for _, shape := range slices.SortedFunc(maps.Keys(t.devices), deviceAmounts.compare) {
		held, wanted, text := t.devices[shape], int64(0), t.deviceText(shape, shape)
		if !p.NoNodes {
			wanted = t.nextDevices(p, shape, pods[shape], changed)
		}
		left := max(0, int64(*t.policy.Spec.MaxPlaceholders)-p.placeholders())
		if wanted > left {
			p.fail("%s required with %s, maxPlaceholders leaves %d", format.Are(uint64(wanted), "placeholder"), text, left)
		}
		if count := min(held.count.Current(), left); count > 0 {
			group := Group{Name: shape.groupName(t.policy.Name), Devices: text, Requests: t.deviceList(held.size, shape), Count: count}
			p.Groups = append(p.Groups, group)
			p.Total = addTimes(p.Total, group.Requests, count)
		}
	}
	maps.DeleteFunc(t.devices, func(_ deviceAmounts, held *heldDevices) bool { return held.count.Current() == 0 })
}

// nextDevices updates the placeholders for pods with equal devices, and returns how many are wanted.
func (t *Tracker) nextDevices(p *Plan, shape deviceAmounts, pods devicePods, changed bool) (count int64) {
	held, rate := t.devices[shape], t.schedule.policy.Rate
	if pods.pods > 0 {
		count = resources.MulDivUp(pods.pods, rate, resources.Millionth)
		target := pods.devices
		for i := range target {
			target[i] = resources.MulDivUp(target[i], rate, resources.Millionth)
		}
		p.Base = addTimes(p.Base, t.deviceList(pods.requests, pods.devices), 1)
		p.Target = addTimes(p.Target, t.deviceList(pods.requests.Share(rate), target), 1)
		size := pods.requests.DivideUp(pods.pods)
		if fits, _ := t.ledger.fits(shape, held.size); !fits || !size.FitsIn(held.size) || hasDrifted(size, held.size) {
			held.size = size
		}
	}
	if fits, largest := t.ledger.fits(shape, held.size); !fits {
		if count > 0 {
			p.fail("a placeholder with %s, %s does not fit any usable node of the pool: the node with the most has %s, %s",
				t.deviceText(shape, shape), held.size, t.deviceText(shape, largest.devices), largest.Amounts)
		}
		count, changed = 0, changed || t.ledger.totals.Nodes > 0
	}
	if changed {
		held.count.Set(count)
		return count
	}
	_, coolDownEnd := held.count.Next(count, t.now, isMore)
	t.setCoolDown(p, coolDownEnd)
	return count
}

// deviceList returns amounts with amounts of devices as a resource list.
func (t *Tracker) deviceList(amounts resources.Amounts, devices deviceAmounts) v1.ResourceList {
	list := listOf(amounts)
	for i, name := range t.policy.Spec.Pool.Devices {
		if devices[i] > 0 {
			list[v1.ResourceName(name)] = *resource.NewQuantity(devices[i], resource.DecimalSI)
		}
	}
	return list
}

// deviceText returns the amounts of the devices of a shape as a text such as "2 nvidia.com/gpu".
func (t *Tracker) deviceText(shape, amounts deviceAmounts) string {
	var texts []string
	for i, name := range t.policy.Spec.Pool.Devices {
		if shape[i] > 0 {
			texts = append(texts, fmt.Sprintf("%d %s", amounts[i], name))
		}
	}
	return strings.Join(texts, " and ")
}

// resumeDevices sets the placeholders of a group that is held already if they are for pods with devices.
func (t *Tracker) resumeDevices(group Group) {
	shape := devicesOf(group.Requests, t.policy.Spec.Pool.Devices)
	if shape == (deviceAmounts{}) || shape.groupName(t.policy.Name) != group.Name {
		return
	}
	held := &heldDevices{size: resources.CPUAndMemory(group.Requests)}
	held.count.Set(group.Count)
	t.devices[shape] = held
}
