package compare

import (
	"context"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	internalconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"

	"github.com/plimsoll-k8s/plimsoll/api/config"
	"github.com/plimsoll-k8s/plimsoll/api/metricprovider"
	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/shared"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/engine"
)

// readProfiles reads profiles, and validates that a scheduler can be created from each.
func readProfiles(ctx context.Context, o Options) ([]engine.NamedConfig, error) {
	var read []engine.NamedConfig
	for i, name := range o.Profiles {
		if slices.Contains(o.Profiles[:i], name) {
			return nil, fmt.Errorf("--profile: found %s twice", name)
		}
		profile, err := engine.ReadConfig(name)
		if err != nil {
			return nil, fmt.Errorf("--profile: %w", err)
		}
		read = append(read, profile)
	}
	read = append(read, o.Given...)
	for _, profile := range read {
		if err := validateProfile(ctx, profile, o.Source.Recording == "" && len(o.Source.Files) == 0, o.Warn); err != nil {
			return nil, fmt.Errorf("--profile: %w", err)
		}
	}
	return read, nil
}

// validateProfile validates that a scheduler can be created from a profile and, if pods are generated, that it schedules them.
func validateProfile(ctx context.Context, profile engine.NamedConfig, isGenerated bool, warn func(string)) error {
	cfg, err := profile.Config()
	if err != nil {
		return err
	}
	for _, warning := range config.Warnings(cfg, profile.Text) {
		warn(profile.Name + ": " + warning)
	}
	for _, p := range cfg.Profiles {
		if name := unfed(p); name != "" && !engine.IsBuiltIn(profile.Name) {
			warn(fmt.Sprintf("%s: %s has no source of load: it is given that of the simulation, which it has not in a cluster",
				profile.Name, name))
		}
	}
	if len(cfg.Extenders) > 0 {
		warn(profile.Name + ": its extenders are ignored")
	}
	isDefault := func(p internalconfig.KubeSchedulerProfile) bool { return p.SchedulerName == v1.DefaultSchedulerName }
	if isGenerated && len(cfg.Profiles) > 1 && !slices.ContainsFunc(cfg.Profiles, isDefault) {
		return fmt.Errorf("%s: profiles: found %d, and none with the schedulerName %s, which generated pods have: keep one profile, which "+
			"takes all pods, or add one of this name", profile.Name, len(cfg.Profiles), v1.DefaultSchedulerName)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if _, err := engine.New(ctx, engine.Cluster{}, engine.Options{Config: cfg}); err != nil {
		return fmt.Errorf("%s: %w", profile.Name, err)
	}
	return nil
}

// unfed returns the name of a plugin of a profile that reads load and has no source, empty if there is none.
func unfed(profile internalconfig.KubeSchedulerProfile) string {
	enabled := slices.Concat(profile.Plugins.MultiPoint.Enabled, profile.Plugins.Score.Enabled)
	for _, c := range profile.PluginConfig {
		load := shared.LoadConfigOf(c.Args)
		_, isFed := load.Source()
		if args, ok := c.Args.(*config.PredictedUtilizationArgs); ok {
			isFed = isFed || args.PodUsage != metricprovider.Config{}
		}
		isEnabled := slices.ContainsFunc(enabled, func(p internalconfig.Plugin) bool { return p.Name == c.Name })
		if load != (shared.LoadConfig{}) && !isFed && isEnabled {
			return c.Name
		}
	}
	return ""
}
