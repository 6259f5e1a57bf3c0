package input

import (
	"fmt"
	"hash/fnv"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/plimsoll-k8s/plimsoll/internal/whatif/trace"
)

// workload owns the pods of a group of a trace, as the controllers of Kubernetes do: a ReplicaSet of a Deployment,
// or a Job.
//
// kube-scheduler spreads the pods of a ReplicaSet over nodes and zones by default (PodTopologySpread with
// its system defaults). It finds them by the selector of the ReplicaSet that the owner reference names. A Service
// would select the same pods and change nothing. Jobs have no selector that kube-scheduler looks at.
type workload struct {
	labels map[string]string
	owners []metav1.OwnerReference
	// object is the ReplicaSet, nil for a Job.
	object runtime.Object
}

// newWorkload returns the workload of a group.
func newWorkload(p *trace.Pod, number int) *workload {
	app := p.Group
	if len(validation.IsValidLabelValue(app)) > 0 {
		app = fmt.Sprintf("group-%d", number)
	}
	owner := metav1.OwnerReference{Name: p.Group, UID: types.UID(fmt.Sprintf("workload-%d", number)), Controller: new(true)}
	w := &workload{labels: map[string]string{"app": app}}
	if p.Batch {
		owner.APIVersion, owner.Kind = batchv1.SchemeGroupVersion.String(), "Job"
		w.owners = []metav1.OwnerReference{owner}
		return w
	}
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(p.Group)) // never fails
	text := rand.SafeEncodeString(fmt.Sprint(hash.Sum32()))
	w.labels[appsv1.DefaultDeploymentUniqueLabelKey] = text
	owner.APIVersion, owner.Kind, owner.Name = appsv1.SchemeGroupVersion.String(), "ReplicaSet", p.Group+"-"+text
	w.owners = []metav1.OwnerReference{owner}
	w.object = &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: owner.Name, Namespace: v1.NamespaceDefault, UID: owner.UID, Labels: w.labels},
		Spec:       appsv1.ReplicaSetSpec{Selector: &metav1.LabelSelector{MatchLabels: w.labels}},
	}
	return w
}
