// Package replay runs a cluster on a virtual clock: pods arrive and end, and the code of
// kube-scheduler places them by delayed and averaged load. The outcome is computed from the actual
// usage of the pods, which the scheduler does not know. A run of hours takes seconds, and the same
// input gives the same outcome.
//
// Time is in whole seconds from the start of the run. Events of the same second are
// processed in this order: pods end, recorded nodes are removed, nodes become ready, readings of load are
// received, pending pods are attempted again if resources were freed, pods arrive, the
// autoscaler adds and removes nodes, and the usage is evaluated.
package replay

import (
	"context"
	"fmt"
	"slices"

	internalconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/predict"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/engine"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/scaling"
)

// run is the state of a run.
type run struct {
	input   recording.Input
	options Options
	engine  *engine.Engine
	stop    func() error // returns an error when the run is interrupted
	// now is the current second. It is negative while load is measured before the run.
	now, nextStep, horizon int64
	// warmUpSteps is the number of steps before second 0.
	warmUpSteps int64
	nodes       []node // by number
	nodeNumbers map[string]int32
	boots       []int32 // numbers of the booting nodes in the order in which they become ready
	removals    []int32 // numbers of the nodes that the recording removes later, in the order of their removal
	pods        []pod   // by number
	arrivals    []int32 // numbers of the pods that have not arrived, in the order of arrival
	completions completions
	queue       queue
	monitoring  *monitoring
	hasLoad     bool // the scheduler has received a reading, or reads none

	evaluator result.Evaluator
	demand    []result.Demand // buffer of step
	// totals are those of the run, followed by those of its parts. scaled has what the autoscaler did until the end of each part.
	totals     []result.Totals
	scaled     []*result.Scaling
	unmeasured int // pods scheduled by a profile that reads load, before the first reading
	// reasons counts the pods that were deleted while they were pending, by reason.
	reasons    map[string]int
	overloaded *result.OverloadTimes
	timeSeries *timeSeries
	autoscaler *scaling.Autoscaler // nil without autoscaler
	placements result.Placements   // compared with the recording that is the input
}

// node is the state of a node.
type node struct {
	name  string
	ready bool
	// kind is equal for interchangeable nodes. The memory that the kubelet reports differs a little between equal machines.
	kind        string
	allocatable result.Capacity
	// machineCPU is the capacity in millicores, by which load is measured.
	machineCPU float64
	// free is allocatable less the requests of the pods.
	free resources.Amounts
	pods []int32
}

// pod is the state of a pod.
type pod struct {
	// node is the number of the pod's node, or noNode.
	node int32
	// placed is the second at which the pod was placed on its first node.
	placed int64
	// end is the second at which the pod ends, while it has a node.
	end int64
	// pendingSince is the second since which the pod is pending, pendingSeconds the time that it
	// was pending before.
	pendingSince, pendingSeconds int64
	// hadNode is set if the pod ever had a node, scheduled if it was scheduled and did not end pending.
	hadNode, scheduled bool
}

// noNode is the node of a pod without a node.
const noNode = -1

// newPod returns the state of a pod without a node.
func newPod(p *recording.InputPod) pod {
	state := pod{node: noNode, pendingSince: p.Arrival}
	if p.Recorded != nil {
		state.pendingSeconds = p.Recorded.Waited
	}
	return state
}

// Run simulates an input. If ctx is canceled, the result covers the time until then and is marked
// as interrupted.
func Run(ctx context.Context, in recording.Input, options Options) (result.Run, error) {
	r := &run{
		input: in, horizon: in.End, options: options, stop: ctx.Err, nodeNumbers: map[string]int32{}, queue: newQueue(),
		reasons: map[string]int{}, monitoring: newMonitoring(options.Metrics),
	}
	for range 1 + options.Parts {
		r.totals = append(r.totals, result.Totals{Saturation: options.Saturation})
	}
	r.input.Pods = slices.Clone(in.Pods) // evictions change pods
	// An interrupted scheduling cycle considers fewer nodes: cycles are not canceled.
	runCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	if err := r.prepare(runCtx); err != nil {
		return result.Run{}, err
	}
	for !r.interrupted() {
		r.now = r.nextEvent()
		if r.now >= r.horizon {
			r.now = r.horizon
			return r.result(false), nil
		}
		if err := r.processEvents(runCtx); err != nil {
			return result.Run{}, err
		}
	}
	return r.result(true), nil
}

