package slack

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/format"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// addMirrors appends the groups that mirror workloads to a plan, in a fixed order, as far as the maximums of
// the policy permit.
func (t *Tracker) addMirrors(p *Plan) {
	workloads := slices.SortedStableFunc(slices.Values(t.workloads), Workload.compare)
	spec, selector := &t.policy.Spec.Mirrors, namespaceSelectorOf(t.policy)
	perWorkload, perNamespace := int64(*spec.MaxPerWorkload), int64(*spec.MaxPerNamespace)
	var unselected []string
	var mirrors []mirror
	counts, used := map[string]*mirrorCount{}, map[string]int64{} // by name of the group, by namespace
	for i := range workloads {
		w := &workloads[i]
		if !w.isSelected(selector) {
			unselected = append(unselected, w.String())
			continue
		}
		wanted, err := w.Placeholders()
		if err == nil {
			err = w.checkSize()
		}
		if err != nil {
			p.MirrorsFeasible = false
			p.MirrorReasons = append(p.MirrorReasons, err.Error())
			continue
		}
		m := mirror{workload: w, wanted: wanted}
		most, cause := perWorkload, fmt.Sprintf("spec.mirrors.maxPerWorkload permits %d", perWorkload)
		count := t.mirrorCountOf(w, min(wanted, most))
		counts[w.groupName()] = count
		m.held, m.coolDownEnd = count.Next(min(wanted, most), t.now, isMore)
		if left := perNamespace - used[w.Namespace]; left < most {
			most, cause = left, fmt.Sprintf("spec.mirrors.maxPerNamespace permits %d more in namespace %s", left, w.Namespace)
		}
		m.permitted, m.cause = min(m.held, most), cause
		used[w.Namespace] += m.permitted
		mirrors = append(mirrors, m)
	}
	t.mirrors = counts // there is no cool-down for workloads that are no longer mirrored
	shares := fairShares(used, max(0, int64(*t.policy.Spec.MaxPlaceholders)-p.placeholders()))
	for i := range mirrors {
		m := &mirrors[i]
		share := shares[m.workload.Namespace]
		if m.placed = min(m.permitted, share); m.placed < m.permitted {
			m.cause = fmt.Sprintf("maxPlaceholders permits %d more in namespace %s", share, m.workload.Namespace)
		}
		shares[m.workload.Namespace] -= m.placed
		t.addMirror(p, m)
	}
	if len(unselected) > 0 {
		p.MirrorReasons = append(p.MirrorReasons, fmt.Sprintf("%s with annotation %s %s in namespaces that "+
			"spec.mirrors.namespaceSelector does not select: %s", format.Of(len(unselected), "workload"), v1alpha1.AnnotationSlack,
			format.Form(len(unselected), "is", "are"), format.Abbreviate(unselected, maxNames, ", ")))
	}
}

// mirrorCountOf returns the count of a workload. A changed annotation sets it to the wanted number.
func (t *Tracker) mirrorCountOf(w *Workload, wanted int64) *mirrorCount {
	count := t.mirrors[w.groupName()]
	if count == nil {
		return &mirrorCount{annotation: w.Slack}
	}
	if count.annotation != "" && count.annotation != w.Slack { // it is empty after Resume
		count.Set(wanted)
	}
	count.annotation = w.Slack
	return count
}

// mirror is the numbers of placeholders of one workload.
type mirror struct {
	workload *Workload
	// wanted is the number that the workload requests, held the number during a cool-down, permitted the number that
	// the limits per workload and namespace permit, and placed the number that maxPlaceholders permits, too.
	wanted, held, permitted, placed int64
	// cause is the limit that permits the fewest.
	cause string
	// coolDownEnd is the end of the cool-down in seconds, 0 if there is none.
	coolDownEnd int64
}

