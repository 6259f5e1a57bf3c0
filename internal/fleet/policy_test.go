package fleet

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/plimsoll-k8s/plimsoll/internal/fleet/decide"
)

// compilePolicy reports each invalid value with its field: errors of the CRD, of Validate, and of expressions; TestValidatePlacement of
// config/crd has all rules of the first two. The result has a condition with that message and keeps the decisions.
func TestInvalidSpecs(t *testing.T) {
	for name, tc := range map[string]struct{ spec, want string }{
		"negative number": {`numberOfClusters: -1`, "spec.numberOfClusters"},
		"value of 253 characters": {
			`predicates: [{requiredClusterSelector: {labelSelector: {matchLabels: {a: ` + strings.Repeat("a", 253) + `}}}}]`,
			"spec.predicates[0].requiredClusterSelector.labelSelector.matchLabels[a]",
		},
		"CEL syntax error": {
			`predicates: [{requiredClusterSelector: {celSelector: {celExpressions: ["true", "1 +"]}}}]`,
			"spec.predicates[0].requiredClusterSelector.celSelector.celExpressions[1]",
		},
		"CEL with unknown variable": {
			`predicates: [{}, {requiredClusterSelector: {celSelector: {celExpressions: ["cluster.name == 'a'"]}}}]`,
			"spec.predicates[1].requiredClusterSelector.celSelector.celExpressions[0]",
		},
		"CEL that is not boolean": {
			`predicates: [{requiredClusterSelector: {celSelector: {celExpressions: ["1 + 1"]}}}]`, "must be true or false",
		},
		// The first five of seven errors.
		"many errors": {
			"{numberOfClusters: -1, sortBy: Size, scoreRateLimit: often, " +
				"tolerations: [{key: a, effect: x}, {key: b, effect: x}, {key: c, effect: x}, {key: d, effect: x}]}", "and 2 more",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := hub("a", "b")
			s.SetPlacement(newPlacement(t, "p", `numberOfClusters: 1`))
			decideNow(t, s, "p")
			changed := newPlacement(t, "p", tc.spec)
			changed.Generation = 2
			s.SetPlacement(changed)
			v := decideNow(t, s, "p")
			if !v.KeepDecisions || len(v.Conditions) != 2 || v.Conditions[0].Reason != reasonMisconfigured ||
				!strings.Contains(v.Conditions[0].Message, tc.want) || v.Conditions[0].ObservedGeneration != 2 {
				t.Errorf("keeps %t, %+v", v.KeepDecisions, v.Conditions)
			}
			if got := s.placements[keyOf("p")].selected; !slices.Equal(got, []string{"a"}) {
				t.Errorf("selected clusters %v, want [a]", got)
			}
		})
	}
}

// The name of a placement becomes a label value, which has at most 63 characters.
func TestLongNames(t *testing.T) {
	for n, fails := range map[int]bool{63: false, 64: true} {
		p := newPlacement(t, strings.Repeat("a", n), `{}`)
		_, errs := compilePolicy(p)
		if (len(errs) > 0) != fails || fails && errs[0].Field != "metadata.name" {
			t.Errorf("%d characters: %v", n, errs)
		}
		s := hub("a")
		s.SetPlacement(p)
		if r, ok := s.Decide(types.NamespacedName{Namespace: "ns", Name: p.Name}, now); !ok || r.KeepDecisions != fails {
			t.Errorf("%d characters: keeps decisions %t", n, r.KeepDecisions)
		}
	}
}

func TestPrioritizers(t *testing.T) {
	addOn := `{scoreCoordinate: {type: AddOn, addOn: {resourceName: plimsoll, scoreName: freeCPU}}, weight: -3}`
	for name, tc := range map[string]struct {
		policy  string
		names   []string
		weights []int32
	}{
		"defaults": {`{}`, []string{"Balance", "Steady"}, []int32{1, 1}},
		"by coordinate": {
			`{configurations: [{scoreCoordinate: {builtIn: ResourceRatioCPU}}]}`,
			[]string{"Balance", "Steady", "ResourceRatioCPU"},
			[]int32{1, 1, 1},
		},
		"default with another weight": {`{configurations: [{name: Steady, weight: 3}]}`, []string{"Balance", "Steady"}, []int32{1, 3}},
		"exact":                       {`{mode: Exact, configurations: [` + addOn + `]}`, []string{"AddOn/plimsoll/freeCPU"}, []int32{-3}},
		"last weight counts": {
			`{configurations: [{name: Steady, weight: 5}, {name: Balance, weight: 4}, {scoreCoordinate: {builtIn: Steady}, weight: 3}]}`,
			[]string{"Steady", "Balance"},
			[]int32{3, 4},
		},
		"weights of an add-on are added": {
			`{mode: Exact, configurations: [` + addOn + `, ` + addOn + `]}`, []string{"AddOn/plimsoll/freeCPU"}, []int32{-6},
		},
	} {
		p, errs := compilePolicy(newPlacement(t, "p", "prioritizerPolicy: "+tc.policy))
		if len(errs) > 0 {
			t.Fatal(name, errs)
		}
		names, weights := p.Prioritizers()
		if !slices.Equal(names, tc.names) || !slices.Equal(weights, tc.weights) {
			t.Errorf("%s: %v %v, want %v %v", name, names, weights, tc.names, tc.weights)
		}
	}
}

