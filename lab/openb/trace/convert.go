// Package trace reads the openb trace and converts it to a recording.
package trace

import (
	"cmp"
	"container/heap"
	"fmt"
	"os"
	"regexp"
	"slices"
	"time"

	"github.com/plimsoll-k8s/plimsoll/internal/manifest"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/generate"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
)

// Bounds of a trace. With them, sums over all nodes or pods cannot overflow.
const (
	maxNodes = 100_000
	maxPods  = 1_000_000
	// maxCPU is in millicores, maxMemory in bytes, and maxGPU in thousandths of a device.
	maxCPU    = 1_000_000_000
	maxMemory = 1 << 50
	maxGPU    = 1_000_000
	maxSecond = 1 << 32
	maxName   = 253
)

// validName matches a name of 1 to maxName letters, digits and . _ - = + / only.
var validName = regexp.MustCompile(fmt.Sprintf(`^[a-zA-Z0-9._=+/-]{1,%d}$`, maxName))

// tail is the time in seconds after the last arrival at which a recording ends.
const tail = 3600

// Options select the pods of a recording.
type Options struct {
	// PerSecond is the number of pods that arrive per second and do not end; 0 keeps the times of the trace.
	PerSecond int
	Limits    generate.Limits
	Seed      uint64
}

// Convert writes the recording of a trace, which is given by its files of nodes and of pods.
func Convert(nodeFile, podFile, out string, o Options) error {
	nodes, err := manifest.Open(nodeFile, readNodes)
	if err != nil {
		return err
	}
	pods, err := manifest.Open(podFile, readPods)
	if err != nil {
		return err
	}
	arrange(pods)
	r := convert(nodes, pods, o)
	file, err := os.Create(out)
	if err != nil {
		return err
	}
	if err := r.Write(file); err != nil {
		return err
	}
	return file.Close()
}

// convert returns the recording of nodes and pods.
func convert(nodes []recording.Node, pods []pod, o Options) *recording.Recording {
	c := generate.NewCluster{Nodes: nodes, Limits: o.Limits, Seed: o.Seed}
	addPods(&c, pods, o.PerSecond)
	from, last := time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC), int64(0)
	r := c.Recording()
	for i, node := range place(nodes, c.Pods) {
		r.Pods[i].Node = node
		last = max(last, c.Pods[i].Arrival)
	}
	r.About = recording.About{
		From: from, To: from.Add(time.Duration(last+tail) * time.Second), Step: 60, Sources: []string{"the openb trace"},
		Missing: []recording.Missing{
			{
				What: "workloads",
				Why:  "equal pods of which each arrives within an hour of the one before are one, batch jobs those of class BE",
			},
			{What: "the nodes of pods", Why: "the node with the least requested CPU"},
			{What: "limits and usage", Why: "not in the trace: limits are generated"},
			{What: "parts of GPUs", Why: "the GPUs of a node count as one device of which pods take parts"},
		},
	}
	return r
}

// addPods adds the pods of the trace. If podsPerSecond is not 0, as many pods arrive in each second and do not end, so that
// they fill the cluster.
func addPods(c *generate.NewCluster, pods []pod, podsPerSecond int) {
	for i := range pods {
		p := pods[i].NewPod
		if podsPerSecond > 0 {
			p.Arrival, p.Duration = int64(i/podsPerSecond), recording.Never
		}
		c.Pods = append(c.Pods, p)
	}
}

// placed is a pod on a node until it ends.
type placed struct {
	end  int64
	node int
	cpu  int64
}

// running has the running pods; the next to end is the first.
type running []placed

func (r running) Len() int           { return len(r) }
func (r running) Less(i, j int) bool { return r[i].end < r[j].end }
func (r running) Swap(i, j int)      { r[i], r[j] = r[j], r[i] }
func (r *running) Push(p any)        { *r = append(*r, p.(placed)) }
func (r *running) Pop() any {
	last := (*r)[len(*r)-1]
	*r = (*r)[:len(*r)-1]
	return last
}

// place returns the node of each pod, which are ordered by their arrival: of the nodes with a GPU model of the pod the one with the most
// CPU that is not requested, also if the pod does not fit.
func place(nodes []recording.Node, pods []generate.NewPod) []string {
	free := make([]int64, len(nodes))
	for i := range nodes {
		free[i] = nodes[i].Object.Status.Allocatable.Cpu().MilliValue()
	}
	out := make([]string, len(pods))
	var active running
	for i := range pods {
		p := &pods[i]
		for len(active) > 0 && active[0].end <= p.Arrival {
			ended := heap.Pop(&active).(placed)
			free[ended.node] += ended.cpu
		}
		order := func(a, b int) int {
			if has, other := hasModel(&nodes[a], p), hasModel(&nodes[b], p); has != other {
				if has {
					return 1
				}
				return -1
			}
			return cmp.Or(cmp.Compare(free[a], free[b]), cmp.Compare(b, a))
		}
		best := 0
		for node := range nodes {
			if order(node, best) > 0 {
				best = node
			}
		}
		out[i], free[best] = nodes[best].Object.Name, free[best]-p.Requests.CPU
		if p.Duration != recording.Never {
			heap.Push(&active, placed{p.Arrival + p.Duration, best, p.Requests.CPU})
		}
	}
	return out
}

// hasModel reports whether a node has a GPU model that a pod requires.
func hasModel(node *recording.Node, p *generate.NewPod) bool {
	affinity := p.Spec.Affinity
	if affinity == nil {
		return true
	}
	models := affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchExpressions[0].Values
	return slices.Contains(models, node.Object.Labels[generate.GPUModelLabel])
}