// addMirror appends the group of a mirror, and the reasons if its number is not the wanted number.
func (t *Tracker) addMirror(p *Plan, m *mirror) {
	w := m.workload
	if m.placed < m.wanted {
		p.MirrorsFeasible = false
		p.MirrorReasons = append(p.MirrorReasons, fmt.Sprintf("%s requires %s, %s", w, format.Of(m.wanted, "placeholder"), m.cause))
	}
	if m.held > m.wanted && m.placed > m.wanted && m.coolDownEnd != 0 {
		p.MirrorReasons = append(p.MirrorReasons, fmt.Sprintf("%s requires %s, %d are held until %s",
			w, format.Of(m.wanted, "placeholder"), m.held, t.wallTime(m.coolDownEnd)))
	}
	if m.placed == 0 {
		return
	}
	if dropped := w.droppedClaims(); dropped != "" {
		p.MirrorReasons = append(p.MirrorReasons, fmt.Sprintf("%s: its placeholders are not bound to the nodes and zones of its %s, "+
			"which they do not have", w, dropped))
	}
	group := Group{Name: w.groupName(), Requests: resources.RequestsOfTemplate(&w.Template.Spec), Count: m.placed, Mirror: w}
	p.Groups = append(p.Groups, group)
	p.Total = addTimes(p.Total, group.Requests, group.Count)
}

// fairShares distributes a number among namespaces: none gets more than it demands, and none less than
// another one unless it demands less. The indivisible remainder goes to the namespaces with the highest
// demand, then to the last by name.
func fairShares(demands map[string]int64, number int64) map[string]int64 {
	names := slices.SortedFunc(maps.Keys(demands), func(a, b string) int {
		return cmp.Or(cmp.Compare(demands[a], demands[b]), strings.Compare(a, b))
	})
	shares := make(map[string]int64, len(demands))
	for i, name := range names {
		share := min(demands[name], number/int64(len(names)-i))
		shares[name] = share
		number -= share
	}
	return shares
}

// maxTemplateSize is the maximum number of parts of the template of a workload that is mirrored.
const maxTemplateSize = 250

// checkSize returns an error if the template has so many containers, tolerations or terms of affinity that comparing them with
// all nodes would delay other workloads.
func (w *Workload) checkSize() error {
	if size := templateSize(&w.Template); size > maxTemplateSize {
		return fmt.Errorf("%s: the pod template has %d labels, containers, ports, resources, tolerations and terms of affinity: "+
			"at most %d are mirrored", w, size, maxTemplateSize)
	}
	return nil
}

// templateSize returns the number of the parts of a template that take time when it is compared with nodes.
func templateSize(template *v1.PodTemplateSpec) int {
	spec := &template.Spec
	size := len(template.Labels) + len(spec.NodeSelector) + len(spec.Tolerations)
	for _, containers := range [][]v1.Container{spec.Containers, spec.InitContainers} {
		for i := range containers {
			c := &containers[i]
			size += 1 + len(c.Ports) + len(c.Resources.Requests) + len(c.Resources.Limits)
		}
	}
	if spec.Affinity == nil {
		return size
	}
	if a := spec.Affinity.NodeAffinity; a != nil && a.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		for _, term := range a.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
			for _, requirement := range slices.Concat(term.MatchExpressions, term.MatchFields) {
				size += 1 + len(requirement.Values)
			}
			size++
		}
	}
	if a := spec.Affinity.PodAntiAffinity; a != nil {
		for _, term := range a.RequiredDuringSchedulingIgnoredDuringExecution {
			size += 1 + len(term.Namespaces)
			if term.LabelSelector != nil {
				size += len(term.LabelSelector.MatchLabels)
				for _, requirement := range term.LabelSelector.MatchExpressions {
					size += 1 + len(requirement.Values)
				}
			}
		}
	}
	return size
}

// droppedClaims returns a description of the claims of the workload's pods that its mirrors do not have
// and that may restrict the nodes, empty if there are none.
func (w *Workload) droppedClaims() string {
	var parts, claims []string
	volumes, spec := slices.Clone(w.VolumeClaimTemplates), &w.Template.Spec
	for _, volume := range spec.Volumes {
		if volume.PersistentVolumeClaim != nil || volume.Ephemeral != nil || volume.CSI != nil {
			volumes = append(volumes, volume.Name)
		}
	}
	for _, claim := range spec.ResourceClaims {
		claims = append(claims, claim.Name)
	}
	if len(volumes) > 0 {
		parts = append(parts, "volumes ("+format.Abbreviate(volumes, maxNames, ", ")+")")
	}
	if len(claims) > 0 {
		parts = append(parts, "resource claims ("+format.Abbreviate(claims, maxNames, ", ")+")")
	}
	return strings.Join(parts, " and ")
}

// maxNames is the number of names in a reason.
const maxNames = 3
