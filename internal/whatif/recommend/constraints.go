package recommend

import (
	"encoding/json"
	"fmt"
	"math"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/kubernetes/pkg/apis/core/v1/helper/qos"
	"sigs.k8s.io/yaml"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording/kinds"
)

// Reasons for which workloads keep requests, or keep them within bounds.
const (
	reasonShort     = "because less than a day of use, or fewer than 100 readings, are recorded"
	reasonTooLarge  = "because no node has as much as these requests would be"
	reasonUpdated   = "because a VerticalPodAutoscaler updates them"
	reasonExclusive = "because Guaranteed pods with whole CPUs may have these CPUs for themselves"
	reasonManaged   = "of %s because another controller, such as KEDA, manages the HorizontalPodAutoscaler that divides use by them"
	reasonUntyped   = "of %s because a HorizontalPodAutoscaler divides use by them, which was recorded from Prometheus and cannot be patched"
	reasonNoRequest = "of %s because a HorizontalPodAutoscaler divides use by them, and a container has none"
	reasonNearLimit = "of %s because the pods are Guaranteed and came near their limits"
	reasonConflict  = "of %s because the LimitRanges and ResourceQuotas of the namespace allow no other"
	reasonEnough    = "because changes of them would save less than 2 %"
	reasonBounds    = "within the LimitRanges and ResourceQuotas of the namespace"
)

// nearLimit is the use as a fraction of the limit up to which the limits of Guaranteed pods follow their requests: the maximum and 15 %.
const nearLimit = 1 / 1.15

// minChange is the change of a request, as a fraction, below which it is kept: a change restarts pods.
const minChange = 0.05

// constraints are the objects of a recording that act on requests.
type constraints struct {
	// scalers and updaters are by the object with the template of the pods.
	scalers  map[resources.Workload][]*autoscalingv2.HorizontalPodAutoscaler
	updaters map[resources.Workload][]*kinds.VerticalPodAutoscaler
	// limits and quotas are by namespace.
	limits map[string][]v1.LimitRangeItem
	quotas map[string][]*v1.ResourceQuota
}

// newConstraints returns the constraints of a recording.
func newConstraints(r *recording.Recording) (*constraints, error) {
	c := &constraints{
		scalers:  map[resources.Workload][]*autoscalingv2.HorizontalPodAutoscaler{},
		updaters: map[resources.Workload][]*kinds.VerticalPodAutoscaler{},
		limits:   map[string][]v1.LimitRangeItem{}, quotas: map[string][]*v1.ResourceQuota{},
	}
	for _, object := range r.Objects {
		if object.Kind == nil || object.Kind.Area != kinds.AreaRequests {
			continue
		}
		if err := c.add(object); err != nil {
			return nil, fmt.Errorf("--recording: %s: %w", object, err)
		}
	}
	return c, nil
}

// add adds an object.
func (c *constraints) add(object kinds.Object) error {
	var (
		scaler  autoscalingv2.HorizontalPodAutoscaler
		updater kinds.VerticalPodAutoscaler
		limits  v1.LimitRange
		quota   v1.ResourceQuota
	)
	into := map[string]metav1.Object{
		"HorizontalPodAutoscaler": &scaler, "VerticalPodAutoscaler": &updater, "LimitRange": &limits, "ResourceQuota": &quota,
	}[object.Kind.Kind]
	err := resources.CheckQuantities(object.JSON)
	if err == nil {
		err = json.Unmarshal(object.JSON, into)
	}
	if err != nil {
		return err
	}
	if name := into.GetName(); len(validation.IsDNS1123Subdomain(name)) > 0 { // it is in commands
		return fmt.Errorf("metadata.name: invalid value %q", name)
	}
	switch into {
	case &scaler:
		w := resources.Workload{Namespace: scaler.Namespace, Kind: scaler.Spec.ScaleTargetRef.Kind, Name: scaler.Spec.ScaleTargetRef.Name}
		c.scalers[w] = append(c.scalers[w], &scaler)
	case &updater:
		w := resources.Workload{Namespace: updater.Namespace, Kind: updater.Spec.TargetRef.Kind, Name: updater.Spec.TargetRef.Name}
		c.updaters[w] = append(c.updaters[w], &updater)
	case &limits:
		c.limits[limits.Namespace] = append(c.limits[limits.Namespace], limits.Spec.Limits...)
	default:
		c.quotas[quota.Namespace] = append(c.quotas[quota.Namespace], &quota)
	}
	return nil
}

