package autoscale

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/plimsoll-k8s/plimsoll/internal/algo/spec"
)

// Spec is an autoscaler.
type Spec struct {
	Groups []GroupSpec `json:"groups"`
	Loop   Loop        `json:"loop"`
}

// GroupSpec is a group of equal nodes.
type GroupSpec struct {
	// Name of the group, which its nodes carry as a label.
	Name string `json:"name"`
	// Shape of the nodes. If it is the zero one, they are like the node of the input
	// of which there are most.
	Shape Shape `json:"shape"`
	// GPUModel is which devices they have, if they have any.
	GPUModel string `json:"gpuModel,omitempty"`
	// Label, KEY=VALUE, that the nodes carry, too. Nodes of the input that do are of
	// the group.
	Label string `json:"label,omitempty"`
	// Min and Max are how many nodes the group has.
	Min int `json:"min"`
	Max int `json:"max"`
	// Boot is how long a node takes to come up, in seconds.
	Boot int64 `json:"boot"`
	// Cost of a node per hour.
	Cost float64 `json:"cost"`
}

// Shape is what a node has.
type Shape struct {
	Cores int `json:"cores,omitempty"`
	GiB   int `json:"gib,omitempty"`
	GPUs  int `json:"gpus,omitempty"`
}

// Loop is how an autoscaler goes about its work.
type Loop struct {
	// Interval is how often it looks, in seconds.
	Interval int64 `json:"interval"`
	// Idle is how long nobody must have needed a node before it goes, in seconds.
	Idle int64 `json:"idle"`
	// AfterAdd is for how long no node goes after one was added, in seconds.
	AfterAdd int64 `json:"afterAdd"`
	// Utilization is the one under which a node may not be needed.
	Utilization float64 `json:"utilisation"`
	// Priced: groups say what their nodes cost. If none does, each node costs 1.
	Priced bool `json:"priced"`
}

// What an autoscaler does that is told nothing: Cluster Autoscaler's defaults of
// scan-interval, scale-down-unneeded-time, scale-down-delay-after-add and
// scale-down-utilization-threshold. It has none for the other two: how long machines
// take to boot depends on who makes them, one to three minutes at the usual ones.
const (
	defaultInterval    = 10
	defaultIdle        = 600
	defaultAfterAdd    = 600
	defaultUtilization = 0.5
	defaultBoot        = 120
	defaultMax         = 1000
)

// Bounds of what a text may say.
const (
	maxGroups = 100
	maxNodes  = 100_000
	maxTime   = 24 * 3600
	maxCost   = 1e6
)

// loopKeys are those that are about the autoscaler and not about a group.
var loopKeys = []string{"interval", "idle", "after-add", "utilisation"}

