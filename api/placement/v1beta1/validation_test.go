package v1beta1

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	"sigs.k8s.io/yaml"

	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

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
