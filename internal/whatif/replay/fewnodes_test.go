package replay

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
)

// packedWorkload is a number of pods of one core each with one constraint: none, zone spread with a maximum skew, or anti-affinity
// between the pods by a topology key.
type packedWorkload struct {
	constraint string
	skew, pods int
}

// spec returns the spec of a pod in YAML.
func (w *packedWorkload) spec(name string) string {
	const containers = `containers: [{name: main, image: web, resources: {requests: {cpu: "1", memory: 1Gi}}}]`
	switch w.constraint {
	case "spread":
		return fmt.Sprintf("topologySpreadConstraints: [{maxSkew: %d, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: "+
			"DoNotSchedule, labelSelector: {matchLabels: {app: %s}}}], %s", w.skew, name, containers)
	case "":
		return containers
	}
	return fmt.Sprintf("affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: %s, "+
		"labelSelector: {matchLabels: {app: %s}}}]}}, %s", w.constraint, name, containers)
}

// packedNode is a node with a number of free cores, and pods of each workload.
type packedNode struct {
	zone, free int
	pods       []int
}

// packedState finds out whether pods can be placed, by trying all orders and nodes.
type packedState struct {
	workloads []packedWorkload
	nodes     []packedNode
	pending   []int
	failed    map[string]bool
}

func (s *packedState) canPlaceAll() bool {
	if slices.Max(s.pending) == 0 {
		return true
	}
	key := make([]byte, 0, 16)
	for _, node := range s.nodes {
		for _, pods := range node.pods {
			key = append(key, byte(pods))
		}
	}
	if s.failed[string(key)] {
		return false
	}
	for w := range s.pending {
		for n := range s.nodes {
			if node := &s.nodes[n]; node.free > 0 && s.pending[w] > 0 && s.permits(w, node) {
				s.move(w, node, 1)
				placed := s.canPlaceAll()
				if s.move(w, node, -1); placed {
					return true
				}
			}
		}
	}
	s.failed[string(key)] = true
	return false
}

// move places a pod of a workload on a node, or removes it.
func (s *packedState) move(w int, node *packedNode, n int) {
	s.pending[w] -= n
	node.pods[w] += n
	node.free -= n
}

// permits reports whether the constraint of a workload permits a pod on a node.
func (s *packedState) permits(w int, node *packedNode) bool {
	zones, fewest := [3]int{-1, -1, -1}, math.MaxInt // -1 is a zone without nodes
	for _, other := range s.nodes {
		zones[other.zone] = max(zones[other.zone], 0) + other.pods[w]
	}
	for _, pods := range zones {
		if pods >= 0 {
			fewest = min(fewest, pods)
		}
	}
	switch s.workloads[w].constraint {
	case "spread":
		if zones[node.zone]+1-fewest > s.workloads[w].skew {
			return false
		}
	case "topology.kubernetes.io/zone":
		if zones[node.zone] > 0 {
			return false
		}
	case "kubernetes.io/hostname":
		if node.pods[w] > 0 {
			return false
		}
	}
	return true
}

// fewestNodes returns the lowest number of nodes of groups, given by zone and cores, with which all pods can be placed, more than most
// if there is none.
func (s *packedState) fewestNodes(groups [][2]int, most int) int {
	existing := slices.Clone(s.nodes)
	var try func(left, from int) bool
	try = func(left, from int) bool {
		if left == 0 {
			cores, pods := 0, 0
			for _, node := range s.nodes {
				cores += node.free
			}
			for _, n := range s.pending {
				pods += n
			}
			s.failed = map[string]bool{}
			return cores >= pods && s.canPlaceAll()
		}
		for g := from; g < len(groups); g++ {
			s.nodes = append(s.nodes, packedNode{groups[g][0], groups[g][1], make([]int, len(s.workloads))})
			ok := try(left-1, g)
			if s.nodes = s.nodes[:len(s.nodes)-1]; ok {
				return true
			}
		}
		return false
	}
	for n := range most + 1 {
		if s.nodes = slices.Clone(existing); try(n, 0) {
			return n
		}
	}
	return most + 1
}

