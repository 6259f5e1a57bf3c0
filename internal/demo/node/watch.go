package node

import (
	"cmp"
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/plimsoll-k8s/plimsoll/internal/demo"
)

// Watch replaces Decisions by the decisions on all pods that are bound from now on, until ctx ends. Their
// scores are computed for the cluster without the pod when the decision is processed. While many pods are
// bound at once, decisions are left out.
func (d *Demo) Watch(ctx context.Context) error {
	d.mu.Lock()
	d.decisions = nil
	d.mu.Unlock()
	factory := informers.NewSharedInformerFactory(d.env.Client, 0)
	bound := make(chan *v1.Pod, keptDecisions)
	_, err := factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		UpdateFunc: func(before, after any) {
			old, pod := before.(*v1.Pod), after.(*v1.Pod)
			if old.Spec.NodeName != "" || pod.Spec.NodeName == "" {
				return
			}
			select {
			case bound <- pod:
			default:
			}
		},
	})
	if err != nil {
		return err
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	go func() {
		defer factory.Shutdown()
		for {
			select {
			case pod := <-bound:
				d.addDecision(ctx, pod)
			case <-ctx.Done():
				return
			}
		}
	}()
	return nil
}

// addDecision adds the decision on a bound pod.
func (d *Demo) addDecision(ctx context.Context, pod *v1.Pod) {
	unbound := pod.DeepCopy()
	unbound.Spec.NodeName = ""
	scores, err := d.predict(ctx, unbound)
	if err != nil {
		return
	}
	decision := Decision{Time: time.Now(), Profile: pod.Spec.SchedulerName, Node: pod.Spec.NodeName, Scores: scores}
	if decision.Profile != demo.DefaultProfile {
		unbound.Spec.SchedulerName = demo.DefaultProfile
		if byDefault, err := d.predict(ctx, unbound); err == nil {
			decision.Default = cmp.Or(byDefault.Selected, "no node")
		}
	}
	d.add(decision)
}
