package input

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	internalconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"

	"github.com/plimsoll-k8s/plimsoll/api/config"
	"github.com/plimsoll-k8s/plimsoll/api/metricprovider"
	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/shared"
	"github.com/plimsoll-k8s/plimsoll/internal/simulate/engine"
	"github.com/plimsoll-k8s/plimsoll/plugins/lowriskovercommitment"
)

// Scheduler is the flags --config and --scheduler-name: the configuration of a scheduler, and one
// of its profiles.
type Scheduler struct{ Config, Name string }

// AddFlags adds the flags.
func (s *Scheduler) AddFlags(cmd *cobra.Command, configUsage, nameUsage string) {
	cmd.Flags().StringVar(&s.Config, "config", "", configUsage)
	cmd.Flags().StringVar(&s.Name, "scheduler-name", "", nameUsage)
	_ = cmd.MarkFlagFilename("config", "yaml", "yml", "json")
}

// Read returns the configuration, by default the default profile with all plugins of Plimsoll.
func (s *Scheduler) Read(warn func(string)) (*internalconfig.KubeSchedulerConfiguration, error) {
	if s.Config == "" {
		return engine.DefaultConfig()
	}
	cfg, err := config.Load(s.Config)
	if err != nil {
		return nil, err
	}
	if warning := config.LegacyWarning(cfg.APIVersion); warning != "" {
		warn(warning)
	}
	return cfg, nil
}

// ErrNoLoadSource is returned by LoadSource for a scheduler that reads no load.
var ErrNoLoadSource = errors.New("no profile configures a load source: set watcherAddress or metricProvider in the arguments " +
	"of " + lowriskovercommitment.Name)

// LoadSource returns the load source of the first profile that configures one, or ErrNoLoadSource.
func (s *Scheduler) LoadSource() (metricprovider.Config, error) {
	cfg, err := config.Load(s.Config)
	if err != nil {
		return metricprovider.Config{}, err
	}
	for _, profile := range cfg.Profiles {
		if s.Name != "" && profile.SchedulerName != s.Name {
			continue
		}
		for _, plugin := range profile.PluginConfig {
			if args, ok := plugin.Args.(*config.LowRiskOverCommitmentArgs); ok {
				if source, ok := shared.LoadConfigOf(args).Source(); ok {
					return source, nil
				}
			}
		}
	}
	return metricprovider.Config{}, fmt.Errorf("%s: %w", s.Config, ErrNoLoadSource)
}
