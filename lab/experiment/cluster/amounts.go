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

// use returns the usage of a pod at a minute of the recording, in millicores and bytes, without regard to its limits.
func (d *draw) use(p *pod, minute int) (cpu, memory float64) {
	const perDay = 24 * 60
	w := p.workload
	m := max(d.minute+minute+p.shiftMinute, 0)
	day := &p.machine.Days[(p.firstDay+m/perDay)%len(p.machine.Days)]
	i := m % perDay * 60 / usage.Step
	if day.Memory == nil {
		return float64(day.CPU[i]) * w.cpuScale, memoryShare * w.memory
	}
	return float64(day.CPU[i]) * w.cpuScale, float64(day.Memory[i]) * w.memoryScale
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
	// Limits cut off usage, the more the higher its scale is: some iterations are within 1 % of the level.
	for range 8 {
		cpu, memory := d.meanUse()
		for _, w := range d.workloads {
			w.cpuScale *= d.Level() / cpu
			if d.Set != usage.PlanetLab {
				w.memoryScale *= d.Level() / memory
			}
		}
	}
}

// meanUse returns the mean usage of all pods within their limits, as multiples of their requests.
func (d *draw) meanUse() (cpu, memory float64) {
	var requested, used [2]float64 // CPU and memory
	for _, p := range d.pods {
		w := p.workload
		for minute := p.first(); minute < p.last(); minute += usage.Step / 60 {
			c, m := d.use(p, minute)
			if !w.bestEffort {
				c, m = min(c, limitRatio*w.cpu), min(m, limitRatio*w.memory)
			}
			requested[0], requested[1] = requested[0]+w.cpu, requested[1]+w.memory
			used[0], used[1] = used[0]+c, used[1]+m
		}
	}
	return used[0] / requested[0], used[1] / requested[1]
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
