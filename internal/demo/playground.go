package demo

import (
	"context"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/plimsoll-k8s/plimsoll/load"
)

// playground is what is left standing after the scenarios, to look at and to
// add pods to.
var playground = Scenario{
	Name: "playground",
	Nodes: []Node{
		{Name: "small-1", CPU: "4", Memory: "16Gi"},
		{Name: "small-2", CPU: "4", Memory: "16Gi"},
		{Name: "medium-1", CPU: "8", Memory: "32Gi"},
		{Name: "medium-2", CPU: "8", Memory: "32Gi"},
		{Name: "large-1", CPU: "32", Memory: "128Gi"},
		{Name: "large-2", CPU: "32", Memory: "128Gi"},
	},
	Running: []Pod{
		{Name: "web-1", Node: "medium-1", Request: "2", Limit: "8", MemoryRequest: "4Gi", MemoryLimit: "8Gi"},
		{Name: "web-2", Node: "medium-1", Request: "1", Limit: "6", MemoryRequest: "4Gi", MemoryLimit: "8Gi"},
		{Name: "web-3", Node: "medium-2", Request: "2", Limit: "3", MemoryRequest: "4Gi", MemoryLimit: "8Gi"},
		{Name: "batch-1", Node: "large-1", Request: "12", Limit: "40", MemoryRequest: "32Gi", MemoryLimit: "64Gi"},
		{Name: "batch-2", Node: "large-2", Request: "12", Limit: "16", MemoryRequest: "32Gi", MemoryLimit: "48Gi"},
		{Name: "cache-1", Node: "small-1", Request: "1", Limit: "1", MemoryRequest: "8Gi", MemoryLimit: "8Gi"},
	},
}

var playgroundLoad = Feed{Nodes: map[string]load.Node{
	"small-1": busy(0.15, 0.03), "small-2": busy(0.04, 0.01),
	"medium-1": busy(0.7, 0.15), "medium-2": busy(0.3, 0.05),
	"large-1": busy(0.6, 0.2), "large-2": busy(0.35, 0.04),
}}

// Play leaves a cluster to play with: nodes under load, a few pods, and the
// profiles at work on whatever comes, each decision explained; and the placements
// of the fleet scenario, where it was run.
func (d *Demo) Play(ctx context.Context) error {
	if err := d.watch(ctx); err != nil {
		return err
	}
	if _, err := d.run(ctx, playground, playground.Profile); err != nil {
		return fmt.Errorf("setting up the playground: %w", err)
	}
	if err := d.leaveFleet(ctx); err != nil {
		return err
	}
	return d.feed.Say(ctx, &playgroundLoad)
}

// watch explains the decisions on pods that did not come from a scenario. The
// scores are those of the cluster without the pod, as it is when it is bound.
func (d *Demo) watch(ctx context.Context) error {
	factory := informers.NewSharedInformerFactory(d.cluster.client, 0)
	_, err := factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		UpdateFunc: func(before, after any) {
			old, pod := before.(*v1.Pod), after.(*v1.Pod)
			if old.Spec.NodeName != "" || pod.Spec.NodeName == "" {
				return
			}
			asked := pod.DeepCopy()
			asked.Spec.NodeName = ""
			if scores, err := d.foretell(ctx, asked); err == nil {
				d.decisions.add(Decision{Time: time.Now(), Profile: pod.Spec.SchedulerName, Node: pod.Spec.NodeName, Scores: scores})
			}
		},
	})
	if err != nil {
		return err
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	return nil
}
