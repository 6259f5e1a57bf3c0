package config

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	configv1 "k8s.io/kube-scheduler/config/v1"
	internalconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	internalv1 "k8s.io/kubernetes/pkg/scheduler/apis/config/v1"
	"sigs.k8s.io/json"
)

// allArgs returns the arguments of all plugins. One Go type is used for every version of the
// configuration, including the internal one, so no conversion is needed.
func allArgs() []runtime.Object {
	return []runtime.Object{
		&NodeResourcesAllocatableArgs{},
		&NodeResourcesLimitsArgs{},
		&LowRiskOverCommitmentArgs{},
		&PredictedUtilizationArgs{},
	}
}

// Defaults returns the arguments of all plugins with their defaults, by the names of the plugins.
func Defaults() map[string]runtime.Object {
	defaults := map[string]runtime.Object{}
	for _, args := range allArgs() {
		args.(interface{ Default() }).Default()
		defaults[strings.TrimSuffix(reflect.TypeOf(args).Elem().Name(), "Args")] = args
	}
	return defaults
}

// addToScheme registers the arguments of all plugins, with their defaults, in every version of the
// scheduler configuration.
func addToScheme(s *runtime.Scheme) {
	versions := append([]schema.GroupVersion{configv1.SchemeGroupVersion, internalconfig.SchemeGroupVersion}, legacyVersions...)
	for _, version := range versions {
		s.AddKnownTypes(version, allArgs()...)
	}
	for _, obj := range allArgs() {
		s.AddTypeDefaultingFunc(obj, func(obj any) { obj.(interface{ Default() }).Default() })
	}
}

// init registers the arguments with the schemes that kube-scheduler decodes its configuration with.
// kube-scheduler has no other way to register the arguments of out-of-tree plugins.
func init() {
	for _, s := range []*runtime.Scheme{scheme.Scheme, internalv1.GetPluginArgConversionScheme()} {
		addToScheme(s)
	}
	utilruntime.Must(addLegacyToScheme(scheme.Scheme))
}

// pluginArgs is implemented by the arguments of every plugin.
type pluginArgs[T any] interface {
	*T
	runtime.Object
	Default()
	Validate() error
}

// Arguments returns the arguments of a plugin with their defaults, or an error if they are invalid.
// obj is the object that the scheduler framework passes to the constructor of the plugin: the
// arguments, nil if there are none, or undecoded JSON in a scheduler whose configuration scheme does
// not include this package. obj is not modified.
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
		return nil, fmt.Errorf("found a %T: must be a %T", obj, args)
	}
	args.Default()
	if err := args.Validate(); err != nil {
		return nil, err
	}
	return args, nil
}

// setDefault sets a field that is nil.
func setDefault[T any](field **T, value T) {
	if *field == nil {
		*field = &value
	}
}
