package kinds

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// TestSlackSpecIsKept checks that a snapshot has all fields of the spec of a ResourceSlack, and a redacted one all but names.
func TestSlackSpecIsKept(t *testing.T) {
	spec := v1alpha1.ResourceSlackSpec{
		MinRate: "30%", Base: v1alpha1.BaseRequested, Granularity: new(int32(7)), CoverBiggestPod: new(true),
		Pool: v1alpha1.Pool{
			NodeSelector: map[string]string{"pool": "web"},
			Tolerations:  []v1.Toleration{{Key: "dedicated", Operator: v1.TolerationOpExists, Effect: v1.TaintEffectNoSchedule}},
			Devices:      []string{"nvidia.com/gpu"},
		},
		MaxPlaceholders: new(int32(50)),
		Mirrors: v1alpha1.Mirrors{
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "web"}},
			MaxPerWorkload:    new(int32(3)), MaxPerNamespace: new(int32(9)),
		},
		Backend: v1alpha1.BackendCapacityBuffer, PriorityClassName: "slack",
		Minimum: &v1alpha1.Amount{CPU: new(resource.MustParse("8")), Memory: new(resource.MustParse("32Gi")), Placeholders: new(int32(2))},
		Maximum: &v1alpha1.Amount{CPU: new(resource.MustParse("80"))},
		Schedules: []v1alpha1.Schedule{{
			Days: "Mon-Fri", From: "07:30", To: "19:00", TimeZone: "Europe/Berlin", MinRate: "20%",
			Minimum: &v1alpha1.Amount{CPU: new(resource.MustParse("16"))},
		}},
		Spread:               &v1alpha1.Spread{TopologyKey: "topology.kubernetes.io/zone", MinPerDomain: new(int32(1))},
		ProvisioningStrategy: "buffer.x-k8s.io/active-capacity",
	}
	for i, value := 0, reflect.ValueOf(spec); i < value.NumField(); i++ {
		if value.Field(i).IsZero() {
			t.Errorf("the test does not set %s", value.Type().Field(i).Name)
		}
	}
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&v1alpha1.ResourceSlack{Spec: spec})
	must.Succeed(t, err)
	kept, err := Of(plimsollGroup, v1alpha1.Kind).Trim(object)
	must.Succeed(t, err)
	redacted, err := NewRedactor([]byte("k")).Redact(kept)
	must.Succeed(t, err)
	for name, snapshot := range map[string]Object{"plain": kept, "redacted": redacted} {
		var got v1alpha1.ResourceSlack
		must.Succeed(t, json.Unmarshal(snapshot.JSON, &got))
		if name == "redacted" { // these are names
			got.Spec.Pool.NodeSelector, got.Spec.Pool.Tolerations = spec.Pool.NodeSelector, spec.Pool.Tolerations
			got.Spec.Mirrors.NamespaceSelector, got.Spec.PriorityClassName = spec.Mirrors.NamespaceSelector, spec.PriorityClassName
		}
		if diff := cmp.Diff(spec, got.Spec); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