// keepsAll returns why a workload keeps all requests, and its name, or an empty reason.
func (c *constraints) keepsAll(u *workloadUse) (reason, name string) {
	if u.seconds < minUse || u.readings < minReadings {
		return reasonShort, u.text()
	}
	for _, updater := range c.updaters[u.templateOwner()] {
		if mode := updater.Spec.UpdatePolicy.UpdateMode; mode != "Off" && mode != "Initial" {
			return reasonUpdated, u.text() + " by " + updater.Name
		}
	}
	for i := range u.pod.Spec.Containers {
		cpu := resources.CPUResource.Amount(u.pod.Spec.Containers[i].Resources.Requests[v1.ResourceCPU])
		if u.isGuaranteed() && cpu > 0 && cpu%1000 == 0 {
			return reasonExclusive, u.text()
		}
	}
	return "", ""
}

// isGuaranteed reports whether the pods of the workload have the class Guaranteed.
func (u *workloadUse) isGuaranteed() bool { return qos.GetPodQOS(u.pod) == v1.PodQOSGuaranteed }

// allowance is what a workload may request of a resource.
type allowance struct {
	resources.Resource
	// reason is why the request is kept, empty if it may change.
	reason string
	// before is the request of a pod. The next one is from low to high, both from LimitRanges; that of a Guaranteed pod is at least
	// follow, with which its limit is not near its use. No memory request is below floor, the median of the daily peaks.
	before, low, high, follow, floor int64
	// left is what the quotas of the namespace leave for all pods.
	left int64
}

// allowanceFor returns what a workload may request of a resource.
func (c *constraints) allowanceFor(u *workloadUse, r resources.Resource) allowance {
	a := allowance{Resource: r, high: math.MaxInt64, left: math.MaxInt64}
	a.before, _ = requested(u.pod, r, "")
	c.readLimits(&a, u)
	c.readQuotas(&a, u)
	if used := map[v1.ResourceName]histogram{v1.ResourceCPU: u.cpu, v1.ResourceMemory: u.memory}[r.Name()]; u.isGuaranteed() {
		a.follow = int64(math.Ceil(used.quantile(1) / nearLimit))
	}
	if r == resources.MemoryResource {
		a.floor = int64(math.Ceil(u.peaks.quantile(0.5)))
	}
	switch {
	case max(a.low, a.floor) > a.high:
		a.reason = reasonConflict
	case a.follow > min(a.before, a.high):
		a.reason = reasonNearLimit
	}
	for _, scaler := range c.scalers[u.templateOwner()] {
		for i := range scaler.Spec.Metrics {
			container, target := utilizationOf(&scaler.Spec.Metrics[i], r)
			if target == nil {
				continue
			}
			if _, ok := requested(u.pod, r, container); !ok {
				a.reason = reasonNoRequest
			}
			switch {
			case metav1.GetControllerOfNoCopy(scaler) != nil:
				a.reason = reasonManaged
			case scaler.Spec.Metrics[i].Type == "":
				a.reason = reasonUntyped
			}
		}
	}
	return a
}

// requested returns what the containers of a pod that run at the same time request, or one of them if it has a name, as the controller of
// HorizontalPodAutoscalers computes it. It returns false if a container has no request.
func requested(pod *v1.Pod, r resources.Resource, container string) (sum int64, ok bool) {
	if all := pod.Spec.Resources; all != nil && container == "" {
		if quantity, ok := all.Requests[r.Name()]; ok {
			return r.Amount(quantity), true
		}
	}
	found, ok := false, true
	for _, c := range resources.RunningContainers(&pod.Spec) {
		if container == "" || container == c.Name {
			quantity, has := c.Resources.Requests[r.Name()]
			sum, ok, found = resources.Add(sum, r.Amount(quantity)), ok && has, true
		}
	}
	return sum, ok && found
}

// utilizationOf returns the target of a metric that divides the use of a resource by its request, and the container that it is limited to;
// nil for other metrics.
func utilizationOf(m *autoscalingv2.MetricSpec, r resources.Resource) (container string, target *autoscalingv2.MetricTarget) {
	var name v1.ResourceName
	switch {
	case m.Resource != nil:
		name, target = m.Resource.Name, &m.Resource.Target
	case m.ContainerResource != nil:
		name, container, target = m.ContainerResource.Name, m.ContainerResource.Container, &m.ContainerResource.Target
	}
	if name != r.Name() || target.AverageUtilization == nil {
		return "", nil
	}
	return container, target
}

// readLimits applies the LimitRanges of the namespace: low and high are found by bisection.
func (c *constraints) readLimits(a *allowance, u *workloadUse) {
	first := func(isTrue func(isLow, isHigh bool) bool) (high int64) {
		low, high := int64(0), int64(1<<50)
		for high-low > 1 {
			if middle := (low + high) / 2; isTrue(c.limited(a.Resource, u, middle)) {
				high = middle
			} else {
				low = middle
			}
		}
		return high
	}
	if len(c.limits[u.Namespace]) > 0 {
		a.low = first(func(isLow, _ bool) bool { return !isLow })
		a.high = first(func(_, isHigh bool) bool { return isHigh }) - 1
	}
}

