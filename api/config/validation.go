package config

import (
	"fmt"
	"maps"
	"math"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/plimsoll-k8s/plimsoll/api/metricprovider"
)

// MaxWeight is the largest weight a resource may have.
const MaxWeight = math.MaxInt32

var (
	// loadResources are the resources that load is measured of.
	loadResources = []string{string(v1.ResourceCPU), string(v1.ResourceMemory)}
	// defaultableResources are those of which a container without a limit may
	// use any amount, so that a default limit means something.
	defaultableResources = append(slices.Clone(loadResources), string(v1.ResourceEphemeralStorage))
)

// Validate returns what is wrong with the arguments, each with its field and
// what is allowed. It expects the defaults to be filled in.
func (a *NodeResourcesAllocatableArgs) Validate() error {
	errs := validateResources(a.Resources)
	if a.Mode != Least && a.Mode != Most {
		errs = append(errs, field.NotSupported(field.NewPath("mode"), a.Mode, []Mode{Least, Most}))
	}
	return errs.ToAggregate()
}

// Validate returns what is wrong with the arguments, each with its field and
// what is allowed. It expects the defaults to be filled in.
func (a *NodeResourcesLimitsArgs) Validate() error {
	errs := validateResources(a.Resources)
	path := field.NewPath("defaultLimits")
	for _, name := range slices.Sorted(maps.Keys(a.DefaultLimits)) {
		quantity := a.DefaultLimits[name]
		if !slices.Contains(defaultableResources, name) {
			errs = append(errs, field.NotSupported(path, name, defaultableResources))
		}
		if quantity.Sign() <= 0 {
			errs = append(errs, field.Invalid(path.Key(name), quantity.String(), "must be greater than 0"))
		}
	}
	return errs.ToAggregate()
}

// Validate returns what is wrong with the arguments, each with its field and
// what is allowed. It expects the defaults to be filled in.
func (a *LowRiskOverCommitmentArgs) Validate() error {
	var errs field.ErrorList
	if *a.SmoothingWindowSize < 1 {
		errs = append(errs, field.Invalid(field.NewPath("smoothingWindowSize"), *a.SmoothingWindowSize, "must be at least 1"))
	}
	errs = append(errs, validateFraction(field.NewPath("riskLimitWeight"), *a.RiskLimitWeight)...)
	path := field.NewPath("riskLimitWeights")
	for _, name := range slices.Sorted(maps.Keys(a.RiskLimitWeights)) {
		if !slices.Contains(loadResources, name) {
			errs = append(errs, field.NotSupported(path, name, loadResources))
		}
		errs = append(errs, validateFraction(path.Key(name), a.RiskLimitWeights[name])...)
	}
	if a.PollInterval.Duration < 100*time.Millisecond {
		errs = append(errs, field.Invalid(field.NewPath("pollInterval"), a.PollInterval.Duration.String(), "must be at least 100ms"))
	}
	if a.MaxLoadAge.Duration < time.Second {
		errs = append(errs, field.Invalid(field.NewPath("maxLoadAge"), a.MaxLoadAge.Duration.String(), "must be at least 1s"))
	}
	if a.MaxLoadAge.Duration >= time.Second && a.MaxLoadAge.Duration < a.PollInterval.Duration {
		errs = append(errs, field.Invalid(field.NewPath("maxLoadAge"), a.MaxLoadAge.Duration.String(),
			fmt.Sprintf("must be at least pollInterval, %s, or load would be too old between two reads", a.PollInterval.Duration)))
	}
	if a.WatcherAddress != "" {
		errs = append(errs, validateURL(field.NewPath("watcherAddress"), a.WatcherAddress, metricprovider.ExampleAddress(metricprovider.Service))...)
		if a.MetricProvider != (metricprovider.Config{}) {
			errs = append(errs, field.Forbidden(field.NewPath("metricProvider"), "may not be given together with watcherAddress: load has one source"))
		}
	}
	return append(errs, validateMetricProvider(field.NewPath("metricProvider"), a.MetricProvider)...).ToAggregate()
}

func validateMetricProvider(path *field.Path, p metricprovider.Config) field.ErrorList {
	var errs field.ErrorList
	example := metricprovider.ExampleAddress(p.Type)
	switch {
	case p == metricprovider.Config{}:
		return nil
	case !slices.Contains(metricprovider.Types, p.Type):
		errs = append(errs, field.NotSupported(path.Child("type"), p.Type, metricprovider.Types))
	case p.Type == metricprovider.File && !filepath.IsAbs(p.Address):
		errs = append(errs, field.Invalid(path.Child("address"), p.Address, "must be the absolute path of a file"))
	case example != "":
		errs = append(errs, validateURL(path.Child("address"), p.Address, example)...)
	}
	if p.Token != "" && p.TokenFile != "" {
		errs = append(errs, field.Forbidden(path.Child("token"), "may not be given together with tokenFile"))
	}
	return errs
}

func validateResources(resources []ResourceWeight) field.ErrorList {
	var errs field.ErrorList
	seen := map[string]bool{}
	for i, r := range resources {
		path := field.NewPath("resources").Index(i)
		if seen[r.Name] {
			errs = append(errs, field.Duplicate(path.Child("name"), r.Name))
		}
		seen[r.Name] = true
		errs = append(errs, validateResourceName(path.Child("name"), r.Name)...)
		if *r.Weight < 1 || *r.Weight > MaxWeight {
			errs = append(errs, field.Invalid(path.Child("weight"), *r.Weight, fmt.Sprintf("must be in [1, %d]", MaxWeight)))
		}
	}
	return errs
}

// validateResourceName allows what a node can have: the resources of
// Kubernetes itself, huge pages, and extended resources, which have a domain.
func validateResourceName(path *field.Path, name string) field.ErrorList {
	if slices.Contains(defaultableResources, name) || strings.HasPrefix(name, v1.ResourceHugePagesPrefix) && len(name) > len(v1.ResourceHugePagesPrefix) {
		return nil
	}
	const allowed = "must be cpu, memory, ephemeral-storage, hugepages-SIZE or an extended resource such as nvidia.com/gpu"
	domain, _, hasDomain := strings.Cut(name, "/")
	if !hasDomain || domain == "kubernetes.io" || strings.HasSuffix(domain, ".kubernetes.io") || len(validation.IsQualifiedName(name)) > 0 {
		return field.ErrorList{field.Invalid(path, name, allowed)}
	}
	return nil
}

func validateFraction(path *field.Path, value float64) field.ErrorList {
	if !(value >= 0 && value <= 1) {
		return field.ErrorList{field.Invalid(path, value, "must be in [0, 1]")}
	}
	return nil
}

func validateURL(path *field.Path, address, example string) field.ErrorList {
	u, err := url.Parse(address)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return field.ErrorList{field.Invalid(path, address, "must be a URL like "+example)}
	}
	return nil
}
