package placement

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/plimsoll-k8s/plimsoll/internal/fleet/fit"
	"github.com/plimsoll-k8s/plimsoll/internal/manifest"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/engine"
	"github.com/plimsoll-k8s/plimsoll/slack"
)

const (
	// maxPlaced is the number of pods after which no further replicas of several templates are placed, and maxEvaluated the number of
	// evaluations of a node for a pod: a second.
	maxPlaced, maxEvaluated = 1000, 200_000
	// orders is the number of random orders in which the pods must fit, and turns how often replicas are placed one after the other: nodes
	// with equal scores are selected at random. Each run has the same random numbers.
	orders, turns = 8, 4
)

// sets places replicas of a workload of several templates with kube-scheduler, where the worst case of a summary is far too low.
type sets struct {
	objects   *manifest.Objects
	scheduler engine.Scheduler
	// pods are the pods of a replica, in the order of the templates.
	pods []*v1.Pod
}

// countSets returns how many replicas of a workload fit the nodes of a cluster as they are, and with the slack that placeholders hold; 0 if
// a template alone fits none.
func countSets(
	ctx context.Context, objects *manifest.Objects, workload *fit.Workload, summary *fit.Summary, scheduler engine.Scheduler,
) (now, withSlack int64, err error) {
	s := sets{objects: objects, scheduler: scheduler}
	references, preempts := manifest.NewReferences(objects.Others), true
	for _, part := range workload.Parts {
		alone := fit.Workload{Parts: []fit.Part{part}}
		if part.Pods > maxPlaced || alone.CountFit(summary, 0, nil, 0).WithSlack < 1 {
			return 0, 0, nil
		}
		given := part.Given().DeepCopy()
		preempts = preempts && ptr.Deref(given.Spec.PreemptionPolicy, "") != v1.PreemptNever
		pod := &v1.Pod{ObjectMeta: given.ObjectMeta, Spec: given.Spec}
		pod.Namespace, pod.Name = part.Workload.Namespace, part.Workload.Name
		manifest.SetPodDefaults(pod)
		references.RemoveMissing(pod)
		s.pods = append(s.pods, slices.Repeat([]*v1.Pod{pod}, int(part.Pods))...)
	}
	if now, err = s.count(ctx); err != nil || !preempts {
		return now, now, err
	}
	others := *objects
	isPlaceholder := func(p *v1.Pod) bool { return p.Labels[slack.PlaceholderLabel] != "" }
	others.Running = slices.DeleteFunc(slices.Clone(objects.Running), isPlaceholder)
	if len(others.Running) == len(objects.Running) {
		return now, now, nil
	}
	s.objects = &others
	withSlack, err = s.count(ctx)
	return now, max(now, withSlack), err
}

// count returns the number of replicas that fit whether they are scheduled one after the other, or their pods in any of some orders.
func (s *sets) count(ctx context.Context) (int64, error) {
	var err error
	most, fit := int64(min(maxPlaced, maxEvaluated/max(len(s.objects.Nodes), 1))/len(s.pods)), int64(0) // fit do, and most or fewer
	for seed := uint64(0); err == nil && seed < turns; seed++ {
		most, err = s.place(ctx, slices.Repeat(s.pods, int(most)), seed)
	}
	for replicas := most; err == nil && fit < most; replicas = (fit + most + 1) / 2 {
		placed := replicas
		for seed := uint64(1); err == nil && placed == replicas && seed <= orders; seed++ {
			pods := slices.Repeat(s.pods, int(replicas))
			rand.New(rand.NewPCG(seed, 1)).Shuffle(len(pods), func(i, j int) { pods[i], pods[j] = pods[j], pods[i] })
			placed, err = s.place(ctx, pods, seed)
		}
		if placed == replicas {
			fit = replicas
		} else {
			most = replicas - 1
		}
	}
	return fit, err
}

// place places pods of replicas up to the first pod that fits on no node, and returns how many replicas it places. A seed selects among
// nodes with equal scores, as kube-scheduler does at random.
func (s *sets) place(ctx context.Context, pods []*v1.Pod, seed uint64) (int64, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	e, err := engine.State{Objects: s.objects}.Engine(ctx, s.scheduler)
	if err != nil {
		return 0, err
	}
	random := rand.New(rand.NewPCG(seed, 2))
	for i, pod := range pods {
		copied := *pod
		copied.Name = fmt.Sprint(pod.Name, "-replica-", i)
		copied.UID = types.UID(resources.Name(&copied))
		scores, err := e.Score(ctx, &copied, "")
		if err != nil {
			return 0, err
		}
		best := scores.Feasible()
		if len(best) == 0 {
			return int64(i / len(s.pods)), nil
		}
		highest := best[0].Total
		best = slices.DeleteFunc(best, func(n engine.NodeScores) bool { return n.Total < highest })
		if err := e.Place(ctx, &copied, best[random.IntN(len(best))].Name); err != nil {
			return 0, err
		}
	}
	return int64(len(pods) / len(s.pods)), nil
}
