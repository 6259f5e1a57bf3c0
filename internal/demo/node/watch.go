package node

import (
	"cmp"
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/plimsoll-k8s/plimsoll/internal/demo"
)

// Watch adds the decisions on all pods that are bound from now on to Decisions, until ctx ends. Their scores are
// those of the cluster without the pod when the decision is processed. While many pods are bound at
// once, decisions are left out. A pod whose profile does not exist gets an event that says so.
func (d *Demo) Watch(ctx context.Context) error {
	factory := informers.NewSharedInformerFactory(d.env.Client, 0)
	bound, unknown := make(chan *v1.Pod, keptDecisions), make(chan *v1.Pod, keptDecisions)
	_, err := factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) {
			if pod := object.(*v1.Pod); pod.Spec.NodeName == "" && unknownProfile(pod.Spec.SchedulerName, d.Profiles()) != "" {
				offer(unknown, pod)
			}
		},
		UpdateFunc: func(before, after any) {
			if old, pod := before.(*v1.Pod), after.(*v1.Pod); old.Spec.NodeName == "" && pod.Spec.NodeName != "" {
				offer(bound, pod)
			}
		},
	})
	if err != nil {
		return err
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	go func() {
		for {
			select {
			case pod := <-bound:
				d.addDecision(ctx, pod)
			case pod := <-unknown:
				d.recordUnknownProfile(ctx, pod)
			case <-ctx.Done():
				factory.Shutdown()
				return
			}
		}
	}()
	return nil
}

// offer sends a pod unless the channel is full.
func offer(pods chan<- *v1.Pod, pod *v1.Pod) {
	select {
	case pods <- pod:
	default:
	}
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
	d.decisions.add(decision)
}

// recordUnknownProfile creates an event on a pod that no scheduler processes, which kubectl describe
// prints.
func (d *Demo) recordUnknownProfile(ctx context.Context, pod *v1.Pod) {
	now := metav1.Now()
	_, err := d.env.Client.CoreV1().Events(pod.Namespace).Create(ctx, &v1.Event{
		ObjectMeta: metav1.ObjectMeta{GenerateName: pod.Name + "."},
		InvolvedObject: v1.ObjectReference{
			APIVersion: "v1", Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID,
		},
		Type: v1.EventTypeWarning, Reason: "NoScheduler", Message: unknownProfile(pod.Spec.SchedulerName, d.Profiles()),
		FirstTimestamp: now, LastTimestamp: now, Count: 1, Source: v1.EventSource{Component: "plimsoll-demo"},
	}, metav1.CreateOptions{})
	if err != nil && ctx.Err() == nil {
		klog.FromContext(ctx).Error(err, "Creating an event failed", "pod", klog.KObj(pod))
	}
}