// A prioritizer that is listed repeatedly is valid; the condition has a warning.
func TestRepeatedPrioritizers(t *testing.T) {
	s := hub("a")
	s.SetPlacement(
		newPlacement(t, "p", `prioritizerPolicy: {configurations: [{name: Steady}, {name: Balance}, {name: Steady, weight: 3}]}`),
	)
	r := decideNow(t, s, "p")
	const want = "spec.prioritizerPolicy.configurations[2]: Steady is listed repeatedly: its last weight counts, which is 3"
	if c := r.Conditions[0]; c.Reason != reasonConfigured || c.Message != "the spec is valid; warning: "+want {
		t.Errorf("%+v", c)
	}
	if !slices.Equal(r.Warnings, []string{want}) {
		t.Errorf("%q", r.Warnings)
	}
	s.SetPlacement(newPlacement(t, "q", `prioritizerPolicy: {configurations: [{name: Steady}, {name: FitReplicas}]}`))
	if r := decideNow(t, s, "q"); len(r.Warnings) != 1 ||
		!strings.HasPrefix(r.Warnings[0], "FitReplicas, FitWait and FitCost have no data") {
		t.Errorf("%q", r.Warnings)
	}
}

// The fields that can affect a placement follow from its spec. With too few fields, changes
// are missed; with too many, the placement is decided after irrelevant changes.
func TestFieldsOfPolicy(t *testing.T) {
	const always = existence | labelFields | taintFields
	for spec, want := range map[string]fieldMask{
		`{}`: always,
		`prioritizerPolicy: {configurations: [{name: ResourceRatioCPU}]}`:               always | amountFields,
		`prioritizerPolicy: {configurations: [{name: ResourceRatioMemory, weight: 0}]}`: always,
		`prioritizerPolicy: {configurations: [{name: ResourceAllocatableMemory}]}`:      always | amountFields,
		`prioritizerPolicy: {configurations: [{scoreCoordinate: {type: AddOn, addOn: {resourceName: a, scoreName: b}}}]}`: always |
			scoreFields,
		`predicates: [{requiredClusterSelector: {celSelector: {celExpressions: ["has(managedCluster.metadata)"]}}}]`: always |
			amountFields | scoreFields | otherFields,
		`prioritizerPolicy: {mode: Exact, configurations: [{name: Steady}, {name: Balance}]}`: always,
	} {
		p, errs := compilePolicy(newPlacement(t, "p", spec))
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		if p.fields != want {
			t.Errorf("%s: %b, want %b", spec, p.fields, want)
		}
	}
}

// A spec with all fields is compiled.
func TestCompile(t *testing.T) {
	p, errs := compilePolicy(newPlacement(t, "p", `
clusterSets: [web]
numberOfClusters: 2147483647
predicates:
- requiredClusterSelector:
    labelSelector: {matchLabels: {zone: a}, matchExpressions: [{key: tier, operator: NotIn, values: [x, z]}]}
    claimSelector: {matchExpressions: [{key: platform, operator: Exists}, {key: old, operator: DoesNotExist}]}
tolerations: [{key: a, operator: Exists, effect: NoSelect, tolerationSeconds: 3153600000}, {key: b, value: c}]
spreadPolicy:
  spreadConstraints:
  - {topologyKey: zone, topologyKeyType: Claim, maxSkew: 2, whenUnsatisfiable: DoNotSchedule}
  - {topologyKey: region, topologyKeyType: Label}
decisionStrategy:
  groupStrategy:
    clustersPerDecisionGroup: 28%
    decisionGroups: [{groupName: canary, groupClusterSelector: {labelSelector: {matchLabels: {canary: "1"}}}}]
sortBy: Score
`))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	selectors := []string{
		p.request.Predicates[0].Labels.String(),
		p.request.Predicates[0].Claims.String(),
		p.request.Groups[0].Name,
		p.request.Groups[0].Labels.String(),
	}
	if diff := cmp.Diff([]string{"tier notin (x,z),zone=a", "!old,platform", "canary", "canary=1"}, selectors); diff != "" {
		t.Error(diff)
	}
	p.request.Prioritizers, p.addOns, p.fields = nil, nil, 0 // covered by the tests above
	p.request.Predicates, p.request.Groups, p.expressions = nil, nil, nil
	want := &placementPolicy{sets: []string{"web"}, request: decide.Request{
		Number: 1<<31 - 1, SortByScore: true,
		Tolerations: []clusterv1beta1.Toleration{
			{
				Key:               "a",
				Operator:          clusterv1beta1.TolerationOpExists,
				Effect:            clusterv1.TaintEffectNoSelect,
				TolerationSeconds: new(int64(3153600000)),
			},
			{Key: "b", Operator: clusterv1beta1.TolerationOpEqual, Value: "c"},
		},
		Spread: []clusterv1beta1.SpreadConstraintsTerm{
			{
				TopologyKey: "zone", TopologyKeyType: clusterv1beta1.TopologyKeyTypeClaim, MaxSkew: 2,
				WhenUnsatisfiable: clusterv1beta1.DoNotSchedule,
			},
			{
				TopologyKey: "region", TopologyKeyType: clusterv1beta1.TopologyKeyTypeLabel, MaxSkew: 1,
				WhenUnsatisfiable: clusterv1beta1.ScheduleAnyway,
			},
		},
		GroupSize: intstr.FromString("28%"),
	}}
	if diff := cmp.Diff(want, p, cmp.AllowUnexported(placementPolicy{})); diff != "" {
		t.Error(diff)
	}
}
