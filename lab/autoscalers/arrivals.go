package main

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/predict"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/generate"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
)

const (
	// seconds is the length of a run.
	seconds = 600
	// past is the length in seconds of the time before it, in which three pods of each workload run: the history of the usage of workloads.
	past        = 24 * 3600
	pastPods    = 3
	nodeCores   = 8
	nodeGiB     = 32
	bootSeconds = 10
)

// usage is higher than in most clusters, so that packing can overload nodes: pods use 80 % of the CPU that they request on average, with
// large differences between workloads.
const usage = "cpu=beta:mean=0.8,max=3,cv=0.6,workload=0.6,between=0.1,hold=3;memory=beta:mean=0.6,max=1.5,cv=0.3,workload=0.8,between=0.1,hold=30"

// pods adds pods to a list.
type pods struct {
	random *rand.Rand
	list   []generate.NewPod
}

// workload is a workload with the requests of its pods.
type workload struct {
	*generate.Owner
	requests resources.Amounts
}

func (p *pods) workload(name string, isJob bool) workload {
	cpu := min(max(generate.Lognormal(p.random, 0.6), 0.25), 4)
	memory := min(3*cpu*generate.Lognormal(p.random, 0.3), nodeGiB/2)
	return workload{&generate.Owner{Name: name, IsJob: isJob}, resources.Amounts{
		CPU: int64(cpu*20) * 50, Memory: int64(memory*1024) << 20,
	}}
}

// add adds a pod that is created at a second of the run and runs for some time.
func (p *pods) add(w workload, arrival, duration int64) {
	p.list = append(p.list, generate.NewPod{
		Name: fmt.Sprintf("%s-%d", w.Name, len(p.list)), Requests: w.requests, Owner: w.Owner, Arrival: arrival, Duration: max(duration, 1),
	})
}

// kind is a kind of arrivals.
type kind struct {
	name string
	add  func(*pods)
}

var kinds = []kind{{"jobs", addJobs}, {"bursts", addBursts}, {"services", addServices}}

// addJobs adds pods that arrive at random and run for two minutes on average.
func addJobs(p *pods) {
	var workloads []workload
	for i := range 12 {
		workloads = append(workloads, p.workload(fmt.Sprintf("job-%d", i), true))
	}
	for at := 0.0; at < seconds; at += p.random.ExpFloat64() / 0.45 {
		p.add(workloads[p.random.IntN(len(workloads))], int64(at), int64(min(p.random.ExpFloat64(), 4)*120))
	}
}

// addBursts adds services of constant size, and four bursts of 30 pods that run for a minute.
func addBursts(p *pods) {
	for i := range 5 {
		w := p.workload(fmt.Sprintf("service-%d", i), false)
		for range 5 {
			p.add(w, int64(p.random.IntN(20)), seconds)
		}
	}
	for i := range int64(4) {
		w := p.workload(fmt.Sprintf("burst-%d", i), true)
		for range 30 {
			p.add(w, 60+i*135, 50+p.random.Int64N(20))
		}
	}
}

// addServices adds eight services of 3 to 11 replicas, which follow waves of five minutes. Any replica can be removed.
func addServices(p *pods) {
	for i := range 8 {
		w := p.workload(fmt.Sprintf("service-%d", i), false)
		phase := p.random.Float64()
		var running []int // the places in the list
		for second := int64(0); second < seconds; second += 20 {
			replicas := int(math.Round(7 + 4*math.Sin(2*math.Pi*(float64(second)/300+phase))))
			for len(running) < replicas {
				running = append(running, len(p.list))
				p.add(w, second+p.random.Int64N(20), seconds)
			}
			for len(running) > replicas {
				place := p.random.IntN(len(running))
				pod := &p.list[running[place]]
				pod.Duration = max(second-pod.Arrival, 1)
				running = slices.Delete(running, place, place+1)
			}
		}
	}
}

// input returns the pods of the past and of the run, without nodes. The run begins at second past.
func input(arrivals string, seed uint64) (recording.Input, error) {
	spec, err := generate.ParseUsage(usage)
	if err != nil {
		return recording.Input{}, err
	}
	p := &pods{random: rand.New(rand.NewPCG(seed, 0x4b61727065))}
	for _, kind := range kinds {
		if kind.name == arrivals {
			kind.add(p)
		}
	}
	known := map[*generate.Owner]bool{}
	earlier := &pods{}
	for i := range p.list {
		pod := &p.list[i]
		if pod.Arrival += past; !known[pod.Owner] {
			known[pod.Owner] = true
			for range pastPods {
				earlier.add(workload{pod.Owner, pod.Requests}, 0, past-1800)
				earlier.list[len(earlier.list)-1].Name += "-past"
			}
		}
	}
	c := generate.NewCluster{
		Pods: append(earlier.list, p.list...), Limits: generate.Limits{Unlimited: 1}, Seed: seed, Tail: past + seconds,
	}
	slices.SortStableFunc(c.Pods, func(a, b generate.NewPod) int { return cmp.Compare(a.Arrival, b.Arrival) })
	part, err := c.Recording().Part(0, 0)
	if err != nil {
		return recording.Input{}, err
	}
	in := part.Input(recording.Source{})
	in.Name, in.End = arrivals, past+seconds
	return in, generate.AddUsage(&in, spec, seed)
}

// history returns what a scheduler has learned in the past of an input.
func history(in *recording.Input) []predict.Past {
	type sums struct{ cpu, memory, readings float64 }
	used, pods := map[resources.Workload]*sums{}, map[resources.Workload]*recording.InputPod{}
	var order []resources.Workload
	for i := range in.Pods {
		p := &in.Pods[i]
		if p.Arrival >= past {
			break
		}
		w := resources.WorkloadOf(p.Object)
		if used[w] == nil {
			used[w], pods[w] = &sums{}, p
			order = append(order, w)
		}
		for minute := range int64(past / 60) {
			cpu, memory := p.Usage.At(0, minute*60)
			s := used[w]
			s.cpu, s.memory, s.readings = s.cpu+cpu, s.memory+memory, s.readings+1
		}
	}
	var learned []predict.Past
	for _, w := range order {
		s, p := used[w], pods[w]
		of := func(sum, request float64) predict.PastUsage {
			return predict.PastUsage{Pods: pastPods, Seconds: past, Mean: sum / s.readings, Request: request}
		}
		learned = append(learned, predict.Past{
			Namespace: w.Namespace, Kind: w.Kind, Name: w.Name, CPU: of(s.cpu, p.BaseCPU), Memory: of(s.memory, p.BaseMemory),
		})
	}
	return learned
}
