package cluster

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
	"github.com/plimsoll-k8s/plimsoll/lab/experiment/usage"
)

// testSet returns a set of 20 workloads with 3 machines of 3 days. The value of a step is a random multiple of 10, and the last
// digit is the number of the machine.
func testSet(name string) *usage.Set {
	r := rand.New(rand.NewPCG(1, 1))
	days := func(machine, month int) (all []usage.Day) {
		for i := range 3 {
			d := usage.Day{Name: fmt.Sprintf("2013-%02d-%02d", month, i+1)}
			for range usage.PerDay {
				d.CPU = append(d.CPU, float32(10*(1+r.IntN(9))+machine))
				if name != usage.PlanetLab {
					d.Memory = append(d.Memory, float32(10*(5+r.IntN(4))+machine))
				}
			}
			all = append(all, d)
		}
		return all
	}
	set := &usage.Set{Name: name}
	for i := range 20 {
		w := usage.Workload{Name: fmt.Sprintf("w%02d", i)}
		for k := range 3 {
			m := usage.Machine{Name: fmt.Sprintf("m%d", k), Days: days(k, 8)}
			if name == usage.Bitbrains {
				m.Before = days(k, 7)
			}
			w.Machines = append(w.Machines, m)
		}
		set.Workloads = append(set.Workloads, w)
	}
	return set
}

// sums has the requests and the usage of the pods that run at a minute.
type sums struct {
	pods, bestEffort  int
	cpu, use, useByte float64
}

// at returns the sums of a recording at a minute.
func at(r *recording.Recording, minute int) (s sums) {
	for i := range r.Pods {
		p := &r.Pods[i]
		if second := int64(minute) * 60; p.Created > second || p.Ended <= second {
			continue
		}
		s.pods++
		cpu, _ := p.CPU.At(minute)
		memory, _ := p.Memory.At(minute)
		requests := p.Object.Spec.Containers[0].Resources.Requests
		if len(requests) == 0 {
			s.bestEffort++
		} else {
			request := float64(requests.Cpu().MilliValue())
			s.cpu += request
			cpu, memory = min(cpu, limitRatio*request), min(memory, limitRatio*float64(requests.Memory().Value()))
		}
		s.use, s.useByte = s.use+cpu, s.useByte+memory
	}
	return s
}

// TestDraw verifies the number of concurrent pods, the share without requests, the fill and the mean usage.
func TestDraw(t *testing.T) {
	for i, name := range usage.Sets {
		for j, kind := range Kinds {
			o := Options{Set: name, Kind: kind, BestEffort: []float64{0, 0.1, 0.3}[(i+j)%3]}
			t.Run(fmt.Sprintf("%s %s %v", name, kind, o.BestEffort), func(t *testing.T) {
				r, err := Draw(testSet(name), o, 7)
				if err != nil {
					t.Fatal(err)
				}
				checkSums(t, r, o)
			})
		}
	}
}

// checkSums verifies the sums of a recording at some minutes.
func checkSums(t *testing.T, r *recording.Recording, o Options) {
	const capacity = Nodes * Cores * 1000
	use, useByte, n := 0.0, 0.0, 0.0
	for minute := 90; minute < minutes; minute += 97 {
		s := at(r, minute)
		// With a rollout, a pod of each workload that is updated runs beside its successor.
		if s.pods < Pods || s.pods > Pods+30 || s.pods > Pods && o.Kind != Rollout {
			t.Errorf("%d pods in minute %d", s.pods, minute)
		}
		if got := float64(s.bestEffort) / float64(s.pods); math.Abs(got-o.BestEffort) > 0.02 {
			t.Errorf("%v without requests", got)
		}
		if fill := s.cpu / capacity; o.BestEffort == 0 && (fill < 0.85 || fill > 0.93) {
			t.Errorf("fill of %v", fill)
		}
		use, useByte, n = use+s.use/capacity, useByte+s.useByte/(Nodes*GiB*gibibyte), n+1
	}
	level := o.Level() * Fill
	if o.Set != usage.Bitbrains && math.Abs(use/n-level) > 0.05 {
		t.Errorf("CPU used to %v, want %v", use/n, level)
	}
	if o.Set == usage.Google && math.Abs(useByte/n-level) > 0.05 {
		t.Errorf("memory used to %v, want %v", useByte/n, level)
	}
}

