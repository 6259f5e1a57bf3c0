package config

import (
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/json"
)

// pluginArgs is what the arguments of every plugin can do.
type pluginArgs[T any] interface {
	*T
	runtime.Object
	Default()
	Validate() error
}

// Arguments returns the arguments of a plugin with their defaults filled in,
// or what is wrong with them. obj is what the scheduler framework passes to the
// plugin's constructor: the arguments themselves, nil if there are none, or
// undecoded JSON in schedulers that read their configuration without this
// package's registration. obj is not changed.
func Arguments[T any, P pluginArgs[T]](obj runtime.Object) (*T, error) {
	args := P(new(T))
	switch given := obj.(type) {
	case nil:
	case P:
		if given != nil {
			args = given.DeepCopyObject().(P)
		}
	case *runtime.Unknown:
		strict, err := json.UnmarshalStrict(given.Raw, args)
		if err := errors.Join(append(strict, err)...); err != nil {
			return nil, err
		}
	default:
		return nil, fmt.Errorf("want %T, got %T", args, obj)
	}
	args.Default()
	if err := args.Validate(); err != nil {
		return nil, err
	}
	return args, nil
}

// LimitWeight returns how much the limits of a resource count against its
// load, in [0, 1].
func (a *LowRiskOverCommitmentArgs) LimitWeight(resource v1.ResourceName) float64 {
	if weight, ok := a.RiskLimitWeights[string(resource)]; ok {
		return weight
	}
	return *a.RiskLimitWeight
}
