package doctor

import (
	"context"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/plimsoll-k8s/plimsoll/internal/kube/facts"
)

// unseenFor is how long a pod may wait without any scheduler having said a word
// about it.
const unseenFor = time.Minute

// schedulers looks for pods that name a scheduler which does not see them: it is
// not there, or no profile of it has that name. Who has seen a pod has said so in
// its condition PodScheduled.
func (x *examination) schedulers(ctx context.Context) error {
	unseen := map[string][]string{}
	waiting := 0
	options := metav1.ListOptions{Limit: page, FieldSelector: fields.AndSelectors(
		fields.OneTermEqualSelector("spec.nodeName", ""), fields.OneTermEqualSelector("status.phase", string(v1.PodPending))).String()}
	for {
		list, err := x.kube.CoreV1().Pods(metav1.NamespaceAll).List(ctx, options)
		if err != nil {
			return err
		}
		for i := range list.Items {
			pod := &list.Items[i]
			waiting++
			if x.now.Sub(pod.CreationTimestamp.Time) > unseenFor && len(pod.Spec.SchedulingGates) == 0 && !wasTried(pod) {
				unseen[pod.Spec.SchedulerName] = append(unseen[pod.Spec.SchedulerName], facts.Name(pod))
			}
		}
		if options.Continue = list.Continue; options.Continue == "" {
			break
		}
	}
	names := make([]string, 0, len(unseen))
	for name := range unseen {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		x.add(Problem, fmt.Sprintf("no scheduler has looked at %d pods that name %q in spec.schedulerName: %s", len(unseen[name]), name, some(unseen[name])),
			"name a profile of a scheduler that runs: for plimsoll-scheduler they stand under profiles, schedulerName in its configuration")
	}
	if len(names) == 0 {
		x.ok("%d pods wait for a node, all of them seen by a scheduler", waiting)
	}
	return nil
}

// wasTried reports whether a scheduler has tried to place the pod.
func wasTried(pod *v1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c v1.PodCondition) bool { return c.Type == v1.PodScheduled })
}
