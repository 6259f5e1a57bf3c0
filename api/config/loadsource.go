package config

import (
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/plimsoll-k8s/plimsoll/api/metricprovider"
)

// validateLoadSource validates the arguments of a plugin that reads load.
func validateLoadSource(watcherAddress string, provider metricprovider.Config, pollInterval, maxLoadAge time.Duration) field.ErrorList {
	var errs field.ErrorList
	if pollInterval < 100*time.Millisecond {
		errs = append(errs, field.Invalid(field.NewPath("pollInterval"), pollInterval.String(), "must be at least 100ms"))
	}
	path := field.NewPath("maxLoadAge")
	switch {
	case maxLoadAge < time.Second:
		errs = append(errs, field.Invalid(path, maxLoadAge.String(), "must be at least 1s"))
	case maxLoadAge < pollInterval:
		errs = append(errs, field.Invalid(path, maxLoadAge.String(), fmt.Sprintf("must be at least pollInterval (%s)", pollInterval)))
	}
	path = field.NewPath("metricProvider")
	if watcherAddress != "" {
		example := metricprovider.ExampleAddresses[metricprovider.Service]
		errs = append(errs, validateURL(field.NewPath("watcherAddress"), watcherAddress, example)...)
		if provider != (metricprovider.Config{}) {
			errs = append(errs, field.Forbidden(path, "must not be set together with watcherAddress"))
		}
	}
	return append(errs, validateProvider(path, provider, metricprovider.Types)...)
}

// validateProvider validates a metric provider, which must be of one of the types.
func validateProvider(path *field.Path, p metricprovider.Config, types []string) field.ErrorList {
	var errs field.ErrorList
	example := metricprovider.ExampleAddresses[p.Type]
	switch {
	case p == metricprovider.Config{}:
		return nil
	case !slices.Contains(types, p.Type):
		errs = append(errs, field.NotSupported(path.Child("type"), p.Type, types))
	case p.Type == metricprovider.File && !filepath.IsAbs(p.Address):
		errs = append(errs, field.Invalid(path.Child("address"), p.Address, "must be the absolute path of a file"))
	case example != "":
		errs = append(errs, validateURL(path.Child("address"), p.Address, example)...)
	}
	if p.Token != "" && p.TokenFile != "" {
		errs = append(errs, field.Forbidden(path.Child("token"), "must not be set together with tokenFile"))
	}
	return errs
}

// validateObjectName validates the namespace and the name of an object, empty for none.
func validateObjectName(path *field.Path, value string) field.ErrorList {
	if value == "" {
		return nil
	}
	namespace, name, found := strings.Cut(value, "/")
	if !found || len(validation.IsDNS1123Label(namespace)) > 0 || len(validation.IsDNS1123Subdomain(name)) > 0 {
		return field.ErrorList{field.Invalid(path, value, "must be NAMESPACE/NAME")}
	}
	return nil
}

func validateURL(path *field.Path, address, example string) field.ErrorList {
	u, err := url.Parse(address)
	if err != nil {
		u = &url.URL{}
	}
	if problem := metricprovider.URLProblem(u, example); problem != "" {
		return field.ErrorList{field.Invalid(path, address, problem)}
	}
	return nil
}
