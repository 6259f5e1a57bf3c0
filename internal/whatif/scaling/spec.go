package scaling

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/plimsoll-k8s/plimsoll/internal/autoscaler"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
)

// Spec describes an autoscaler.
type Spec struct {
	Groups []GroupSpec     `json:"groups"`
	Loop   autoscaler.Loop `json:"loop"`
	// IsPriced is set if the groups have a cost. Otherwise each node costs 1 per hour.
	IsPriced bool `json:"priced"`
}

// GroupSpec describes a group of equal nodes.
type GroupSpec struct {
	// Name of the group, the value of a label of its nodes.
	Name string `json:"name"`
	// Shape of the nodes. If it is zero, they are copies of the most frequent node of
	// the input.
	Shape recording.NodeShape `json:"shape"`
	// GPUModel of the nodes, empty without GPUs.
	GPUModel string `json:"gpuModel,omitempty"`
	// Label, KEY=VALUE, of the nodes. Nodes of the input with this label belong to the
	// group.
	Label string `json:"label,omitempty"`
	// AdoptOthers makes all schedulable nodes of the input that belong to no group, except of the control plane, belong to the group. They
	// cost in proportion to their size.
	AdoptOthers bool `json:"adoptOthers,omitempty"`
	// Min and Max are bounds of the number of nodes.
	Min int `json:"min"`
	Max int `json:"max"`
	// Boot is the time until a new node is ready, in seconds.
	Boot int64 `json:"boot"`
	// Cost of a node per hour.
	Cost float64 `json:"cost"`
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

// Bounds of values.
const (
	maxGroups = 100
	maxNodes  = 100_000
	maxTime   = 24 * 3600
	maxCost   = 1e6
	maxName   = 40
)

// loopKeys are the keys that apply to all groups.
var loopKeys = []string{"interval", "idle", "after-add", "utilization"}

// Parse parses the groups of an autoscaler, one text each with the keys
//
//	name        of the group; group-1, group-2 and so on
//	shape       CORESxGIB of its nodes; default: shape of the most frequent node
//	gpus        whole devices, 0 to 1000; 0
//	gpu-model   of the GPUs
//	label       KEY=VALUE of its nodes; nodes of the input with it belong to the group
//	min, max    number of nodes, 0 to 100000; 0 and 1000
//	boot        seconds until a node is ready, 0 to 86400; 120
//	cost        of a node per hour, 0 to 1000000; 1
//
// One of the texts may also have the keys that apply to all groups:
//
//	interval    seconds between passes, 1 to 86400; 10
//	idle        seconds that a node must be unneeded before it is removed, 0 to 86400; 600
//	after-add   seconds without removal after a node was added, 0 to 86400; 600
//	utilization threshold below which a node can be unneeded, 0 to 1; 0.5
func Parse(texts []string) (Spec, error) {
	s := Spec{Loop: autoscaler.DefaultLoop}
	if len(texts) > maxGroups {
		return s, fmt.Errorf("found %d groups: must be at most %d", len(texts), maxGroups)
	}
	names, loopKeysSeen := map[string]bool{}, map[string]bool{}
	for i, text := range texts {
		fields, err := recording.ParseFields(text)
		if err != nil {
			return s, err
		}
		priced := fields.Has("cost")
		if i > 0 && priced != s.IsPriced {
			fields.Fail("cost", fields.Text("cost", ""), "set for all groups or for none")
		}
		s.IsPriced = priced
		s.parseLoop(fields, loopKeysSeen)
		group := parseGroup(fields, i)
		if names[group.Name] {
			fields.Fail("name", group.Name, "unique among the groups")
		}
		names[group.Name] = true
		if err := fields.Err(); err != nil {
			return s, err
		}
		s.Groups = append(s.Groups, group)
	}
	return s, nil
}

// parseLoop parses the keys that apply to all groups. A key may be in one text only.
func (s *Spec) parseLoop(fields *recording.Fields, seen map[string]bool) {
	for _, key := range loopKeys {
		if fields.Has(key) && seen[key] {
			fields.Fail(key, fields.Text(key, ""), "set in one of the groups only")
		}
		seen[key] = seen[key] || fields.Has(key)
	}
	l := &s.Loop
	l.Interval = int64(fields.Int("interval", int(l.Interval), 1, maxTime))
	l.Idle = int64(fields.Int("idle", int(l.Idle), 0, maxTime))
	l.AfterAdd = int64(fields.Int("after-add", int(l.AfterAdd), 0, maxTime))
	l.Utilization = fields.Float("utilization", l.Utilization, 0, 1)
}

// parseGroup parses the keys of a group.
func parseGroup(fields *recording.Fields, number int) GroupSpec {
	g := GroupSpec{
		Name:     fields.Text("name", fmt.Sprintf("group-%d", number+1)),
		Shape:    parseShape(fields),
		GPUModel: fields.Text("gpu-model", ""),
		Label:    fields.Text("label", ""),
		Min:      fields.Int("min", 0, 0, maxNodes),
		Boot:     int64(fields.Int("boot", defaultBoot, 0, maxTime)),
		Cost:     fields.Float("cost", 1, 0, maxCost),
	}
	g.Max = fields.Int("max", max(defaultMax, g.Min), 0, maxNodes)
	key, value, isPair := strings.Cut(g.Label, "=")
	isLabel := isPair && len(validation.IsQualifiedName(key))+len(validation.IsValidLabelValue(value)) == 0
	switch {
	case len(g.Name) > maxName || len(validation.IsDNS1123Label(g.Name)) > 0:
		fields.Fail("name", g.Name, "up to 40 characters a-z, 0-9 and -, starting and ending with a letter or digit")
	case g.Max < g.Min:
		fields.Fail("max", strconv.Itoa(g.Max), fmt.Sprintf("at least min, %d", g.Min))
	case g.Label != "" && !isLabel:
		fields.Fail("label", g.Label, "a label KEY=VALUE")
	case g.GPUModel != "" && (g.Shape.GPUs == 0 || len(validation.IsValidLabelValue(g.GPUModel)) > 0):
		fields.Fail("gpu-model", g.GPUModel, "a label value, together with gpus")
	}
	return g
}

// parseShape parses the capacity of the nodes of a group.
func parseShape(fields *recording.Fields) recording.NodeShape {
	text := fields.Text("shape", "")
	gpus := fields.Int("gpus", 0, 0, 1000)
	if text == "" {
		if gpus > 0 {
			fields.Fail("gpus", strconv.Itoa(gpus), "0 without a shape")
		}
		return recording.NodeShape{}
	}
	shape, ok := recording.ParseNodeShape(text)
	if !ok || strings.Count(text, "x") > 1 {
		fields.Fail("shape", text, "CORESxGIB from 1x1 to 10000x131072")
	}
	shape.GPUs = gpus
	return shape
}

// Texts returns the complete specification, a text for each group, from which Parse
// returns an equal Spec. The keys that apply to all groups are in the first text.
func (s Spec) Texts() []string {
	texts := make([]string, len(s.Groups))
	for i := range s.Groups {
		g := &s.Groups[i]
		var b strings.Builder
		fmt.Fprintf(&b, "name=%s", g.Name)
		if g.Shape.Cores > 0 {
			fmt.Fprintf(&b, ",shape=%dx%d", g.Shape.Cores, g.Shape.GiB)
		}
		if g.Shape.GPUs > 0 {
			fmt.Fprintf(&b, ",gpus=%d", g.Shape.GPUs)
		}
		if g.GPUModel != "" {
			fmt.Fprintf(&b, ",gpu-model=%s", g.GPUModel)
		}
		if g.Label != "" {
			fmt.Fprintf(&b, ",label=%s", g.Label)
		}
		fmt.Fprintf(&b, ",min=%d,max=%d,boot=%d", g.Min, g.Max, g.Boot)
		if s.IsPriced {
			fmt.Fprintf(&b, ",cost=%s", strconv.FormatFloat(math.Abs(g.Cost), 'g', -1, 64))
		}
		if i == 0 {
			l := s.Loop
			fmt.Fprintf(&b, ",interval=%d,idle=%d,after-add=%d,utilization=%s", l.Interval, l.Idle, l.AfterAdd,
				strconv.FormatFloat(math.Abs(l.Utilization), 'g', -1, 64))
		}
		texts[i] = b.String()
	}
	return texts
}
