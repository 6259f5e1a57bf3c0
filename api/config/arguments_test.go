package config

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

func unknown(raw string) runtime.Object { return &runtime.Unknown{Raw: []byte(raw)} }

func TestArguments(t *testing.T) {
	cpu, memory := ResourceWeight{"cpu", new(int64(1))}, ResourceWeight{"memory", new(int64(1))}
	for name, tc := range map[string]struct {
		given   runtime.Object
		want    *NodeResourcesLimitsArgs
		wantErr string
	}{
		"none": {nil, &NodeResourcesLimitsArgs{Resources: []ResourceWeight{cpu, memory}}, ""},
		"decoded": {
			&NodeResourcesLimitsArgs{Resources: []ResourceWeight{{Name: "cpu"}}},
			&NodeResourcesLimitsArgs{Resources: []ResourceWeight{cpu}}, "",
		},
		"undecoded": {unknown(`{"resources": [{"name": "cpu"}]}`), &NodeResourcesLimitsArgs{Resources: []ResourceWeight{cpu}}, ""},
		"undecoded, with defaults": {
			unknown(`{"defaultLimits": {"cpu": "500m"}}`),
			&NodeResourcesLimitsArgs{
				Resources:     []ResourceWeight{cpu, memory},
				DefaultLimits: map[string]resource.Quantity{"cpu": resource.MustParse("500m")},
			}, "",
		},
		"undecoded, an unknown field": {unknown(`{"resources": [], "defaultLimit": {}}`), nil, `unknown field "defaultLimit"`},
		"undecoded, invalid": {
			unknown(`{"resources": [{"name": "cpu", "weight": 0}]}`), nil,
			"resources[0].weight: Invalid value: 0: " + allowedWeights,
		},
		"another plugin's": {
			&NodeResourcesAllocatableArgs{}, nil,
			"found a *config.NodeResourcesAllocatableArgs: must be a *config.NodeResourcesLimitsArgs",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var before runtime.Object
			if tc.given != nil {
				before = tc.given.DeepCopyObject()
			}
			got, err := Arguments[NodeResourcesLimitsArgs](tc.given)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
			if message := errorText(err); message != tc.wantErr {
				t.Errorf("error:\n%s\nwant:\n%s", message, tc.wantErr)
			}
			if diff := cmp.Diff(before, tc.given); diff != "" {
				t.Errorf("the given object was modified: %s", diff)
			}
		})
	}
}

// Changing the returned arguments does not change the given ones, which profiles may share.
func TestArgumentsAreACopy(t *testing.T) {
	given := &LowRiskOverCommitmentArgs{RiskLimitWeights: map[string]float64{"cpu": 0.1}, RiskLimitWeight: new(0.2)}
	args, err := Arguments[LowRiskOverCommitmentArgs](given)
	must.Succeed(t, err)
	args.RiskLimitWeights["cpu"], *args.RiskLimitWeight = 0.8, 0.9
	want := &LowRiskOverCommitmentArgs{RiskLimitWeights: map[string]float64{"cpu": 0.1}, RiskLimitWeight: new(0.2)}
	if diff := cmp.Diff(want, given); diff != "" {
		t.Error(diff)
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
