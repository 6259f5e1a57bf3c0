package replay

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/plimsoll-k8s/plimsoll/internal/algo/outcome"
	"github.com/plimsoll-k8s/plimsoll/internal/algo/usage"
	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/noderes"
	"github.com/plimsoll-k8s/plimsoll/internal/simulate/engine"
	"github.com/plimsoll-k8s/plimsoll/internal/simulate/result"
	"github.com/plimsoll-k8s/plimsoll/internal/trace"
)

// never is after every run.
const never = math.MaxInt64

// run is the state of a run.
type run struct {
	Input
	Options
	engine      *engine.Engine
	interrupted func() bool
	// now is the second that it is. It is below 0 while load is measured that was
	// there before the run began.
	now, nextStep, horizon int64
	// before is for how many steps that is.
	before   int64
	nodes    []node
	byName   map[string]int32
	booted   int // how many nodes have come up, in the order of boots
	boots    []int32
	pods     []pod
	arrivals []int32 // pods in the order of arrival
	arrived  int     // how many have come
	ends     ends
	queue    queue
	load     *monitoring

	evaluator outcome.Evaluator
	scratch   []outcome.Pod
	sums      outcome.Totals
	scheduled int
	found     []int32 // the pods that the scheduler has found a node for
	course    *course
	use       nodeUse
	decisions *decisions
	scaler    *scaler // nil without one
}

// node is a node as the run knows it.
type node struct {
	name string
	up   bool
	has  outcome.Node
	// machineCPU in millicores; load is measured against the whole machine.
	machineCPU float64
	// free is what pods have not requested, slots how many more it takes.
	free  trace.Amounts
	slots int64
	pods  []int32
}

// pod is where a pod is in its life.
type pod struct {
	cursor usage.Cursor
	// node that it is on, or nowhere.
	node int32
	// until is when it ends, while it is on a node.
	until int64
	// waits is since when it has waited for a node, and waited for how long it did
	// before; placed: it has had one; found: the scheduler has found it one.
	waits, waited int64
	placed, found bool
}

// nowhere is where pods are that have no node.
const nowhere = -1

// newPod returns a pod that has no node.
func newPod(use *usage.Model, number int32, p *Pod) pod {
	return pod{cursor: use.Cursor(uint64(number), p.Group), node: nowhere, waits: p.Arrival}
}

// Run runs the input. If ctx ends before the run does, the outcome is of the time
// until then, and says so.
func Run(ctx context.Context, input Input, options Options) (result.Run, error) {
	r := &run{Input: input, Options: options, byName: map[string]int32{}, load: newMonitoring(options.Metrics), interrupted: func() bool { return ctx.Err() != nil }}
	// A scheduling cycle that is cut short finds fewer nodes than there are: what
	// was begun is ended.
	whole, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	if err := r.prepare(whole); err != nil {
		return result.Run{}, err
	}
	for !r.interrupted() {
		next := min(r.nextArrival(), r.nextBoot(), r.ends.next(), r.load.next(), r.nextStep, r.scaler.next())
		if next >= r.horizon {
			r.now = r.horizon
			return r.outcome(false), nil
		}
		r.now = next
		if err := r.second(whole); err != nil {
			return result.Run{}, err
		}
	}
	return r.outcome(true), nil
}

