package slack

import (
	"context"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/slack"
)

// workloadKinds are those whose pods can be mirrored.
func workloadKinds() []workloadKind {
	return []workloadKind{
		{&appsv1.Deployment{}, &appsv1.DeploymentList{}},
		{&appsv1.ReplicaSet{}, &appsv1.ReplicaSetList{}},
		{&appsv1.StatefulSet{}, &appsv1.StatefulSetList{}},
		{&batchv1.Job{}, &batchv1.JobList{}},
	}
}

type workloadKind struct {
	object client.Object
	list   client.ObjectList
}

// annotated is the index of the workloads that are.
const annotated = "annotated"

func indexAnnotated(object client.Object) []string {
	if _, ok := object.GetAnnotations()[v1alpha1.AnnotationSlack]; ok {
		return []string{"true"}
	}
	return nil
}

// workloads returns those that want to be mirrored.
func (c *Controller) workloads(ctx context.Context) (all []slack.Workload, err error) {
	for _, kind := range workloadKinds() {
		if err := c.client.List(ctx, kind.list, client.MatchingFields{annotated: "true"}); err != nil {
			return nil, err
		}
		err := meta.EachListItem(kind.list, func(object runtime.Object) error {
			if w, ok := slack.WorkloadOf(object); ok {
				all = append(all, w)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// whenWorkloadsChange makes all policies be looked at when one changes that is
// annotated, or was.
func (c *Controller) whenWorkloadsChange() handler.EventHandler {
	touch := func(q queue, objects ...client.Object) {
		if slices.ContainsFunc(objects, func(o client.Object) bool { return indexAnnotated(o) != nil }) {
			enqueue(q, c.all(func(*slack.Tracker) {}))
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { touch(q, e.Object) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) { touch(q, e.ObjectOld, e.ObjectNew) },
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) { touch(q, e.Object) },
	}
}

// governedBy returns the workloads whose placeholders a policy holds.
func governedBy(policy string, policies []v1alpha1.ResourceSlack, workloads []slack.Workload) []slack.Workload {
	var alive []*v1alpha1.ResourceSlack
	for i := range policies {
		if policies[i].DeletionTimestamp == nil {
			alive = append(alive, &policies[i])
		}
	}
	slices.SortFunc(alive, func(a, b *v1alpha1.ResourceSlack) int { return strings.Compare(a.Name, b.Name) })
	var governed []slack.Workload
	for _, w := range workloads {
		if i := slack.Governs(alive, w); i >= 0 && alive[i].Name == policy {
			governed = append(governed, w)
		}
	}
	return governed
}