// limited reports whether a request makes the pod, or a container that changes, too low or too high for a LimitRange.
func (c *constraints) limited(r resources.Resource, u *workloadUse, amount int64) (isLow, isHigh bool) {
	pod, before := recording.SetRequests(u.pod, amount, 0), recording.OwnContainers(u.pod)
	if r == resources.MemoryResource {
		pod = recording.SetRequests(u.pod, 0, amount)
	}
	for _, item := range c.limits[u.Namespace] {
		check := func(request, limit int64) {
			if ratio := item.MaxLimitRequestRatio[r.Name()]; !ratio.IsZero() {
				isLow = isLow || float64(request) < math.Ceil(float64(limit)/ratio.AsApproximateFloat64())
			}
			most := r.Amount(item.Max[r.Name()])
			isLow, isHigh = isLow || request < r.Amount(item.Min[r.Name()]), isHigh || most > 0 && request > most
		}
		if item.Type == v1.LimitTypePod {
			request, _ := requested(pod, r, "")
			sums := resources.NewPod(pod)
			check(request, sums.Get(r).Limit)
		}
		for i, container := range recording.OwnContainers(pod) {
			request := r.Amount(container.Resources.Requests[r.Name()])
			if item.Type == v1.LimitTypeContainer && request+r.Amount(before[i].Resources.Requests[r.Name()]) > 0 {
				check(request, r.Amount(container.Resources.Limits[r.Name()]))
			}
		}
	}
	return isLow, isHigh
}

// readQuotas applies the quotas of the namespace. Those with scopes count, too.
func (c *constraints) readQuotas(a *allowance, u *workloadUse) {
	pod := resources.NewPod(u.pod)
	for _, quota := range c.quotas[u.Namespace] {
		for key, hard := range quota.Status.Hard {
			if key == a.Name() || key == "requests."+a.Name() {
				a.left = min(a.left, max(a.Amount(hard)-a.Amount(quota.Status.Used[key]), 0))
			}
			if limit := pod.Get(a.Resource); key == "limits."+a.Name() && !limit.Unbounded {
				a.high = min(a.high, max(limit.Limit, a.before)) // so that the limit need not rise
			}
		}
	}
}

// request returns the request for an amount by a rule, 0 if it is kept, and whether it is another than the rule's because of LimitRanges or
// quotas. rising is by how much the pods of the namespace rise already.
func (a *allowance) request(amount int64, pods int, rising *int64) (request int64, isCut bool) {
	if a.reason != "" {
		return 0, false
	}
	wanted := max(amount, a.follow, a.floor)
	request = min(max(wanted, a.low), a.high)
	if rise := resources.Multiply(max(request-a.before, 0), int64(pods)); rise > a.left-*rising {
		request = min(request, a.before+(a.left-*rising)/int64(pods))
	}
	isCut = request != wanted
	if math.Abs(float64(request-a.before)) < minChange*float64(a.before) {
		return 0, isCut
	}
	*rising = resources.Add(*rising, resources.Multiply(max(request-a.before, 0), int64(pods)))
	return request, isCut
}

// released returns what a request releases, as a part of the amount of a node; 0 if it is kept.
func (a *allowance) released(request, node int64) float64 {
	if request == 0 {
		return 0
	}
	return float64(a.before-request) / float64(max(node, 1))
}

// scalerPatch returns the command and the patch of a HorizontalPodAutoscaler with which it scales a workload by the use at which it does
// now, whatever the requests that change. It returns no patch if it does not scale by the utilization of what changes.
func scalerPatch(scaler *autoscalingv2.HorizontalPodAutoscaler, w *recording.WorkloadRequests, pod *v1.Pod) (patch []byte, err error) {
	metrics, changes := scaler.DeepCopy().Spec.Metrics, false
	for i := range metrics {
		for r, amount := range map[resources.Resource]int64{resources.CPUResource: w.CPU, resources.MemoryResource: w.Memory} {
			container, target := utilizationOf(&metrics[i], r)
			if target == nil || amount == 0 {
				continue
			}
			before, _ := requested(pod, r, container)
			value := resource.NewQuantity(resources.MulDivUp(before, int64(*target.AverageUtilization), 100), resource.BinarySI)
			if r == resources.CPUResource {
				value = resource.NewMilliQuantity(value.Value(), resource.DecimalSI)
			}
			*target, changes = autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType, AverageValue: value}, true
		}
	}
	if !changes {
		return nil, nil
	}
	return yaml.Marshal(map[string]any{"spec": map[string]any{"metrics": metrics}})
}
