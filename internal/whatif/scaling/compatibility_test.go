package scaling

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
)

// TestAntiAffinityToAnyPod verifies that pods depend on each other if a pod has anti-affinity to all pods, with the empty selector, also
// if another pod has anti-affinity without a selector, which selects no pods. Both selectors have the same text.
func TestAntiAffinityToAnyPod(t *testing.T) {
	apart := func(selector *metav1.LabelSelector) recording.InputPod {
		return recording.InputPod{Object: &v1.Pod{Spec: v1.PodSpec{Affinity: &v1.Affinity{PodAntiAffinity: &v1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{{LabelSelector: selector, TopologyKey: v1.LabelHostname}},
		}}}}}
	}
	none, any := apart(nil), apart(&metav1.LabelSelector{})
	for name, tc := range map[string]struct {
		pods        []recording.InputPod
		independent bool
	}{
		"no pods":          {[]recording.InputPod{none}, true},
		"all pods":         {[]recording.InputPod{any}, false},
		"no, and all pods": {[]recording.InputPod{none, any}, false},
	} {
		if got := newCompatibility(nil, tc.pods).isIndependent(&v1.Pod{}, resources.Amounts{}); got != tc.independent {
			t.Errorf("%s: independent %t, want %t", name, got, tc.independent)
		}
	}
}
