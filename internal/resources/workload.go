package resources

import (
	"slices"
	"strings"
	"unique"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Workload identifies the pods that run the same program with the same settings. It is comparable.
type Workload struct {
	Namespace string
	// Kind and Name are the kind, such as "ReplicaSet" or "Job", and the name of the pod's controller. A pod
	// without a controller is its own workload, of kind KindPod.
	Kind, Name string
}

// WorkloadKey is a handle of a workload, which is compared and looked up fast.
type WorkloadKey = unique.Handle[Workload]

// Key returns the key of the workload.
func (w Workload) Key() WorkloadKey { return unique.Make(w) }

// KindPod is the kind of the workload of a pod without a controller.
const KindPod = "Pod"

// cronJobSuffix is the number of digits that a CronJob appends to its name for a Job: the scheduled time in
// minutes since 1970. It has eight digits from 1989 to 2160.
const cronJobSuffix = 8

// ownerOfOwner is the UID of the reference of a pod to the owner of its owner.
const ownerOfOwner = "plimsoll.dev/owner-of-owner"

// SetWorkload sets the workload of a pod whose owner has a known owner.
func SetWorkload(pod *v1.Pod, owner metav1.OwnerReference) {
	isSet := func(o metav1.OwnerReference) bool { return o.UID == ownerOfOwner }
	owner.UID, owner.Controller = ownerOfOwner, nil
	pod.OwnerReferences = append(slices.DeleteFunc(slices.Clone(pod.OwnerReferences), isSet), owner)
}

// RolloutHash is the label with the hash of the template of a Rollout of Argo.
const RolloutHash = "rollouts-pod-template-hash"

// WorkloadOf returns the workload of a pod, so that it survives rollouts and restarts: what SetWorkload has set, or else the name of a
// ReplicaSet is without the pod template hash, and the name of a Job without the number that a CronJob appends. Each mirror pod is its own
// workload, because its controller is its node.
func WorkloadOf(pod *v1.Pod) Workload {
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil || owner.Kind == "Node" {
		return Workload{pod.Namespace, KindPod, pod.Name}
	}
	name := owner.Name
	if last := &pod.OwnerReferences[len(pod.OwnerReferences)-1]; last.UID == ownerOfOwner {
		return Workload{pod.Namespace, last.Kind, last.Name}
	}
	switch owner.Kind {
	case "ReplicaSet":
		name = withoutHash(withoutHash(name, pod.Labels["pod-template-hash"]), pod.Labels[RolloutHash])
	case "Job":
		name = withoutNumber(name)
	}
	return Workload{pod.Namespace, owner.Kind, name}
}

// withoutHash returns a name without a dash and the hash at its end: of a ReplicaSet and its pod template hash, the name of the Deployment.
// It returns the name if it does not end with them.
func withoutHash(name, hash string) string {
	base, found := strings.CutSuffix(name, hash)
	if hash == "" || !found || len(base) < 2 || !strings.HasSuffix(base, "-") {
		return name
	}
	return base[:len(base)-1]
}

// withoutNumber returns a name without the number that a CronJob appends.
func withoutNumber(name string) string {
	dash := len(name) - cronJobSuffix - 1
	if dash < 1 || name[dash] != '-' {
		return name
	}
	for _, c := range []byte(name[dash+1:]) {
		if c < '0' || c > '9' {
			return name
		}
	}
	return name[:dash]
}
