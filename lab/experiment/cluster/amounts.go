package cluster

import (
	"math"

	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
	"github.com/plimsoll-k8s/plimsoll/lab/experiment/usage"
)

const (
	minutes  = Hours * 60
	gibibyte = 1 << 30
	mebibyte = 1 << 20
	// maxShare is the largest request as a share of a node: a pod within its limits fits a node.
	maxShare = 0.2
)

// at returns the values of the series of a pod at a minute of the recording.
func (d *draw) at(p *pod, minute int) (cpu, memory float64) {
	const perDay = 24 * 60
	m := max(d.minute+minute+p.shiftMinute, 0)
	day := &p.machine.Days[(p.firstDay+m/perDay)%len(p.machine.Days)]
	i := m % perDay * 60 / usage.Step
	if day.Memory == nil {
		return float64(day.CPU[i]), memoryShare * p.workload.memory / p.workload.memoryScale
	}
	return float64(day.CPU[i]), float64(day.Memory[i])
}

// scale sets the requests of the workloads to the fill of the nodes, and the usage to the level.
func (d *draw) scale(slots []*workload) {
	var cpu, memory float64
	for _, w := range slots {
		cpu, memory = cpu+w.cpu, memory+w.memory
	}
	for _, w := range d.workloads {
		w.cpu = request(w.cpu*Fill*Nodes*Cores*1000/cpu, 10, Cores*1000)
		w.memory = request(w.memory*Fill*Nodes*GiB*gibibyte/memory, mebibyte, GiB*gibibyte)
		w.cpuScale, w.memoryScale = w.cpuScale*w.cpu, w.memoryScale*w.memory
	}
	if d.Set == usage.Bitbrains {
		return
	}
	var requested, used [2]float64 // CPU and memory
	for _, p := range d.pods {
		for minute := p.first(); minute < p.last(); minute += usage.Step / 60 {
			w := p.workload
			c, m := d.at(p, minute)
			requested[0], requested[1] = requested[0]+w.cpu, requested[1]+w.memory
			used[0], used[1] = used[0]+c*w.cpuScale, used[1]+m*w.memoryScale
		}
	}
	for _, w := range d.workloads {
		w.cpuScale *= d.Level() * requested[0] / used[0]
		if d.Set != usage.PlanetLab {
			w.memoryScale *= d.Level() * requested[1] / used[1]
		}
	}
}

// request rounds a request to a multiple of a unit, from 1 unit to a share of the node.
func request(amount, unit, node float64) float64 {
	return min(max(math.Round(amount/unit), 1)*unit, maxShare*node)
}

// first returns the first minute of a pod, last the minute after its last.
func (p *pod) first() int { return int(p.start / 60) }

func (p *pod) last() int {
	if p.end == recording.Never {
		return minutes
	}
	return min(int(p.end/60)+1, minutes)
}
