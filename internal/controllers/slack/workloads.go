package slack

import (
	"context"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/slack"
)

// workloadKinds returns the kinds of workloads that can be mirrored.
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

// annotatedIndex is the name of the index of workloads with the annotation.
const annotatedIndex = "annotated"

// indexAnnotated returns the index values of a workload.
func indexAnnotated(object client.Object) []string {
	if _, ok := object.GetAnnotations()[v1alpha1.AnnotationSlack]; ok {
		return []string{"true"}
	}
	return nil
}

// workloads returns the workloads with the annotation, with the labels of their namespaces. They share memory
// with the cache and must not be modified.
func (c *Controller) workloads(ctx context.Context) ([]slack.Workload, error) {
	var objects []runtime.Object
	for _, kind := range workloadKinds() {
		if err := c.client.List(ctx, kind.list, client.MatchingFields{annotatedIndex: "true"}, client.UnsafeDisableDeepCopy); err != nil {
			return nil, err
		}
		_ = meta.EachListItem(kind.list, func(object runtime.Object) error {
			objects = append(objects, object)
			return nil
		})
	}
	all := slack.WorkloadsOf(objects)
	namespaces := map[string]map[string]string{}
	for i := range all {
		name := all[i].Namespace
		if _, known := namespaces[name]; !known {
			var namespace v1.Namespace
			if err := c.client.Get(ctx, client.ObjectKey{Name: name}, &namespace); client.IgnoreNotFound(err) != nil {
				return nil, err
			}
			// Nil for a namespace that is not yet, or no longer, in the cache.
			namespaces[name] = namespace.Labels
		}
		all[i].NamespaceLabels = namespaces[name]
	}
	return all, nil
}

// governedBy removes the workloads whose placeholders another policy holds.
func governedBy(policy string, policies []v1alpha1.ResourceSlack, workloads []slack.Workload) []slack.Workload {
	var active []*v1alpha1.ResourceSlack
	for i := range policies {
		if policies[i].DeletionTimestamp == nil {
			active = append(active, &policies[i])
		}
	}
	slices.SortFunc(active, func(a, b *v1alpha1.ResourceSlack) int { return strings.Compare(a.Name, b.Name) })
	return slices.DeleteFunc(workloads, func(w slack.Workload) bool {
		i := slack.GoverningPolicy(active, w)
		return i < 0 || active[i].Name != policy
	})
}
