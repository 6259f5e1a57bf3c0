package config

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func seconds(n int) *metav1.Duration {
	return &metav1.Duration{Duration: time.Duration(n) * time.Second}
}

func TestDefault(t *testing.T) {
	type args interface {
		Default()
		Validate() error
	}
	for name, tc := range map[string]struct{ given, want args }{
		"NodeResourcesAllocatable": {
			&NodeResourcesAllocatableArgs{},
			&NodeResourcesAllocatableArgs{
				Mode: Least, Resources: []ResourceWeight{{"cpu", new(int64(1048576))}, {"memory", new(int64(1))}},
			},
		},
		"NodeResourcesAllocatable without a weight": {
			&NodeResourcesAllocatableArgs{Mode: Most, Resources: []ResourceWeight{{"cpu", nil}, {"nvidia.com/gpu", new(int64(7))}}},
			&NodeResourcesAllocatableArgs{
				Mode: Most, Resources: []ResourceWeight{{"cpu", new(int64(1))}, {"nvidia.com/gpu", new(int64(7))}},
			},
		},
		"NodeResourcesLimits": {
			&NodeResourcesLimitsArgs{},
			&NodeResourcesLimitsArgs{Resources: []ResourceWeight{{"cpu", new(int64(1))}, {"memory", new(int64(1))}}},
		},
		"NodeResourcesLimits with an empty list": {
			&NodeResourcesLimitsArgs{
				Resources: []ResourceWeight{}, DefaultLimits: map[string]resource.Quantity{"cpu": resource.MustParse("2")},
			},
			&NodeResourcesLimitsArgs{
				Resources:     []ResourceWeight{{"cpu", new(int64(1))}, {"memory", new(int64(1))}},
				DefaultLimits: map[string]resource.Quantity{"cpu": resource.MustParse("2")},
			},
		},
		"LowRiskOverCommitment": {
			&LowRiskOverCommitmentArgs{},
			&LowRiskOverCommitmentArgs{
				SmoothingWindowSize: new(int64(5)), RiskLimitWeight: new(0.5), PollInterval: seconds(30),
				MaxLoadAge: seconds(300), CountRecentPods: new(true),
			},
		},
		"LowRiskOverCommitment with all fields": {
			&LowRiskOverCommitmentArgs{
				SmoothingWindowSize: new(int64(1)), RiskLimitWeight: new(0.0), RiskLimitWeights: map[string]float64{"cpu": 1},
				WatcherAddress: "http://load-watcher:2020", PollInterval: seconds(1), MaxLoadAge: seconds(2), CountRecentPods: new(false),
			},
			&LowRiskOverCommitmentArgs{
				SmoothingWindowSize: new(int64(1)), RiskLimitWeight: new(0.0), RiskLimitWeights: map[string]float64{"cpu": 1},
				WatcherAddress: "http://load-watcher:2020", PollInterval: seconds(1), MaxLoadAge: seconds(2), CountRecentPods: new(false),
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			tc.given.Default()
			if diff := cmp.Diff(tc.want, tc.given); diff != "" {
				t.Error(diff)
			}
			if err := tc.given.Validate(); err != nil {
				t.Errorf("invalid: %v", err)
			}
			tc.given.Default()
			if diff := cmp.Diff(tc.want, tc.given); diff != "" {
				t.Errorf("setting the defaults again changes the arguments: %s", diff)
			}
		})
	}
}

// Arguments do not share pointers to defaults.
func TestDefaultsAreNotShared(t *testing.T) {
	var a, b LowRiskOverCommitmentArgs
	a.Default()
	b.Default()
	*a.SmoothingWindowSize, *a.RiskLimitWeight, a.PollInterval.Duration = 99, 0.99, 99
	var c, d NodeResourcesLimitsArgs
	c.Default()
	d.Default()
	*c.Resources[0].Weight = 99
	if *b.SmoothingWindowSize != 5 || *b.RiskLimitWeight != 0.5 || *b.PollInterval != *seconds(30) || *d.Resources[0].Weight != 1 {
		t.Errorf("other arguments were changed: %+v, %+v", b, d)
	}
}

func TestLimitWeight(t *testing.T) {
	args := LowRiskOverCommitmentArgs{RiskLimitWeight: new(0.25), RiskLimitWeights: map[string]float64{"memory": 0}}
	if cpu, memory := args.LimitWeight("cpu"), args.LimitWeight("memory"); cpu != 0.25 || memory != 0 {
		t.Errorf("cpu %v, memory %v, want 0.25, 0", cpu, memory)
	}
}
