package doctor

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/plimsoll-k8s/plimsoll/internal/format"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// conditionTimeout is the age at which a pending pod must have a condition from a scheduler.
const conditionTimeout = time.Minute

// checkSchedulers checks for pending pods that no scheduler has tried to schedule: the scheduler in
// spec.schedulerName does not run, or has no profile with this name.
func (e *examination) checkSchedulers(ctx context.Context) error {
	ignored := map[string][]string{}
	pending := 0
	options := metav1.ListOptions{Limit: pageSize, FieldSelector: fields.AndSelectors(
		fields.OneTermEqualSelector("spec.nodeName", ""), fields.OneTermEqualSelector("status.phase", string(v1.PodPending))).String()}
	for {
		list, err := e.kube.CoreV1().Pods(metav1.NamespaceAll).List(ctx, options)
		if err != nil {
			return err
		}
		for i := range list.Items {
			pod := &list.Items[i]
			pending++
			if e.now.Sub(pod.CreationTimestamp.Time) > conditionTimeout && len(pod.Spec.SchedulingGates) == 0 && !isAttempted(pod) {
				ignored[pod.Spec.SchedulerName] = append(ignored[pod.Spec.SchedulerName], resources.Name(pod))
			}
		}
		if options.Continue = list.Continue; options.Continue == "" {
			break
		}
	}
	names := slices.Sorted(maps.Keys(ignored))
	for _, name := range names {
		e.add(Problem, fmt.Sprintf("no scheduler has processed %s with %q in spec.schedulerName: %s",
			format.Of(len(ignored[name]), "pod"), name, abbreviate(ignored[name])),
			"set spec.schedulerName to a profile of a running scheduler (see profiles in the configuration of plimsoll-scheduler)")
	}
	if len(names) == 0 {
		e.ok("%s pending, all processed by a scheduler or new", format.Are(pending, "pod"))
	}
	return nil
}

// isAttempted reports whether a scheduler has tried to schedule the pod, which sets PodScheduled.
func isAttempted(pod *v1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c v1.PodCondition) bool { return c.Type == v1.PodScheduled })
}