// TestSeries verifies that a pod follows a machine of its workload: its usage is the series, shifted by at most maxShift minutes and
// multiplied by a factor that is equal for all pods of the workload.
func TestSeries(t *testing.T) {
	set := testSet(usage.Google)
	d := &draw{Options: Options{Set: set.Name, Kind: Stay}, set: set, random: rand.New(rand.NewPCG(3, 3))}
	d.chooseTime()
	slots := d.drawWorkloads()
	for _, w := range slots {
		d.drawPods(w, 0)
	}
	d.scale(slots)
	machines := map[*workload]map[*usage.Machine]bool{}
	for _, p := range d.pods {
		w := p.workload
		if machines[w] == nil {
			machines[w] = map[*usage.Machine]bool{}
		}
		machines[w][p.machine] = true
		if p.machine != &w.source.Machines[0] && p.machine != &w.source.Machines[1] && p.machine != &w.source.Machines[2] {
			t.Fatalf("%s does not follow a machine of %s", w.name, w.source.Name)
		}
		for _, minute := range []int{0, 700, minutes - 1} {
			cpu, memory := d.use(p, minute)
			day, slot := p.firstDay, (d.minute+minute+p.shiftMinute)*60/usage.Step
			for ; slot >= usage.PerDay; slot -= usage.PerDay {
				day++
			}
			if d.minute+minute+p.shiftMinute < 0 {
				slot = 0
			}
			want := &p.machine.Days[day%3]
			if c, m := float64(want.CPU[slot])*w.cpuScale, float64(want.Memory[slot])*w.memoryScale; cpu != c || memory != m {
				t.Fatalf("minute %d: %v and %v, want %v and %v", minute, cpu, memory, c, m)
			}
		}
	}
	several := 0
	for _, seen := range machines {
		if len(seen) > 1 {
			several++
		}
	}
	if several < len(machines)/2 {
		t.Errorf("the pods of %d of %d workloads follow several machines", several, len(machines))
	}
}

// TestRequests verifies by which usage requests are set. Values 1 to 10 have the mean 5.5, and nine of ten are below 10. Of the
// provisioned 400, a twentieth is 20.
func TestRequests(t *testing.T) {
	var day, before usage.Day
	for i := range 10 {
		day.CPU, before.CPU = append(day.CPU, float32(i+1)), append(before.CPU, float32(i+11))
	}
	day.Memory, before.Memory = day.CPU, before.CPU
	w := usage.Workload{Machines: []usage.Machine{{Days: []usage.Day{day}}}}
	if cpu, memory := typical(&w); cpu != 5.5 || memory != 5.5 {
		t.Errorf("%v and %v without a month before", cpu, memory)
	}
	w.Machines[0].Before = []usage.Day{before}
	if cpu, memory := typical(&w); cpu != 20 || memory != 20 {
		t.Errorf("%v and %v with values of 11 to 20 before", cpu, memory)
	}
	w.Machines[0].Provisioned.Memory = 1000
	if cpu, memory := typical(&w); cpu != 20 || memory != 50 {
		t.Errorf("%v and %v with 1000 provisioned", cpu, memory)
	}
	if cpu, memory := typical(&usage.Workload{Machines: []usage.Machine{{Days: []usage.Day{{CPU: []float32{0}}}}}}); cpu <= 0 ||
		memory <= 0 {
		t.Errorf("%v and %v without usage", cpu, memory)
	}
}