// interrupted reports whether the run has to stop.
func (r *run) interrupted() bool { return r.stop() != nil }

// nextEvent returns the second of the next event.
func (r *run) nextEvent() int64 {
	next := min(r.nextArrival(), r.nextBoot(), r.nextRemoval(), r.completions.next(), r.monitoring.next(), r.nextStep)
	if r.autoscaler != nil {
		next = min(next, r.autoscaler.NextPass())
	}
	return next
}

// processEvents processes all events due at this second.
func (r *run) processEvents(ctx context.Context) error {
	if err := r.completePods(ctx); err != nil {
		return err
	}
	if err := r.removeRecorded(ctx); err != nil {
		return err
	}
	if err := r.bootNodes(ctx); err != nil {
		return err
	}
	if err := r.receiveLoad(ctx); err != nil {
		return err
	}
	if err := r.retryPending(ctx); err != nil {
		return err
	}
	for r.nextArrival() <= r.now && !r.interrupted() {
		number := r.arrivals[0]
		r.arrivals = r.arrivals[1:]
		if err := r.attempt(ctx, number); err != nil {
			return err
		}
	}
	if err := r.retryPending(ctx); err != nil {
		return err
	}
	if err := r.autoscale(ctx); err != nil {
		return err
	}
	if r.now == r.nextStep && !r.interrupted() {
		r.step()
		r.nextStep += Step
		if r.options.Progress != nil {
			r.options.Progress(max(r.now, 0), r.horizon)
		}
	}
	return nil
}

func (r *run) nextArrival() int64 {
	if len(r.arrivals) == 0 {
		return recording.Never
	}
	return r.input.Pods[r.arrivals[0]].Arrival
}

func (r *run) nextBoot() int64 {
	if len(r.boots) == 0 {
		return recording.Never
	}
	return r.input.Nodes[r.boots[0]].Appeared
}

// bootNodes adds the nodes that become ready to the scheduler.
func (r *run) bootNodes(ctx context.Context) error {
	for r.nextBoot() <= r.now {
		number := r.boots[0]
		r.boots = r.boots[1:]
		r.nodes[number].ready = true
		r.nodeNumbers[r.nodes[number].name] = number
		r.engine.AddNode(ctx, r.input.Nodes[number].Object)
		if err := r.addDaemonPods(ctx, number); err != nil {
			return err
		}
		r.queue.resourcesFreed(r.input.Pods, &r.nodes[number])
	}
	return nil
}

// completePods removes the pods that end.
func (r *run) completePods(ctx context.Context) error {
	for {
		number, ok := r.completions.popUntil(r.now)
		if !ok {
			return nil
		}
		if r.pods[number].node == noNode {
			r.deletePending(number)
			continue
		}
		if r.pods[number].end > r.now {
			continue // The pod was evicted and ends later.
		}
		n := &r.nodes[r.pods[number].node]
		if err := r.removeFromNode(ctx, number); err != nil {
			return err
		}
		r.queue.resourcesFreed(r.input.Pods, n)
	}
}

// removeFromNode removes a pod from its node.
func (r *run) removeFromNode(ctx context.Context, number int32) error {
	p, n := &r.input.Pods[number], &r.nodes[r.pods[number].node]
	if err := r.engine.RemovePod(ctx, p.Object, n.name); err != nil {
		return fmt.Errorf("removing pod %s: %w", resources.Name(p.Object), err)
	}
	i := slices.Index(n.pods, number)
	n.pods = slices.Delete(n.pods, i, i+1)
	n.free = n.free.Add(p.Requests)
	r.pods[number].node = noNode
	return nil
}

