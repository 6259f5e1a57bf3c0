package record

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"
	"time"

	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
)

// usage collects the usage of pods in a window.
type usage struct {
	r *recorder
	// pods are the pods with a node, by namespace and name, in the order of their creation.
	pods map[string][]*podState
	// namespace and pod are the names of the labels.
	namespace, pod model.LabelName
}

// readUsage reads and writes the usage of the pods in a window. Samples are at multiples of the step; the sample at
// the end belongs to the next window, if there is one.
func (r *recorder) readUsage(ctx context.Context, from, to time.Time, last bool) error {
	end := to
	if last {
		end = to.Add(r.config.Step)
	}
	labels := rename(r.config.UsageLabels, "namespace", "pod")
	u := &usage{r: r, pods: map[string][]*podState{}, namespace: model.LabelName(labels[0]), pod: model.LabelName(labels[1])}
	pods := slices.SortedFunc(maps.Values(r.pods), func(a, b *podState) int {
		return cmp.Or(cmp.Compare(a.created, b.created), cmp.Compare(a.name, b.name))
	})
	for _, p := range pods {
		if p.node != "" {
			u.pods[p.name] = append(u.pods[p.name], p)
		}
	}
	cpu, memory := r.config.usageQueries()
	setCPU := func(p *podState, step int, cores float64) { p.cpu.Set(step, 1000*cores) }
	if err := u.read(ctx, containerCPU, cpu, from, end, setCPU); err != nil {
		return err
	}
	setMemory := func(p *podState, step int, bytes float64) { p.memory.Set(step, bytes) }
	if err := u.read(ctx, containerMemory, memory, from, end, setMemory); err != nil {
		return err
	}
	for _, p := range pods {
		r.count(p, from, end)
		if err := r.out.AddUsage(p.key, p.cpu, p.memory); err != nil {
			return err
		}
		p.cpu, p.memory = recording.Series{}, recording.Series{}
	}
	return nil
}

// queryValues is the largest number of values of usage that one query should return.
const queryValues = 400_000

// read runs a query from a time until before another, in parts with a bounded number of values.
func (u *usage) read(ctx context.Context, name, query string, from, end time.Time, set func(*podState, int, float64)) error {
	r := u.r
	if query == "" || len(u.pods) == 0 {
		return nil
	}
	steps := time.Duration(max(queryValues/len(u.pods), 1))
	for ; from.Before(end); from = from.Add(steps * r.config.Step) {
		until := from.Add(steps * r.config.Step)
		if until.After(end) {
			until = end
		}
		err := r.run(ctx, name, from, until, func(ctx context.Context, from, to time.Time) (promv1.Warnings, error) {
			over := promv1.Range{Start: from, End: to.Add(-time.Second), Step: r.config.Step}
			matrix, warnings, err := r.client.QueryRange(ctx, query, over, promv1.WithTimeout(r.config.Timeout))
			for _, stream := range matrix {
				r.series[name] = true
				u.add(stream, set)
			}
			return warnings, err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// add adds a series of a pod.
func (u *usage) add(stream *model.SampleStream, set func(*podState, int, float64)) {
	c := &u.r.counts
	pods := u.pods[string(stream.Metric[u.namespace]+"/"+stream.Metric[u.pod])]
	start, step := float64(u.r.config.From.Unix()), u.r.config.Step.Seconds()
	for _, pair := range stream.Values {
		at, value := float64(pair.Timestamp)/1000, float64(pair.Value)
		p := running(pods, at)
		switch {
		case math.IsNaN(value) || value < 0 || math.IsInf(value, 0):
			c.Rejected++
		case p == nil:
			c.Unassigned++
		default:
			if i := math.Round((at - start) / step); i >= 0 && i < recording.MaxSteps {
				set(p, int(i), value)
			}
		}
	}
}

// running returns the pod that ran at a time: the last created pod that had not ended. If an earlier pod had the same name, the pod
// must also have started before the time, because a sample is older than its time.
func running(pods []*podState, at float64) *podState {
	for i, p := range slices.Backward(pods) {
		begun := float64(p.created) <= at && (i == 0 || p.started != 0 && float64(p.started) < at)
		if begun && (p.ended == 0 || at <= float64(p.ended)) {
			return p
		}
	}
	return nil
}

// count counts the values of a pod in a window, and the values expected without gaps.
func (r *recorder) count(p *podState, from, end time.Time) {
	if p.started == 0 {
		return
	}
	step, start := int64(r.config.Step.Seconds()), r.config.From.Unix()
	first := max(p.started, from.Unix()) - start
	after := min(end.Unix(), p.lastSeen+1) - start // a deleted pod is marked as ended only in the next window
	if p.ended != 0 {
		after = min(after, p.ended-start+1)
	}
	steps := func(at int64) int64 { return (at + step - 1) / step }
	for i := steps(first); i < steps(after); i++ {
		r.counts.Expected += 2
		for _, series := range []*recording.Series{&p.cpu, &p.memory} {
			if _, ok := series.At(int(i)); ok {
				r.counts.Samples++
			}
		}
	}
}