// prepare sets the scheduler up, and everything where it is at the start.
func (r *run) prepare(ctx context.Context) error {
	config := r.Config.DeepCopy()
	config.Parallelism = 1
	cluster := engine.Cluster{Others: r.Others}
	if err := r.addScaler(); err != nil {
		return err
	}
	for i := range r.Nodes {
		object := r.Nodes[i].Object
		r.byName[object.Name] = int32(i)
		r.nodes = append(r.nodes, newNode(object))
		r.boots = append(r.boots, int32(i))
		if r.Nodes[i].Boot <= 0 {
			cluster.Nodes = append(cluster.Nodes, object)
			r.nodes[i].up = true
			r.booted++
		}
	}
	slices.SortStableFunc(r.boots, func(a, b int32) int { return cmp.Compare(r.Nodes[a].Boot, r.Nodes[b].Boot) })
	r.pods = make([]pod, len(r.Pods))
	r.queue = newQueue()
	last := int64(0)
	for i := range r.Pods {
		p := &r.Pods[i]
		r.pods[i] = newPod(r.Usage, int32(i), p)
		if p.Object.Spec.NodeName == "" {
			r.arrivals = append(r.arrivals, int32(i))
			last = max(last, p.Arrival)
			continue
		}
		on, ok := r.byName[p.Object.Spec.NodeName]
		if !ok {
			continue
		}
		cluster.Running = append(cluster.Running, p.Object)
		r.place(int32(i), on, 0)
	}
	slices.SortStableFunc(r.arrivals, func(a, b int32) int { return cmp.Compare(r.Pods[a].Arrival, r.Pods[b].Arrival) })
	r.horizon = (last+Step-1)/Step*Step + r.Tail
	if r.Course {
		r.course = newCourse(r.horizon)
		r.use = newNodeUse(len(r.nodes))
		r.decisions = newDecisions(r.Input, r.arrivals)
	}
	if len(cluster.Running) > 0 {
		// What runs from the start has been measured when the first pod comes.
		r.before = (r.Metrics.Window + r.Metrics.Delay + Step - 1) / Step
		r.nextStep = -r.before * Step
	}
	var err error
	r.engine, err = engine.New(ctx, cluster, engine.Options{Config: config, Clock: func() time.Time { return at(r.now) }})
	if err != nil {
		return err
	}
	return r.scaler.begin(ctx, r)
}

// newNode returns a node without pods.
func newNode(object *v1.Node) node {
	allocatable, capacity := object.Status.Allocatable, object.Status.Capacity
	of := func(list v1.ResourceList, name v1.ResourceName) int64 {
		quantity := list[name]
		return noderes.NewResource(name).Amount(quantity)
	}
	n := node{
		name: object.Name,
		has: outcome.Node{
			CPU: float64(of(allocatable, v1.ResourceCPU)), Memory: float64(of(allocatable, v1.ResourceMemory)),
			MachineMemory: float64(max(of(capacity, v1.ResourceMemory), of(allocatable, v1.ResourceMemory))),
		},
		machineCPU: float64(max(of(capacity, v1.ResourceCPU), of(allocatable, v1.ResourceCPU))),
		free:       trace.Amounts{CPU: of(allocatable, v1.ResourceCPU), Memory: of(allocatable, v1.ResourceMemory), GPU: of(allocatable, GPU)},
		slots:      of(allocatable, v1.ResourcePods),
	}
	return n
}

// second lets happen what happens at this second.
func (r *run) second(ctx context.Context) error {
	if err := r.end(ctx); err != nil {
		return err
	}
	if err := r.boot(ctx); err != nil {
		return err
	}
	if err := r.deliver(); err != nil {
		return err
	}
	if err := r.retry(ctx); err != nil {
		return err
	}
	for r.nextArrival() <= r.now && !r.interrupted() {
		number := r.arrivals[r.arrived]
		r.arrived++
		if err := r.try(ctx, number); err != nil {
			return err
		}
	}
	if err := r.retry(ctx); err != nil {
		return err
	}
	if err := r.scale(ctx); err != nil {
		return err
	}
	if r.now == r.nextStep && !r.interrupted() {
		r.step()
		r.nextStep += Step
		if r.Progress != nil {
			r.Progress(max(r.now, 0), r.horizon)
		}
	}
	return nil
}

func (r *run) nextArrival() int64 {
	if r.arrived == len(r.arrivals) {
		return never
	}
	return r.Pods[r.arrivals[r.arrived]].Arrival
}

func (r *run) nextBoot() int64 {
	if r.booted == len(r.boots) {
		return never
	}
	return r.Nodes[r.boots[r.booted]].Boot
}

// boot brings nodes up.
func (r *run) boot(ctx context.Context) error {
	for r.nextBoot() <= r.now {
		number := r.boots[r.booted]
		r.booted++
		r.nodes[number].up = true
		r.engine.AddNode(ctx, r.Nodes[number].Object)
		if err := r.addDaemons(ctx, number); err != nil {
			return err
		}
		r.queue.freed(r.Pods, &r.nodes[number])
	}
	return nil
}

// end takes the pods away that end.
func (r *run) end(ctx context.Context) error {
	for {
		number, ok := r.ends.pop(r.now)
		if !ok {
			return nil
		}
		if r.pods[number].node == nowhere || r.pods[number].until > r.now {
			continue // it had to move, and ends later
		}
		on := &r.nodes[r.pods[number].node]
		if err := r.leave(ctx, number); err != nil {
			return err
		}
		r.queue.freed(r.Pods, on)
	}
}

