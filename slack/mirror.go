package slack

import (
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/resource"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
)

// addMirrors appends the groups of workloads to a plan. count is told how many
// each one wants and returns how many it gets. What maxPlaceholders leaves after
// the rate goes to them in their order.
func (p *Plan) addMirrors(policy *v1alpha1.ResourceSlack, workloads []Workload, count func(w Workload, wanted int64) int64) {
	workloads = slices.SortedFunc(slices.Values(workloads), Workload.compare)
	left := int64(-1)
	if policy.Spec.MaxPlaceholders != nil {
		left = int64(*policy.Spec.MaxPlaceholders) - p.placeholders()
	}
	for i := range workloads {
		w := &workloads[i]
		wanted, err := w.Placeholders()
		if err != nil {
			p.Feasible = false
			p.Reasons = append(p.Reasons, err.Error())
			continue
		}
		group := Group{Name: w.groupName(), Requests: requestsOfTemplate(&w.Template), Count: count(*w, wanted), Mirror: w}
		if left >= 0 && group.Count > left {
			p.Feasible = false
			p.Reasons = append(p.Reasons, fmt.Sprintf("%s wants %d placeholders, maxPlaceholders leaves %d for it", w, group.Count, left))
			group.Count = left
		}
		if group.Count == 0 {
			continue
		}
		if left >= 0 {
			left -= group.Count
		}
		p.Groups = append(p.Groups, group)
		p.Total = plus(p.Total, group.Requests, group.Count)
	}
}

// placeholders returns how many there are.
func (p *Plan) placeholders() (sum int64) {
	for _, group := range p.Groups {
		sum += group.Count
	}
	return sum
}

// requestsOfTemplate returns what a pod of the template requests, of everything.
// The API server lets a limit be the request, too, where a container has none; it
// does so for pods, not for templates.
func requestsOfTemplate(template *v1.PodTemplateSpec) v1.ResourceList {
	spec := template.Spec.DeepCopy()
	for _, containers := range [][]v1.Container{spec.Containers, spec.InitContainers} {
		for i := range containers {
			limitsAreRequests(&containers[i].Resources)
		}
	}
	if spec.Resources != nil {
		limitsAreRequests(spec.Resources)
	}
	return resource.PodRequests(&v1.Pod{Spec: *spec}, resource.PodResourcesOptions{})
}

func limitsAreRequests(resources *v1.ResourceRequirements) {
	for name, limit := range resources.Limits {
		if _, ok := resources.Requests[name]; !ok {
			if resources.Requests == nil {
				resources.Requests = v1.ResourceList{}
			}
			resources.Requests[name] = limit
		}
	}
}

// mirrorTemplate returns a pod that is to a scheduler as those of the workload
// are: what it requests, where it may run and beside whom. It runs nothing of
// theirs, and shares nothing with them.
func mirrorTemplate(policy *v1alpha1.ResourceSlack, group Group) v1.PodTemplateSpec {
	theirs := group.Mirror.Template.DeepCopy()
	t := template(policy, Group{Name: group.Name, Requests: group.Requests})
	t.Labels = theirs.Labels
	if t.Labels == nil {
		t.Labels = map[string]string{}
	}
	t.Labels[PlaceholderLabel] = policy.Name
	container := &t.Spec.Containers[0]
	for name, quantity := range group.Requests {
		// Devices and huge pages are had whole or not at all.
		if name != v1.ResourceCPU && name != v1.ResourceMemory && name != v1.ResourceEphemeralStorage {
			if container.Resources.Limits == nil {
				container.Resources.Limits = v1.ResourceList{}
			}
			container.Resources.Limits[name] = quantity.DeepCopy()
		}
	}
	container.Ports = hostPorts(theirs)
	t.Spec.NodeSelector = theirs.Spec.NodeSelector
	t.Spec.Affinity = theirs.Spec.Affinity
	t.Spec.Tolerations = theirs.Spec.Tolerations
	t.Spec.TopologySpreadConstraints = theirs.Spec.TopologySpreadConstraints
	t.Spec.PriorityClassName = theirs.Spec.PriorityClassName
	return t
}

// hostPorts returns the ports by which pods keep each other off a node.
func hostPorts(template *v1.PodTemplateSpec) []v1.ContainerPort {
	var ports []v1.ContainerPort
	for _, container := range template.Spec.Containers {
		for _, port := range container.Ports {
			if template.Spec.HostNetwork && port.HostPort == 0 {
				port.HostPort = port.ContainerPort
			}
			if port.HostPort > 0 {
				ports = append(ports, v1.ContainerPort{ContainerPort: port.ContainerPort, HostPort: port.HostPort, HostIP: port.HostIP, Protocol: port.Protocol})
			}
		}
	}
	return ports
}

// seenFrom makes the terms of a pod's affinities that are about the pods of its
// own namespace be about those of both, for a placeholder in another one.
func seenFrom(affinity *v1.Affinity, own, placeholders string) {
	widen := func(term *v1.PodAffinityTerm) {
		if len(term.Namespaces) == 0 && term.NamespaceSelector == nil {
			term.Namespaces = []string{own}
		}
		if slices.Contains(term.Namespaces, own) && !slices.Contains(term.Namespaces, placeholders) {
			term.Namespaces = append(term.Namespaces, placeholders)
		}
	}
	var required [][]v1.PodAffinityTerm
	var preferred [][]v1.WeightedPodAffinityTerm
	if affinity != nil && affinity.PodAffinity != nil {
		required = append(required, affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution)
		preferred = append(preferred, affinity.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	if affinity != nil && affinity.PodAntiAffinity != nil {
		required = append(required, affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution)
		preferred = append(preferred, affinity.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	for _, terms := range required {
		for i := range terms {
			widen(&terms[i])
		}
	}
	for _, terms := range preferred {
		for i := range terms {
			widen(&terms[i].PodAffinityTerm)
		}
	}
}

// plus returns a list with n times another one added.
func plus(list, more v1.ResourceList, n int64) v1.ResourceList {
	sum := list.DeepCopy()
	if sum == nil {
		sum = v1.ResourceList{}
	}
	for name, quantity := range more {
		quantity = quantity.DeepCopy()
		quantity.Mul(n)
		if there, ok := sum[name]; ok {
			quantity.Add(there)
		}
		sum[name] = quantity
	}
	return sum
}
