package engine

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestLimitations(t *testing.T) {
	pod := func(priority int32, change func(*v1.PodSpec)) *v1.Pod {
		p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "p"}, Spec: v1.PodSpec{Priority: &priority}}
		if change != nil {
			change(&p.Spec)
		}
		return p
	}
	running := []*v1.Pod{pod(0, nil), pod(5, nil), pod(10, nil)}
	never, group := v1.PreemptNever, "train"
	for name, test := range map[string]struct {
		pod      *v1.Pod
		selected string
		want     []string
	}{
		"fits":                  {pod(10, nil), "a", nil},
		"two have less than 10": {pod(10, nil), "", []string{"pod shop/p: preemption is not evaluated; 2 running pods have a lower priority"}},
		"none has less than 0":  {pod(0, nil), "", nil},
		"it never preempts":     {pod(10, func(s *v1.PodSpec) { s.PreemptionPolicy = &never }), "", nil},
		"it belongs to pod group": {
			pod(0, func(s *v1.PodSpec) { s.SchedulingGroup = &v1.PodSchedulingGroup{PodGroupName: &group} }), "a",
			[]string{"pod shop/p: evaluated alone, while kube-scheduler schedules its pod group train as a whole"},
		},
	} {
		if diff := cmp.Diff(test.want, Limitations(test.pod, test.selected, running)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
