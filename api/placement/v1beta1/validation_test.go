package v1beta1

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	"sigs.k8s.io/yaml"

	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// document is a document of testdata. test/integration creates the same documents in an API
// server.
type document struct {
	Name     string        `json:"name"`
	Spec     PlacementSpec `json:"spec"`
	CRD      string        `json:"crd"`
	Validate string        `json:"validate"`
}

func documents(t *testing.T, file string) (out []document) {
	t.Helper()
	raw, err := os.ReadFile(file)
	must.Succeed(t, err)
	must.Succeed(t, yaml.UnmarshalStrict(raw, &out))
	return out
}

func TestValidate(t *testing.T) {
	for _, d := range documents(t, "testdata/refused.yaml") {
		t.Run(d.Name, func(t *testing.T) {
			d.Spec.Default()
			errs := d.Spec.Validate()
			if len(errs) != 1 || !strings.Contains(errs[0].Error(), d.Validate) {
				t.Errorf("errors %v, want %s", errs, d.Validate)
			}
		})
	}
	for _, d := range documents(t, "testdata/accepted.yaml") {
		t.Run(d.Name, func(t *testing.T) {
			d.Spec.Default()
			if errs := d.Spec.Validate(); len(errs) != 0 {
				t.Error(errs)
			}
		})
	}
}

// Validate returns all errors in the order of the fields.
func TestValidateReturnsAllErrors(t *testing.T) {
	spec := PlacementSpec{
		NumberOfClusters:  new(int32(-1)),
		Predicates:        []clusterv1beta1.ClusterPredicate{{}},
		PrioritizerPolicy: PrioritizerPolicy{Mode: "None", Configurations: []PrioritizerConfig{{}, {Name: "Best"}}},
	}
	spec.Predicates[0].RequiredClusterSelector.LabelSelector.MatchLabels = map[string]string{"b": "-", "a": "-", "c": "-"}
	spec.Default()
	var paths []string
	for _, err := range spec.Validate() {
		paths = append(paths, err.Field)
	}
	labels := "spec.predicates[0].requiredClusterSelector.labelSelector.matchLabels"
	policy := "spec.prioritizerPolicy"
	want := []string{
		"spec.numberOfClusters", labels + "[a]", labels + "[b]", labels + "[c]", policy + ".mode", policy + ".configurations[0]",
		policy + ".configurations[1].name",
	}
	if diff := cmp.Diff(want, paths); diff != "" {
		t.Error(diff)
	}
}

func TestDefault(t *testing.T) {
	var got, want PlacementSpec
	must.Succeed(t, yaml.UnmarshalStrict([]byte(`
prioritizerPolicy:
  configurations: [{name: Steady}, {scoreCoordinate: {builtIn: Balance}, weight: 0}]
spreadPolicy: {spreadConstraints: [{topologyKey: zone, topologyKeyType: Label}]}
tolerations: [{key: a}]
`), &got))
	must.Succeed(t, yaml.UnmarshalStrict([]byte(`
prioritizerPolicy:
  mode: Additive
  configurations: [{name: Steady, weight: 1}, {scoreCoordinate: {type: BuiltIn, builtIn: Balance}, weight: 0}]
spreadPolicy: {spreadConstraints: [{topologyKey: zone, topologyKeyType: Label, maxSkew: 1, whenUnsatisfiable: ScheduleAnyway}]}
tolerations: [{key: a, operator: Equal}]
decisionStrategy: {groupStrategy: {clustersPerDecisionGroup: 100%}}
sortBy: ClusterName
scoreRateLimit: 1m
`), &want))
	got.Default()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestCoordinate(t *testing.T) {
	for _, tc := range []struct {
		config PrioritizerConfig
		want   ScoreCoordinate
	}{
		{PrioritizerConfig{Name: Steady}, ScoreCoordinate{Type: BuiltIn, BuiltIn: Steady}},
		{PrioritizerConfig{ScoreCoordinate: &ScoreCoordinate{BuiltIn: Balance}}, ScoreCoordinate{Type: BuiltIn, BuiltIn: Balance}},
		{PrioritizerConfig{ScoreCoordinate: &ScoreCoordinate{Type: AddOn}}, ScoreCoordinate{Type: AddOn}},
		{PrioritizerConfig{}, ScoreCoordinate{Type: BuiltIn}},
	} {
		if got := tc.config.Coordinate(); got != tc.want {
			t.Errorf("%+v, want %+v", got, tc.want)
		}
	}
}

// The types of a hub can be registered in one scheme.
func TestAddToScheme(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, clusterv1.Install, clusterv1beta2.Install, AddToScheme, clusterv1alpha1.Install,
	} {
		must.Succeed(t, add(scheme))
	}
	for _, kind := range []string{"Placement", "PlacementList", "PlacementDecision", "PlacementDecisionList"} {
		if !scheme.Recognizes(GroupVersion.WithKind(kind)) {
			t.Error(kind)
		}
	}
}
