package resources

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestWorkloadOf(t *testing.T) {
	for name, tc := range map[string]struct {
		kind, owner, hash, rollout string
		notController              bool
		want                       Workload
	}{
		"no owner": {want: Workload{"ns", "Pod", "p"}},
		"owner without control": {
			kind:          "ReplicaSet",
			owner:         "web-5d9c",
			hash:          "5d9c",
			notController: true,
			want:          Workload{"ns", "Pod", "p"},
		},
		"mirror pod":                {kind: "Node", owner: "n1", want: Workload{"ns", "Pod", "p"}},
		"Deployment":                {kind: "ReplicaSet", owner: "web-5d9c", hash: "5d9c", want: Workload{"ns", "ReplicaSet", "web"}},
		"next rollout":              {kind: "ReplicaSet", owner: "web-7f66", hash: "7f66", want: Workload{"ns", "ReplicaSet", "web"}},
		"hash without dash":         {kind: "ReplicaSet", owner: "web5d9c", hash: "5d9c", want: Workload{"ns", "ReplicaSet", "web5d9c"}},
		"another hash":              {kind: "ReplicaSet", owner: "web-5d9c", hash: "1111", want: Workload{"ns", "ReplicaSet", "web-5d9c"}},
		"Rollout":                   {kind: "ReplicaSet", owner: "web-5d9c", rollout: "5d9c", want: Workload{"ns", "ReplicaSet", "web"}},
		"ReplicaSet alone":          {kind: "ReplicaSet", owner: "web-5d9c", want: Workload{"ns", "ReplicaSet", "web-5d9c"}},
		"only a hash":               {kind: "ReplicaSet", owner: "-5d9c", hash: "5d9c", want: Workload{"ns", "ReplicaSet", "-5d9c"}},
		"StatefulSet":               {kind: "StatefulSet", owner: "db-12345678", want: Workload{"ns", "StatefulSet", "db-12345678"}},
		"Job":                       {kind: "Job", owner: "import-7", want: Workload{"ns", "Job", "import-7"}},
		"Job of a CronJob":          {kind: "Job", owner: "backup-29402345", want: Workload{"ns", "Job", "backup"}},
		"Job, only a number":        {kind: "Job", owner: "-29402345", want: Workload{"ns", "Job", "-29402345"}},
		"Job, letters":              {kind: "Job", owner: "backup-2940234x", want: Workload{"ns", "Job", "backup-2940234x"}},
		"Job, nine digits":          {kind: "Job", owner: "backup-129402345", want: Workload{"ns", "Job", "backup-129402345"}},
		"a controller of a CRD":     {kind: "Rollout", owner: "web", hash: "web", want: Workload{"ns", "Rollout", "web"}},
		"name shorter than a digit": {kind: "Job", owner: "", want: Workload{"ns", "Job", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p"}}
			pod.Labels = map[string]string{"pod-template-hash": tc.hash, RolloutHash: tc.rollout}
			if tc.kind != "" {
				pod.OwnerReferences = []metav1.OwnerReference{{Kind: tc.kind, Name: tc.owner, Controller: new(!tc.notController)}}
			}
			if got := WorkloadOf(pod); got != tc.want {
				t.Errorf("%+v, want %+v", got, tc.want)
			}
			if n := testing.AllocsPerRun(10, func() { WorkloadOf(pod) }); n != 0 {
				t.Errorf("%v allocations", n)
			}
		})
	}
}
