package config

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/json"
)

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