// receiveLoad passes the readings of load that are due to the scheduler.
func (r *run) receiveLoad(ctx context.Context) error {
	for {
		reading, ok := r.monitoring.receive(r.now)
		if !ok {
			return nil
		}
		r.hasLoad = true
		if err := r.engine.SetLoad(reading.nodes); err != nil {
			return err
		}
		if err := r.engine.SetPodUsage(ctx, reading.pods); err != nil {
			return err
		}
	}
}

// place puts a pod on a node from a second on.
func (r *run) place(number, nodeNumber int32, second int64) {
	p := &r.input.Pods[number]
	if !r.pods[number].hadNode {
		r.pods[number].placed = second
	}
	r.pods[number].node, r.pods[number].hadNode = nodeNumber, true
	n := &r.nodes[nodeNumber]
	n.pods = append(n.pods, number)
	n.free = n.free.Minus(p.Requests)
	if p.Duration != recording.Never {
		r.pods[number].end = second + p.Duration
		r.completions.add(second+p.Duration, number)
	}
}

// step evaluates the usage of all pods, and measures load.
func (r *run) step() {
	measure := r.now%r.options.Metrics.IntervalSeconds == 0
	var measured []string
	elapsed := r.now + r.warmUpSteps*Step
	ready := 0
	for i := range r.nodes {
		n := &r.nodes[i]
		if !n.ready {
			continue
		}
		ready++
		r.demand = r.demand[:0]
		for _, number := range n.pods {
			p := &r.input.Pods[number]
			demand := p.Resources
			demand.CPU, demand.Memory = p.Usage.At(r.now-r.pods[number].placed, elapsed)
			r.demand = append(r.demand, demand)
		}
		effect, granted, victims := r.evaluator.Step(n.allocatable, r.demand)
		if r.now >= r.options.Settle {
			r.count(r.now, func(t *result.Totals) { t.AddStep(i, n.allocatable, len(n.pods), Step, effect) })
			r.timeSeries.addNode(n.allocatable, len(n.pods), effect)
			r.overloaded.Add(n.name, Step, effect, r.demand, granted, victims, func(pod int) resources.Workload {
				return resources.WorkloadOf(r.input.Pods[n.pods[pod]].Object)
			})
		}
		if measure {
			r.monitoring.addSample(n.name, r.now, result.Ratio(effect.CPUGranted, n.machineCPU),
				result.Ratio(effect.MemoryKept, n.allocatable.MachineMemory))
			measured = append(measured, n.name)
			r.measurePods(n, granted)
		}
	}
	if r.now >= r.options.Settle {
		r.count(r.now, func(t *result.Totals) { t.EndStep(Step) })
		if r.autoscaler != nil && r.partOf(r.now+Step) > len(r.scaled) {
			r.scaled = append(r.scaled, r.autoscaler.Result(r.startOf(len(r.scaled)), r.now+Step))
		}
	}
	if r.now >= 0 {
		if r.autoscaler != nil {
			r.timeSeries.addAutoscaler(ready, r.autoscaler)
		}
		r.timeSeries.endStep(r.now, len(r.queue.pending))
	}
	if measure {
		r.monitoring.takeReading(measured, r.now)
	}
}

// measurePods measures the usage of the pods of a node, given the CPU that they get and
// their demand, if the scheduler reads it. A pod that is killed in the step had its memory
// before.
func (r *run) measurePods(n *node, granted []float64) {
	if !r.monitoring.readsPods {
		return
	}
	for i, number := range n.pods {
		r.monitoring.addPod(r.input.Pods[number].Object, granted[i], r.demand[i].MemoryUse())
	}
}

