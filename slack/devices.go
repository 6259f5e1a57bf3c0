package slack

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"iter"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

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

// firstDevice returns the index of the first of the devices with an amount.
func firstDevice(devices []string, amounts resources.ExtendedAmounts) int {
	return slices.IndexFunc(devices, func(name string) bool { return amounts.Get(v1.ResourceName(name)) > 0 })
}

// sortedDevices returns amounts of devices ordered by their first device and then by the amount of each.
func sortedDevices(devices []string, amounts iter.Seq[resources.ExtendedAmounts]) []resources.ExtendedAmounts {
	return slices.SortedFunc(amounts, func(a, b resources.ExtendedAmounts) int {
		order := cmp.Compare(firstDevice(devices, a), firstDevice(devices, b))
		for _, name := range devices {
			order = cmp.Or(order, cmp.Compare(a.Get(v1.ResourceName(name)), b.Get(v1.ResourceName(name))))
		}
		return order
	})
}

// mergedDevicePods returns the pods with devices by the amounts of the devices: at most maxDeviceShapes with the same first device. The
// smallest amounts beyond are merged into the next larger ones, which then have the higher amount of each device.
func (l *poolLedger) mergedDevicePods() map[resources.ExtendedAmounts]devicePods {
	merged := maps.Clone(l.devicePods)
	shapes := sortedDevices(l.devices, maps.Keys(merged))
	for i, shape := range shapes {
		last := i + maxDeviceShapes
		if last >= len(shapes) || firstDevice(l.devices, shapes[last]) != firstDevice(l.devices, shape) || shapes[i+1] == shape {
			continue
		}
		larger := resources.Amounts{Extended: shape}.Max(resources.Amounts{Extended: shapes[i+1]}).Extended
		sum := devicePods{}
		for _, part := range sets.New(shape, shapes[i+1], larger).UnsortedList() {
			sum = devicePods{sum.pods + merged[part].pods, sum.requests.Add(merged[part].requests)}
			delete(merged, part)
		}
		shapes[i+1], merged[larger] = larger, sum
	}
	return merged
}

// fits reports whether a usable node fits a size. It also returns the node with the highest amount of the first device.
func (l *poolLedger) fits(size resources.Amounts) (fits bool, largest resources.Amounts) {
	first := resources.NewResource(v1.ResourceName(l.devices[firstDevice(l.devices, size.Extended)]))
	for node := range l.nodeShapes {
		fits = fits || size.FitsIn(node)
		if cmp.Or(cmp.Compare(largest.Get(first), node.Get(first)), largest.Compare(node)) < 0 {
			largest = node
		}
	}
	return fits, largest
}

// addDevices appends the groups of placeholders for pods with devices, as far as maxPlaceholders permits. For n pods with equal
// devices and requests S:
//
//	count = rate x n, rounded up
//	size  = the devices, S / n, rounded up
//
// The sum is therefore at least rate x S in each resource. A changed policy takes effect at once.
func (t *Tracker) addDevices(p *Plan, changed bool) {
	pods := t.ledger.mergedDevicePods()
	for shape := range pods {
		if t.devices[shape] == nil {
			t.devices[shape] = &heldDevices{size: resources.Amounts{Extended: shape}}
		}
	}
	for _, shape := range sortedDevices(t.policy.Spec.Pool.Devices, maps.Keys(t.devices)) {
		held, wanted, text := t.devices[shape], int64(0), t.deviceText(shape, shape)
		if !p.NoNodes {
			wanted = t.nextDevices(p, held, pods[shape], changed)
		}
		left := max(0, int64(*t.policy.Spec.MaxPlaceholders)-p.placeholders())
		if wanted > left {
			p.fail("%s required with %s, maxPlaceholders leaves %d", format.Are(uint64(wanted), "placeholder"), text, left)
		}
		if count := min(held.count.Current(), left); count > 0 {
			group := Group{Name: t.deviceGroupName(shape), Devices: text, Requests: listOf(held.size), Count: count}
			p.Groups = append(p.Groups, group)
			p.Total = addTimes(p.Total, group.Requests, count)
		}
	}
	maps.DeleteFunc(t.devices, func(_ resources.ExtendedAmounts, held *heldDevices) bool { return held.count.Current() == 0 })
}

// nextDevices updates the placeholders for pods with equal devices, and returns how many are wanted.
func (t *Tracker) nextDevices(p *Plan, held *heldDevices, pods devicePods, changed bool) (count int64) {
	if pods.pods > 0 {
		rate := t.schedule.policy.Rate
		count = resources.MulDivUp(pods.pods, rate, resources.Millionth)
		p.Base = addTimes(p.Base, listOf(pods.requests), 1)
		p.Target = addTimes(p.Target, listOf(pods.requests.Share(rate)), 1)
		size := pods.requests.DivideUp(pods.pods)
		size.Extended = held.size.Extended
		if fits, _ := t.ledger.fits(held.size); !fits || !size.FitsIn(held.size) || hasDrifted(size, held.size) {
			// Size that grows does so by a tenth more: each further pod may change the mean.
			larger := size.Add(size.DivideUp(10))
			larger.Extended = size.Extended
			if fits, _ := t.ledger.fits(larger); fits && held.count.Current() > 0 && !size.FitsIn(held.size) {
				size = larger
			}
			held.size = size
		}
	}
	if fits, largest := t.ledger.fits(held.size); !fits {
		if shape := held.size.Extended; count > 0 {
			p.fail("a placeholder with %s, %s does not fit any usable node of the pool: the node with the most has %s, %s",
				t.deviceText(shape, shape), held.size, t.deviceText(shape, largest.Extended), largest)
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

// deviceGroupName returns the name of the placeholders with amounts of devices, which is unique among the groups of all policies.
func (t *Tracker) deviceGroupName(shape resources.ExtendedAmounts) string {
	devices := t.policy.Spec.Pool.Devices
	i := firstDevice(devices, shape)
	first := v1.ResourceName(devices[i])
	suffix := fmt.Sprintf("-d%d-%d", i+1, shape.Get(first))
	if !shape.With(first, 0).IsZero() || len(suffix) > maxDeviceSuffix {
		hash := fnv.New32a()
		fmt.Fprint(hash, t.deviceText(shape, shape))
		suffix = fmt.Sprintf("-d-%08x", hash.Sum32())
	}
	return t.policy.Name + suffix
}

// deviceText returns the amounts of the devices of a shape as a text such as "2 nvidia.com/gpu".
func (t *Tracker) deviceText(shape, amounts resources.ExtendedAmounts) string {
	var texts []string
	for _, name := range t.policy.Spec.Pool.Devices {
		if shape.Get(v1.ResourceName(name)) > 0 {
			texts = append(texts, fmt.Sprintf("%d %s", amounts.Get(v1.ResourceName(name)), name))
		}
	}
	return strings.Join(texts, " and ")
}

// resumeDevices sets the placeholders of a group that is held already if they are for pods with devices.
func (t *Tracker) resumeDevices(group Group) {
	size := amountsOf(group.Requests, t.policy.Spec.Pool.Devices)
	if size.Extended.IsZero() || t.deviceGroupName(size.Extended) != group.Name {
		return
	}
	held := &heldDevices{size: size}
	held.count.Set(group.Count)
	t.devices[size.Extended] = held
}