// TestFewNodesAreAdded compares the number of nodes that are added for pods that are spread over zones, exclude each other or are free,
// with the lowest number that is possible: of each group, at most one more is added, and one for each pod of a second workload whose pods
// exclude each other on nodes. There are one or two groups in each zone, and a node that running pods of the first workload fill.
func TestFewNodesAreAdded(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		zones := 3 - rapid.IntRange(0, 2).Draw(rt, "fewer zones")
		s := &packedState{}
		for i := range rapid.IntRange(1, 2).Draw(rt, "workloads") {
			w := packedWorkload{
				constraint: rapid.SampledFrom(
					[]string{"", "spread", "spread", "topology.kubernetes.io/zone", "kubernetes.io/hostname"},
				).Draw(rt, "constraint"),
				skew: rapid.IntRange(1, 2).Draw(rt, "skew"),
				pods: 12 - 9*i - rapid.IntRange(0, 8-7*i).Draw(rt, "fewer pods"),
			}
			if w.constraint == "topology.kubernetes.io/zone" {
				w.pods = min(w.pods, zones)
			}
			s.workloads, s.pending = append(s.workloads, w), append(s.pending, w.pods)
		}
		var groups [][2]int
		var specs []string
		var text strings.Builder
		for zone := range zones {
			for range rapid.IntRange(1, 2).Draw(rt, "groups") {
				cores := rapid.SampledFrom([]int{4, 2, 3}).Draw(rt, "cores")
				groups = append(groups, [2]int{zone, cores})
				specs = append(specs,
					fmt.Sprintf("name=g%d,shape=%dx64,boot=10,label=topology.kubernetes.io/zone=z%d", len(specs), cores, zone))
			}
		}
		for zone := range zones {
			node := packedNode{zone: zone, pods: make([]int, len(s.workloads))}
			if constraint := s.workloads[0].constraint; constraint == "" || constraint == "spread" {
				node.pods[0] = rapid.IntRange(0, 2).Draw(rt, "running pods")
			}
			fmt.Fprintf(&text, "apiVersion: v1\nkind: Node\nmetadata: {name: n%[1]d, labels: {kubernetes.io/hostname: n%[1]d, "+
				"topology.kubernetes.io/zone: z%[1]d}}\nstatus: {allocatable: {cpu: %[2]d, memory: 64Gi, pods: 110}}\n---\n", zone, node.pods[0])
			for i := range node.pods[0] {
				text.WriteString(podOn(fmt.Sprintf("r%d-%d", zone, i), fmt.Sprint("n", zone), "w0", s.workloads[0].spec("w0")))
			}
			s.nodes = append(s.nodes, node)
		}
		for w := range s.workloads {
			for i := range s.pending[w] {
				name := fmt.Sprint("w", w)
				text.WriteString(podOn(fmt.Sprintf("%s-%d", name, i), "", name, s.workloads[w].spec(name)))
			}
		}
		fewest := s.fewestNodes(groups, 6)
		if fewest > 6 {
			return // such as two pods of a core on nodes that exclude each other, of which one group is too small
		}
		// Pods of equal size are placed in their order, as by Cluster Autoscaler: pods of the first workload may fill the nodes before
		// pods of the second one that exclude each other. Each of the latter then gets a node of its own.
		late := 0
		if len(s.workloads) > 1 && s.workloads[1].constraint == "kubernetes.io/hostname" {
			late = s.workloads[1].pods
		}
		got, _ := runManifests(t, autoscalerConfig(t, specs...), text.String())
		if got.Unschedulable > 0 || got.Scaling.NodesAdded > fewest+len(groups)+late {
			rt.Fatalf("%d nodes are added, %d pods unschedulable %v, %d are enough\nworkloads %+v, groups %v, running %v",
				got.Scaling.NodesAdded, got.Unschedulable, got.Reasons, fewest, s.workloads, groups, s.nodes)
		}
	})
}

// TestSpreadPodsNeedFewNodes has three zones with a node of 4 cores each and a group each. Pods of 500m that are spread over the zones
// with a maximum skew of 1 to 4 fill the nodes: without the constraint, 24 of them fit on the three nodes, and the other ones need one
// node for each 8. The same for a policy that keeps 12 cores free in the zones.
func TestSpreadPodsNeedFewNodes(t *testing.T) {
	const half = `cpu: 500m, memory: 256Mi`
	for _, tc := range []struct {
		skew, pods int
		slack      string
		want       int
	}{{1, 48, "", 3}, {2, 48, "", 3}, {4, 48, "", 3}, {1, 120, "", 12}, {1, 24, "100%", 3}} {
		t.Run(fmt.Sprintf("maxSkew=%d,pods=%d,slack=%s", tc.skew, tc.pods, tc.slack), func(t *testing.T) {
			w := packedWorkload{constraint: "spread", skew: tc.skew}
			spec := strings.ReplaceAll(w.spec("web"), `cpu: "1", memory: 1Gi`, half)
			var text strings.Builder
			var groups []string
			for _, zone := range []string{"a", "b", "c"} {
				text.WriteString(strings.ReplaceAll(poolNode(zone), "pool: web", "topology.kubernetes.io/zone: "+zone))
				groups = append(groups, fmt.Sprintf("name=%s,shape=4x16,boot=60,label=topology.kubernetes.io/zone=%[1]s", zone))
			}
			for i := range tc.pods {
				text.WriteString(podOn(fmt.Sprint("web-", i), "", "web", spec))
			}
			config := autoscalerConfig(t, groups...)
			if tc.slack != "" {
				withSlack(config, tc.slack).Slack.Spec.Spread = &v1alpha1.Spread{TopologyKey: "topology.kubernetes.io/zone"}
				config.Slack.Spec.Default()
			}
			got, _ := runManifests(t, config, text.String())
			if got.Scaling.NodesAdded != tc.want || got.Unschedulable > 0 {
				t.Errorf("%d nodes are added, want %d; %d pods unschedulable", got.Scaling.NodesAdded, tc.want, got.Unschedulable)
			}
		})
	}
}