// TestLives verifies when pods come and go.
func TestLives(t *testing.T) {
	for _, kind := range Kinds {
		r, err := Draw(testSet(usage.PlanetLab), Options{Set: usage.PlanetLab, Kind: kind}, 1)
		if err != nil {
			t.Fatal(err)
		}
		arrived, ended, life, generations := 0, 0, 0.0, map[string]int{}
		for i := range r.Pods {
			p := &r.Pods[i]
			if p.Created < fillSeconds {
				arrived++
			}
			if p.Ended != recording.Never {
				ended++
				life += float64(p.Ended - p.Created)
			}
			generation := p.Object.Labels["pod-template-hash"]
			generations[generation]++
			updated := p.Ended >= updateStart && p.Ended <= updateStart+updateSeconds+maxReplicas*surgeSeconds
			if kind == Rollout && updated != (generation == hash(0)) {
				t.Fatalf("%s: a pod of generation %s from %d to %d", kind, generation, p.Created, p.Ended)
			}
		}
		switch kind {
		case Stay:
			if arrived != Pods || len(r.Pods) != Pods || ended != 0 {
				t.Errorf("stay: %d pods, %d in the first hour, %d end", len(r.Pods), arrived, ended)
			}
		case Rollout:
			if arrived != Pods || generations[hash(0)] != Pods || len(generations) != 2 || len(r.Pods) != 2*Pods || ended != Pods {
				t.Errorf("rollout: %d pods, %d in the first hour, %d end, %v", len(r.Pods), arrived, ended, generations)
			}
		case Churn: // 36 h of 720 pods of 3 h; pods that run longer than the recording are not counted.
			if len(r.Pods) < 7000 || len(r.Pods) > 10_500 || life/float64(ended) < 0.8*Life || life/float64(ended) > 1.1*Life {
				t.Errorf("churn: %d pods of %v s", len(r.Pods), life/float64(ended))
			}
		}
	}
}

// TestRecording verifies that a seed gives the same file, another seed another file, and that the file is an input of runs.
func TestRecording(t *testing.T) {
	write := func(seed uint64) []byte {
		r, err := Draw(testSet(usage.Bitbrains), Options{Set: usage.Bitbrains, Kind: Stay, BestEffort: 0.1}, seed)
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := r.Write(&b); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	first := write(1)
	if !bytes.Equal(first, write(1)) || bytes.Equal(first, write(2)) {
		t.Error("the recording does not depend on the seed alone")
	}
	file := filepath.Join(t.TempDir(), "drawn")
	if err := os.WriteFile(file, first, 0o600); err != nil {
		t.Fatal(err)
	}
	in, err := recording.Source{Recording: file}.Input()
	if err != nil {
		t.Fatal(err)
	}
	if len(in.Nodes) != Nodes || len(in.Pods) != Pods || in.End != Hours*3600 || len(in.References) == 0 {
		t.Errorf("%d nodes, %d pods, %d references, end %d", len(in.Nodes), len(in.Pods), len(in.References), in.End)
	}
	for i := range in.Pods {
		if p := &in.Pods[i]; p.Usage == nil || p.Object.Spec.NodeName != "" || p.Arrival >= fillSeconds {
			t.Fatalf("%+v", p)
		}
	}
	joined := strings.Join(in.Assumptions, "\n")
	if !strings.Contains(joined, "requests, limits and the number of replicas: drawn") {
		t.Errorf("assumptions do not say what was drawn:\n%s", joined)
	}
}

// TestInvalid verifies that invalid options are refused.
func TestInvalid(t *testing.T) {
	for _, o := range []Options{
		{Set: usage.Google, Kind: Stay},
		{Set: usage.PlanetLab, Kind: "none"},
		{Set: usage.PlanetLab, Kind: Stay, BestEffort: 1},
		{Set: usage.PlanetLab, Kind: Stay, BestEffort: math.NaN()},
	} {
		if _, err := Draw(testSet(usage.PlanetLab), o, 1); err == nil {
			t.Errorf("%+v is accepted", o)
		}
	}
}
