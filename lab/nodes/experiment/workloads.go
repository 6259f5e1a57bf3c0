package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/plimsoll-k8s/plimsoll/lab/experiment/usage"
)

const (
	defaultArm   = "default"
	predictedArm = "predicted"
	craneArm     = "crane"
)

// schedulerNames are the names of the profiles by arm.
var schedulerNames = map[string]string{
	defaultArm: "default-scheduler", predictedArm: "plimsoll-predicted", "low-risk": "plimsoll-low-risk", "packed": "plimsoll-packed",
	craneArm: "crane",
}

const (
	// stepSeconds is the time between two values of the recorded usage.
	stepSeconds = 300
	// series is the number of values that a pod gets.
	series = 48
	// perWorkload is the number of pods of a workload, which are so few that spreading them does not balance the nodes.
	perWorkload = 2
	// serviceWork is the CPU time of a request of the latency service of a node, serviceRate the number of requests in a second.
	serviceWork = time.Millisecond
	serviceRate = 20
	// overhead is what a pod uses beside its work in millicores, measured with idle pods.
	overhead = 4
)

// serviceDemand is what a service uses in millicores.
var serviceDemand = serviceWork.Seconds()*serviceRate*1000 + overhead

// source is the recorded usage that the pods of a workload follow.
type source struct {
	name     string
	workload *usage.Workload
	// mean is the mean of all its values.
	mean float64
}

// readSources reads the recorded usage: six services of each public set, with the machines of a service for its pods.
func readSources(folder string) ([]source, error) {
	var found []source
	for _, name := range usage.Sets {
		// The other half was used to tune the model.
		set, err := usage.Open(os.DirFS(folder), name, func(workload string) bool { return usage.Half(workload) == 1 })
		if err != nil {
			return nil, err
		}
		random := rand.New(rand.NewPCG(1, 0x736f7572))
		n := 0
		for _, i := range random.Perm(len(set.Workloads)) {
			w := &set.Workloads[i]
			s := source{name: fmt.Sprintf("%s-%d", name, n+1), workload: w, mean: meanOf(w)}
			if s.mean <= 0 {
				continue
			}
			found = append(found, s)
			if n++; n == 6 {
				break
			}
		}
	}
	return found, nil
}

func meanOf(w *usage.Workload) float64 {
	sum, n := 0.0, 0
	for _, m := range w.Machines {
		for _, day := range m.Days {
			for _, x := range day.CPU {
				sum, n = sum+float64(x), n+1
			}
		}
	}
	return sum / float64(max(n, 1))
}

// workload is a Deployment of a run.
type workload struct {
	name   string
	source *source
	// request is the CPU request of a pod in millicores, 0 without one.
	request int
	// values are what its pods use, in millicores by step.
	values [perWorkload][]float64
}

// pod is a pod in the order of arrival.
type pod struct {
	workload *workload
	replica  int
}

// scenario is what all arms of a seed have in common.
type scenario struct {
	workloads []*workload
	order     []pod
}

// draw draws the workloads of a seed. The machines that a workload follows, its size and its request are the same for all seeds, so that
// what was learned of it holds as far as it holds for recorded usage: a seed has the time after the time of the seed before. The order of
// arrivals differs. The demand of the measurement is scaled to the level.
func (s *settings) draw(sources []source, seed int) *scenario {
	fixed, random := rand.New(rand.NewPCG(7, 0x73697a65)), rand.New(rand.NewPCG(uint64(seed), 0x74696d65))
	drawn := &scenario{}
	sizes := make([]float64, s.Pods/perWorkload)
	for i := range sizes {
		sizes[i] = min(lognormal(fixed, 0.6), 2.5)
		source := &sources[i%len(sources)]
		w := &workload{name: fmt.Sprintf("%s-%d", source.name, i/len(sources)+1), source: source}
		if noise := lognormal(fixed, 0.4); i%2 == 0 {
			w.request = max(int(math.Round(1000*sizes[i]*noise)), 1) // scaled below
		}
		drawn.workloads = append(drawn.workloads, w)
		for replica := range w.values {
			drawn.order = append(drawn.order, pod{w, replica})
		}
	}
	s.setRequests(drawn.workloads)
	// What the services and the overhead of pods leave of the level.
	available := s.Level*float64(s.Nodes*s.CPU) - float64(s.Nodes)*serviceDemand - overhead*float64(s.Pods)
	demand := 0.0
	for i, w := range drawn.workloads {
		for replica := range w.values {
			w.values[replica] = slice(w.source.workload, fixed, (seed+historyRuns)*stepsPerRun, sizes[i]/w.source.mean)
			demand += s.meanOf(w.values[replica])
		}
	}
	for _, w := range drawn.workloads {
		for replica := range w.values {
			for i := range w.values[replica] {
				w.values[replica][i] *= available / demand
			}
		}
	}
	random.Shuffle(len(drawn.order), func(i, j int) { drawn.order[i], drawn.order[j] = drawn.order[j], drawn.order[i] })
	return drawn
}

// stepsPerRun is the time from one seed to the next in steps of the recorded usage, about the time that a run takes.
const stepsPerRun = 5

// meanOf returns the mean of the values that the measurement covers.
func (s *settings) meanOf(values []float64) float64 {
	step := stepSeconds / s.Compression
	from := int((float64(s.Pods)*s.Every.Seconds() + s.Settle.Seconds()) / step)
	to := from + max(int(math.Ceil(s.Measure.Seconds()/step)), 1)
	sum := 0.0
	for _, x := range values[from:to] {
		sum += x
	}
	return sum / float64(to-from)
}

// setRequests scales requests to half of what the nodes have left by the requests of the services.
func (s *settings) setRequests(workloads []*workload) {
	sum := 0
	for _, w := range workloads {
		sum += w.request * perWorkload
	}
	half := 0.5 * (float64(s.Nodes*s.CPU) - float64(s.Nodes)*serviceDemand)
	for _, w := range workloads {
		if w.request > 0 {
			w.request = max(int(math.Round(float64(w.request)*half/float64(sum))), 1)
		}
	}
}

// slice returns a part of the usage of a machine of a workload, some steps after a random time.
func slice(w *usage.Workload, random *rand.Rand, after int, scale float64) []float64 {
	m := &w.Machines[random.IntN(len(w.Machines))]
	day := &m.Days[random.IntN(len(m.Days))]
	start := random.IntN(len(day.CPU)) + after
	values := make([]float64, series)
	for i := range values {
		values[i] = scale * float64(day.CPU[(start+i)%len(day.CPU)])
	}
	return values
}

// lognormal draws a number with mean 1 and a coefficient of variation.
func lognormal(random *rand.Rand, cv float64) float64 {
	sigma := math.Sqrt(math.Log(1 + cv*cv))
	return math.Exp(sigma*random.NormFloat64() - sigma*sigma/2)
}

// arguments returns the arguments of the container of a replica.
func (w *workload) arguments(values []float64, s *settings, epoch time.Time) []string {
	texts := make([]string, len(values))
	for i, x := range values {
		texts[i] = strconv.FormatFloat(x, 'f', 1, 64)
	}
	return []string{
		"burn", "-values", strings.Join(texts, ","), "-step",
		time.Duration(float64(stepSeconds*time.Second) / s.Compression).String(), "-epoch", strconv.FormatInt(epoch.Unix(), 10),
	}
}

// demandAt returns the value of a time after the epoch.
func (w *workload) demandAt(replica int, after time.Duration, s *settings) float64 {
	step := time.Duration(float64(stepSeconds*time.Second) / s.Compression)
	return w.values[replica][int(after/step)%series]
}