var (
	aName  = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?$`)
	aLabel = regexp.MustCompile(`^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?=([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$`)
	aModel = regexp.MustCompile(`^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$`)
)

// Parse reads texts, each of which is a group:
//
//	name        of the group; group-1, group-2 and so on
//	shape       CORESxGIB of its nodes; that of the node there are most of
//	gpus        whole devices, 0 to 1000; 0
//	gpu-model   of them
//	label       KEY=VALUE that its nodes carry; nodes of the input that do are its own
//	min, max    how many nodes, 0 to 100000; 0 and 1000
//	boot        seconds until a node is there, 0 to 86400; 120
//	cost        of a node per hour, 0 to 1000000; 1
//
// In one of them can be what is about the autoscaler as a whole:
//
//	interval    seconds from one look to the next, 1 to 86400; 10
//	idle        seconds that nobody needed a node before it goes, 0 to 86400; 600
//	after-add   seconds without any going after one was added, 0 to 86400; 600
//	utilisation under which a node may not be needed, 0 to 1; 0.5
func Parse(texts []string) (Spec, error) {
	s := Spec{Loop: Loop{Interval: defaultInterval, Idle: defaultIdle, AfterAdd: defaultAfterAdd, Utilization: defaultUtilization}}
	if len(texts) > maxGroups {
		return s, fmt.Errorf("found %d groups, allowed: %d", len(texts), maxGroups)
	}
	names, said := map[string]bool{}, map[string]bool{}
	for i, text := range texts {
		fields, err := spec.Parse(text)
		if err != nil {
			return s, err
		}
		priced := fields.Has("cost")
		if i > 0 && priced != s.Loop.Priced {
			fields.Fail("cost", fields.Text("cost", ""), "the cost of all groups or of none")
		}
		s.Loop.Priced = priced
		s.readLoop(fields, said)
		group := readGroup(fields, i)
		if names[group.Name] {
			fields.Fail("name", group.Name, "a name that no other group has")
		}
		names[group.Name] = true
		if err := fields.Err(); err != nil {
			return s, err
		}
		s.Groups = append(s.Groups, group)
	}
	return s, nil
}

// readLoop reads what is about the autoscaler as a whole. What was said before must
// not be said again.
func (s *Spec) readLoop(fields *spec.Fields, said map[string]bool) {
	for _, key := range loopKeys {
		if fields.Has(key) && said[key] {
			fields.Fail(key, fields.Text(key, ""), "the key in one of the groups")
		}
		said[key] = said[key] || fields.Has(key)
	}
	l := &s.Loop
	l.Interval = int64(fields.Int("interval", int(l.Interval), 1, maxTime))
	l.Idle = int64(fields.Int("idle", int(l.Idle), 0, maxTime))
	l.AfterAdd = int64(fields.Int("after-add", int(l.AfterAdd), 0, maxTime))
	l.Utilization = fields.Float("utilisation", l.Utilization, 0, 1)
}

// readGroup reads what is about a group.
func readGroup(fields *spec.Fields, number int) GroupSpec {
	g := GroupSpec{
		Name:     fields.Text("name", fmt.Sprintf("group-%d", number+1)),
		Shape:    readShape(fields),
		GPUModel: fields.Text("gpu-model", ""),
		Label:    fields.Text("label", ""),
		Min:      fields.Int("min", 0, 0, maxNodes),
		Boot:     int64(fields.Int("boot", defaultBoot, 0, maxTime)),
		Cost:     fields.Float("cost", 1, 0, maxCost),
	}
	g.Max = fields.Int("max", max(defaultMax, g.Min), 0, maxNodes)
	switch {
	case !aName.MatchString(g.Name):
		fields.Fail("name", g.Name, "up to 40 of a-z, 0-9 and -, with a letter or digit first and last")
	case g.Max < g.Min:
		fields.Fail("max", strconv.Itoa(g.Max), fmt.Sprintf("at least min, %d", g.Min))
	case g.Label != "" && !aLabel.MatchString(g.Label):
		fields.Fail("label", g.Label, "KEY=VALUE as of a label")
	case g.GPUModel != "" && (g.Shape.GPUs == 0 || !aModel.MatchString(g.GPUModel)):
		fields.Fail("gpu-model", g.GPUModel, "the value of a label, with gpus")
	}
	return g
}

// readShape reads what the nodes of a group have.
func readShape(fields *spec.Fields) Shape {
	text := fields.Text("shape", "")
	gpus := fields.Int("gpus", 0, 0, 1000)
	if text == "" {
		if gpus > 0 {
			fields.Fail("gpus", strconv.Itoa(gpus), "devices of a group with a shape")
		}
		return Shape{}
	}
	cores, gib, ok := strings.Cut(text, "x")
	c, err1 := strconv.Atoi(cores)
	g, err2 := strconv.Atoi(gib)
	if !ok || err1 != nil || err2 != nil || c < 1 || c > 10_000 || g < 1 || g > 1<<17 {
		fields.Fail("shape", text, "CORESxGIB from 1x1 to 10000x131072")
		return Shape{}
	}
	return Shape{c, g, gpus}
}

// Texts returns the autoscaler in full, a text for each group; what is about the
// autoscaler as a whole is in the first. Parse reads the same from them.
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
		if s.Loop.Priced {
			fmt.Fprintf(&b, ",cost=%s", strconv.FormatFloat(math.Abs(g.Cost), 'g', -1, 64))
		}
		if i == 0 {
			l := s.Loop
			fmt.Fprintf(&b, ",interval=%d,idle=%d,after-add=%d,utilisation=%s", l.Interval, l.Idle, l.AfterAdd, strconv.FormatFloat(math.Abs(l.Utilization), 'g', -1, 64))
		}
		texts[i] = b.String()
	}
	return texts
}