// leave takes a pod off its node.
func (r *run) leave(ctx context.Context, number int32) error {
	p, on := &r.Pods[number], &r.nodes[r.pods[number].node]
	if err := r.engine.Remove(ctx, p.Object, on.name); err != nil {
		return fmt.Errorf("pod %s/%s ends: %w", p.Object.Namespace, p.Object.Name, err)
	}
	i := slices.Index(on.pods, number)
	on.pods = slices.Delete(on.pods, i, i+1)
	on.give(p.Needs, 1)
	r.pods[number].node = nowhere
	return nil
}

// deliver gives the scheduler the readings that arrive.
func (r *run) deliver() error {
	for {
		reading, ok := r.load.arrived(r.now)
		if !ok {
			return nil
		}
		if err := r.engine.Measured(reading); err != nil {
			return err
		}
	}
}

// place puts a pod on a node from a second on.
func (r *run) place(number, on int32, second int64) {
	p := &r.Pods[number]
	r.pods[number].node, r.pods[number].placed = on, true
	r.nodes[on].pods = append(r.nodes[on].pods, number)
	r.nodes[on].give(p.Needs, -1)
	if p.Runs != trace.Never {
		r.pods[number].until = second + p.Runs
		r.ends.add(second+p.Runs, number)
	}
}

// give gives back what so many pods had.
func (n *node) give(amounts trace.Amounts, pods int64) {
	n.free.CPU += pods * amounts.CPU
	n.free.Memory += pods * amounts.Memory
	n.free.GPU += pods * amounts.GPU
	n.slots += pods
}

// step looks at what all pods use, works out what comes of it, and measures.
func (r *run) step() {
	measure := r.now%r.load.Interval == 0
	var measured []string
	at := r.now/Step + r.before
	for i := range r.nodes {
		n := &r.nodes[i]
		if !n.up {
			continue
		}
		r.scratch = r.scratch[:0]
		for _, number := range n.pods {
			p := &r.Pods[number]
			cpu, memory := r.Usage.Next(&r.pods[number].cursor, at)
			wants := p.Wants
			wants.CPU, wants.Memory = cpu*p.CPU, memory*p.Memory
			r.scratch = append(r.scratch, wants)
		}
		step, _, _ := r.evaluator.Step(n.has, r.scratch)
		if r.now >= 0 {
			r.sums.AddStep(i, n.has, len(n.pods), Step, step)
			r.course.node(n.has, len(n.pods), step)
			r.use.node(i, n.has, len(n.pods), step)
		}
		if measure {
			r.load.measured(n.name, r.now, part(step.CPUGranted, n.machineCPU), part(step.MemoryKept, n.has.MachineMemory))
			measured = append(measured, n.name)
		}
	}
	if r.now >= 0 {
		r.sums.EndStep(Step)
		r.course.scaled(r)
		r.course.endStep(r.now, len(r.queue.waiting))
	}
	if measure {
		r.load.read(measured, r.now)
	}
	if r.course.risksDue(r.now) {
		r.course.risks.add(r)
	}
}

// part returns a as a part of b, 0 if there is nothing of b.
func part(a, b float64) float64 {
	if b <= 0 {
		return 0
	}
	return a / b
}

// outcome returns what came of the run so far.
func (r *run) outcome(interrupted bool) result.Run {
	reasons := map[string]int{}
	waiting := make(map[int32]bool, len(r.queue.waiting))
	for _, number := range r.queue.waiting {
		p := &r.pods[number]
		waiting[number] = true
		r.sums.AddUnschedulable(float64(p.waited + max(r.now-p.waits, 0)))
		reasons[r.queue.why[number]+r.scaler.why(number)]++
		if p.placed {
			r.scheduled-- // it had a node once, and has none in the end
		}
	}
	for _, number := range r.found {
		if !waiting[number] {
			r.sums.AddScheduled(float64(r.pods[number].waited))
		}
	}
	return result.Run{
		Outcome: r.sums.Result(), Scheduled: r.scheduled, NotArrived: len(r.arrivals) - r.arrived,
		Reasons: reasons, Seconds: max(r.now, 0), Interrupted: interrupted,
		TimeSeries: r.course.course(&r.sums), NodeUse: r.use.result(r.nodes), Decisions: r.decisions.result(r),
		Scaling: r.scaler.scaling(r),
	}
}