// result returns the result of the run so far.
func (r *run) result(interrupted bool) result.Run {
	for _, number := range r.queue.pending {
		p := &r.pods[number]
		waited := p.pendingSeconds + max(r.now-p.pendingSince, 0)
		r.count(r.input.Pods[number].Arrival, func(t *result.Totals) { t.AddUnschedulable(waited) })
		reason := r.queue.reasons[number]
		if r.autoscaler != nil {
			reason += r.autoscaler.PendingReason(number)
		}
		r.reasons[reason]++
		p.scheduled = false // The pod may have been evicted.
	}
	scheduled := 0
	for i := range r.pods {
		if p := &r.pods[i]; p.scheduled {
			scheduled++
			if r.input.Pods[i].Arrival >= r.options.Settle {
				r.count(r.input.Pods[i].Arrival, func(t *result.Totals) { t.AddScheduled(p.pendingSeconds) })
			}
		}
	}
	run := result.Run{
		Outcome: r.totals[0].Result(), Scheduled: scheduled, Unmeasured: r.unmeasured, NotArrived: len(r.arrivals),
		Reasons: r.reasons, Seconds: max(r.now, 0), Interrupted: interrupted,
		Overloaded: r.overloaded.Result(), TimeSeries: r.timeSeries.result(),
	}
	if r.autoscaler != nil {
		run.Scaling = r.autoscaler.Result(r.options.Settle, r.now)
	}
	if r.input.Part != nil {
		run.Recorded = &result.Recorded{
			CPULoad: run.CPULoad, MemoryLoad: run.MemoryLoad, Placements: r.placements, PlacedShare: r.placedShare(),
		}
		if r.options.Continued {
			run.Recorded.Left = &result.State{Nodes: r.nodesOfPods(), History: r.engine.History()}
		}
		for i := range r.input.Nodes {
			if n := &r.input.Nodes[i]; n.Appeared > 0 || n.Gone < r.input.End {
				run.Recorded.NodesChanged++
			}
		}
	}
	for i := range r.totals[1:] {
		part := result.Run{Outcome: r.totals[1+i].Result()}
		if r.autoscaler != nil {
			if len(r.scaled) == i {
				r.scaled = append(r.scaled, r.autoscaler.Result(r.startOf(i), r.now))
			}
			part.Scaling = r.scaled[i].After(r.scaled[:i])
		}
		run.Parts = append(run.Parts, part)
	}
	return run
}

// Step is the interval in seconds at which usage is evaluated. The pods on a node and
// their usage at that second count until the next step.
const Step = recording.Step

// Options configure a run.
type Options struct {
	// Config is the configuration of the scheduler.
	Config *internalconfig.KubeSchedulerConfiguration
	// Metrics is how the load is measured.
	Metrics result.Metrics
	// Saturation is the fraction of its allocatable CPU above which a node is saturated, result.DefaultSaturation if it is 0.
	Saturation float64
	// Settle is the number of seconds at the start that no figure counts, except unschedulable pods. Pods that arrive in them, such as
	// pods that ran before and are scheduled again, do not count as pods that wait.
	Settle int64
	// History is what the scheduler has learned before. Continued adds to a run over a recording what another run continues with.
	History   []predict.Past
	Continued bool
	// Parts is the number of parts of equal length whose figures the run has besides its own, 0 for none.
	Parts int
	// Autoscaler configures the autoscaler, nil for none.
	Autoscaler *scaling.Config
	// Record enables the recording of time series and node use. It does not
	// change the outcome.
	Record bool
	// Progress is called at every step with the simulated and the total seconds, unless
	// it is nil.
	Progress func(done, total int64)
	// Placed is called when a pod is scheduled, unless it is nil.
	Placed func(pod, node string)
}

// DefaultMetrics is how the load is measured by default.
var DefaultMetrics = result.Metrics{IntervalSeconds: Step, DelaySeconds: 60, WindowSeconds: 900}

// ValidateMetrics returns an error that names the field of an invalid value.
func ValidateMetrics(m result.Metrics) error {
	const day = 24 * 3600
	switch {
	case m.IntervalSeconds < Step || m.IntervalSeconds > day || m.IntervalSeconds%Step != 0:
		return fmt.Errorf("intervalSeconds: invalid value %d: must be a multiple of %d up to %d", m.IntervalSeconds, Step, day)
	case m.DelaySeconds < 0 || m.DelaySeconds > day:
		return fmt.Errorf("delaySeconds: invalid value %d: must be from 0 to %d", m.DelaySeconds, day)
	case m.WindowSeconds < Step || m.WindowSeconds > day:
		return fmt.Errorf("windowSeconds: invalid value %d: must be from %d to %d", m.WindowSeconds, Step, day)
	}
	return nil
}
