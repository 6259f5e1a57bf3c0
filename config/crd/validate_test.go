package crd

import (
	"os"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/plimsoll-k8s/plimsoll/api/placement/v1beta1"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// TestValidatePlacement validates the documents that test/integration creates in an API server: those that it refuses have an error of the
// same field, others are refused by Validate of the type, or valid.
func TestValidatePlacement(t *testing.T) {
	for _, file := range []string{"refused.yaml", "accepted.yaml"} {
		raw, err := os.ReadFile("../../api/placement/v1beta1/testdata/" + file)
		must.Succeed(t, err)
		var documents []struct {
			Name     string                `json:"name"`
			Spec     v1beta1.PlacementSpec `json:"spec"`
			CRD      string                `json:"crd"`
			Validate string                `json:"validate"`
		}
		must.Succeed(t, yaml.UnmarshalStrict(raw, &documents))
		for _, d := range documents {
			d.Spec.Default()
			errs := ValidatePlacement(&v1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "b"}, Spec: d.Spec})
			want := d.CRD
			if len(errs) == 0 {
				errs, want = d.Spec.Validate(), d.Validate
			}
			if len(errs) != min(len(want), 1) || want != "" && !strings.HasPrefix(want, errs[0].Field) {
				t.Errorf("%s: errors %v, want %s", d.Name, errs, want)
			}
		}
	}
}
