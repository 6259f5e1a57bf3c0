package scaling

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/plimsoll-k8s/plimsoll/internal/autoscaler"
	"github.com/plimsoll-k8s/plimsoll/internal/format"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/generate"
)

// Spec describes an autoscaler.
type Spec struct {
	Groups []GroupSpec     `json:"groups"`
	Loop   autoscaler.Loop `json:"loop"`
	// IsPriced is set if the groups have a cost. Otherwise each node costs 1 per hour.
	IsPriced bool `json:"priced"`
	// CountsCPUs is set if each node costs as much as it has CPUs.
	CountsCPUs bool `json:"countsCPUs,omitempty"`
}

// GroupSpec describes a group of equal nodes.
type GroupSpec struct {
	// Name of the group, the value of a label of its nodes. The default is group-1, group-2 and so on.
	Name string `json:"name"`
	// Shape of the nodes. If it is zero, they are copies of the most frequent node of
	// the input.
	Shape generate.NodeShape `json:"shape,omitzero"`
	// GPUModel of the nodes, empty without GPUs.
	GPUModel string `json:"gpu-model,omitempty"`
	// Label, KEY=VALUE, of the nodes. Nodes of the input with this label belong to the
	// group.
	Label string `json:"label,omitempty"`
	// AdoptOthers makes all schedulable nodes of the input that belong to no group, without the taint of the control plane, belong to the
	// group. They cost in proportion to their size.
	AdoptOthers bool `json:"adoptOthers,omitempty"`
	// Min and Max are bounds of the number of nodes.
	Min int `json:"min" range:"0,100000"`
	Max int `json:"max" range:"0,100000"`
	// Boot is the time until a new node is ready, in seconds.
	Boot int64 `json:"boot" range:"0,86400"`
	// Cost of a node per hour.
	Cost float64 `json:"cost" range:"0,1000000"`
}

// Fits reports whether the nodes of a group have the CPU and memory that a pod requests.
func (s Spec) Fits(requests resources.Amounts) bool {
	return slices.ContainsFunc(s.Groups, func(g GroupSpec) bool {
		isLike := g.Shape.Cores == 0 // a recorded node
		return isLike || requests.CPU <= int64(g.Shape.Cores)*1000 && requests.Memory <= int64(g.Shape.GiB)<<30
	})
}

// Cluster Autoscaler has no default for boot and max. Cloud providers boot a machine in one to three minutes.
const (
	defaultBoot = 120
	defaultMax  = 1000
)

const (
	maxGroups = 100
	maxName   = 40
)

// loopKeys are the keys that apply to all groups.
var loopKeys = []string{"interval", "idle", "after-add", "utilization"}

// Parse parses the groups of an autoscaler, one text each with the keys of GroupSpec, and gpus, the whole devices of a node. One of the
// texts may also have the keys of autoscaler.Loop, which apply to all groups.
func Parse(texts []string) (Spec, error) {
	s := Spec{Loop: autoscaler.DefaultLoop}
	if len(texts) > maxGroups {
		return s, fmt.Errorf("found %d groups: must be at most %d", len(texts), maxGroups)
	}
	loopKeysSeen := map[string]bool{}
	for i, text := range texts {
		group := struct {
			GroupSpec
			*autoscaler.Loop
			GPUs int `json:"gpus" range:"0,1000"`
		}{GroupSpec: GroupSpec{Name: fmt.Sprintf("group-%d", i+1), Boot: defaultBoot, Cost: 1}, Loop: &s.Loop}
		set, err := resources.DecodePairs(text, &group)
		if err != nil {
			return s, err
		}
		g, priced := group.GroupSpec, set["cost"] != nil
		if set["max"] == nil {
			g.Max = max(defaultMax, g.Min)
		}
		for _, key := range loopKeys {
			if set[key] == nil {
				continue
			}
			if loopKeysSeen[key] {
				return s, format.InvalidValue(key, set[key], "set in one of the groups only")
			}
			loopKeysSeen[key] = true
		}
		switch {
		case i > 0 && priced != s.IsPriced:
			return s, errors.New("cost: must be set for all groups or for none")
		case slices.ContainsFunc(s.Groups, func(other GroupSpec) bool { return other.Name == g.Name }):
			return s, format.InvalidValue("name", g.Name, "unique among the groups")
		case group.GPUs > 0 && (g.Shape.Cores == 0 || g.Shape.GPUs > 0):
			return s, format.InvalidValue("gpus", group.GPUs, "0 without a shape, or with a shape that has GPUs")
		}
		g.Shape.GPUs += group.GPUs
		if err := g.validate(); err != nil {
			return s, err
		}
		s.Groups, s.IsPriced = append(s.Groups, g), priced
	}
	return s, nil
}

// validate returns an error for invalid texts and for fields that exclude each other.
func (g *GroupSpec) validate() error {
	key, value, isPair := strings.Cut(g.Label, "=")
	isLabel := isPair && len(validation.IsQualifiedName(key))+len(validation.IsValidLabelValue(value)) == 0
	switch {
	case len(g.Name) > maxName || len(validation.IsDNS1123Label(g.Name)) > 0:
		return format.InvalidValue("name", g.Name, "up to 40 characters a-z, 0-9 and -, starting and ending with a letter or digit")
	case g.Max < g.Min:
		return format.InvalidValue("max", g.Max, fmt.Sprintf("at least min, %d", g.Min))
	case g.Label != "" && !isLabel:
		return format.InvalidValue("label", g.Label, "a label KEY=VALUE")
	case g.GPUModel != "" && (g.Shape.GPUs == 0 || len(validation.IsValidLabelValue(g.GPUModel)) > 0):
		return format.InvalidValue("gpu-model", g.GPUModel, "a label value, together with gpus")
	}
	return nil
}

// Texts returns the complete specification, a text for each group, from which Parse
// returns an equal Spec. The keys that apply to all groups are in the first text.
func (s Spec) Texts() []string {
	texts, loop := make([]string, len(s.Groups)), s.Loop
	for i, g := range s.Groups {
		text := "name=" + g.Name
		add := func(isSet bool, format string, values ...any) {
			if isSet {
				text += fmt.Sprintf(format, values...)
			}
		}
		add(g.Shape.Cores > 0, ",shape=%dx%d", g.Shape.Cores, g.Shape.GiB)
		add(g.Shape.GPUs > 0, ",gpus=%d", g.Shape.GPUs)
		add(g.GPUModel != "", ",gpu-model=%s", g.GPUModel)
		add(g.Label != "", ",label=%s", g.Label)
		add(true, ",min=%d,max=%d,boot=%d", g.Min, g.Max, g.Boot)
		add(s.IsPriced, ",cost=%v", g.Cost)
		add(i == 0, ",interval=%d,idle=%d,after-add=%d,utilization=%v", loop.Interval, loop.Idle, loop.AfterAdd, loop.Utilization)
		texts[i] = text
	}
	return texts
}
