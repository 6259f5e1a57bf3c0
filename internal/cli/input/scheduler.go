package input

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	internalconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"

	"github.com/plimsoll-k8s/plimsoll/api/config"
	"github.com/plimsoll-k8s/plimsoll/api/metricprovider"
	"github.com/plimsoll-k8s/plimsoll/internal/cli/base"
	"github.com/plimsoll-k8s/plimsoll/internal/kube"
	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/shared"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/engine"
	"github.com/plimsoll-k8s/plimsoll/plugins/lowriskovercommitment"
	"github.com/plimsoll-k8s/plimsoll/plugins/predictedutilization"
)

// Scheduler is the flags --config and --scheduler-name: the configuration of a scheduler, and one
// of its profiles. Commands that evaluate pods also have --profile.
type Scheduler struct{ Config, Name, Profile string }

// AddFlags adds the flags --config and --scheduler-name.
func (s *Scheduler) AddFlags(cmd *cobra.Command, configUsage, nameUsage string) {
	cmd.Flags().StringVar(&s.Config, "config", "", configUsage)
	cmd.Flags().StringVar(&s.Name, "scheduler-name", "", nameUsage)
	_ = cmd.MarkFlagFilename("config", "yaml", "yml", "json")
}

// AddProfileFlag adds the flag --profile. It must be called after AddFlags.
func (s *Scheduler) AddProfileFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&s.Profile, "profile", "",
		"built-in profile, or file with a KubeSchedulerConfiguration, in place of --config, for pods of any scheduler")
	_ = cmd.RegisterFlagCompletionFunc("profile", cobra.FixedCompletions(engine.BuiltInProfiles, cobra.ShellCompDirectiveDefault))
	cmd.MarkFlagsMutuallyExclusive("config", "profile")
}

// Given reports whether one of the flags selects a configuration.
func (s *Scheduler) Given() bool { return s.Config != "" || s.Profile != "" }

// Read returns the configuration in --profile or --config, by default the configuration of the profile builtIn.
func (s *Scheduler) Read(builtIn string, warn func(string)) (engine.Scheduler, error) {
	if s.Config != "" {
		cfg, err := config.Load(s.Config)
		switch {
		case errors.Is(err, fs.ErrNotExist) && engine.IsBuiltIn(s.Config):
			return engine.Scheduler{}, fmt.Errorf("--config: %w: --profile %s is the built-in profile", err, s.Config)
		case err != nil:
			return engine.Scheduler{}, err
		}
		text, _ := config.ReadFile(s.Config) // read before
		for _, warning := range config.Warnings(cfg, text) {
			warn(warning)
		}
		return engine.Scheduler{Config: cfg, Source: s.Config, ProfileName: s.Name}, nil
	}
	profile, err := engine.ReadConfig(cmp.Or(s.Profile, builtIn))
	if err != nil {
		return engine.Scheduler{}, fmt.Errorf("--profile: %w", err)
	}
	cfg, err := profile.Config()
	if err != nil {
		return engine.Scheduler{}, fmt.Errorf("--profile: %w", err)
	}
	for _, warning := range config.Warnings(cfg, profile.Text) {
		warn(profile.Name + ": " + warning)
	}
	source := "built-in profile " + profile.Name
	if profile.Name == s.Profile && !engine.IsBuiltIn(profile.Name) {
		source = profile.Name
	}
	return engine.Scheduler{Config: cfg, Source: source, ProfileName: s.Name, AnyPod: s.Profile != ""}, nil
}

// ReadWithPlugins is Read with all plugins of Plimsoll at weight 1 in addition to the default profile by
// default.
func (s *Scheduler) ReadWithPlugins(warn func(string)) (engine.Scheduler, error) {
	if s.Given() {
		return s.Read("", warn)
	}
	cfg, err := engine.DefaultConfig()
	return engine.Scheduler{Config: cfg, Source: "the default profile with all plugins", ProfileName: s.Name}, err
}

// errNoLoadSource is returned by LoadSource for a scheduler that reads no load.
var errNoLoadSource = errors.New("no profile configures a load source: set watcherAddress or metricProvider in the arguments " +
	"of " + lowriskovercommitment.Name + " or " + predictedutilization.Name)

// LoadSource returns the load source of the first profile that has a load source, or errNoLoadSource.
func (s *Scheduler) LoadSource() (metricprovider.Config, error) {
	cfg, err := config.Load(s.Config)
	if err != nil {
		return metricprovider.Config{}, err
	}
	if source, ok := loadSourceOf(cfg, s.Name); ok {
		return source, nil
	}
	var names []string
	for _, profile := range cfg.Profiles {
		names = append(names, profile.SchedulerName)
	}
	if s.Name != "" && !slices.Contains(names, s.Name) {
		return metricprovider.Config{}, base.InvalidValue("scheduler-name", s.Name, "one of "+strings.Join(names, ", ")+
			", the profiles of "+s.Config)
	}
	return metricprovider.Config{}, fmt.Errorf("%s: %w", s.Config, errNoLoadSource)
}

// loadSourceOf returns the load source of the profile with a scheduler name. If the name is empty, it
// returns the load source of the first profile that has one.
func loadSourceOf(cfg *internalconfig.KubeSchedulerConfiguration, name string) (metricprovider.Config, bool) {
	for _, profile := range cfg.Profiles {
		if name != "" && profile.SchedulerName != name {
			continue
		}
		for _, plugin := range profile.PluginConfig {
			if source, ok := shared.LoadConfigOf(plugin.Args).Source(); ok {
				return source, true
			}
		}
	}
	return metricprovider.Config{}, false
}

// maxPublished is the number of ConfigMaps that are read.
const maxPublished = 50

// PublishedScheduler returns the configuration that the chart has stored in the cluster for the scheduler
// with the name, and false if there is none. Without the right to list ConfigMaps it returns false.
func PublishedScheduler(
	ctx context.Context, client kubernetes.Interface, name string, warn func(string),
) (engine.Scheduler, bool, error) {
	list, err := client.CoreV1().ConfigMaps(metav1.NamespaceAll).List(ctx, metav1.ListOptions{
		LabelSelector: kube.SchedulerConfigurationSelector, Limit: maxPublished,
	})
	switch {
	case apierrors.IsForbidden(err):
		return engine.Scheduler{}, false, nil
	case err != nil:
		return engine.Scheduler{}, false, fmt.Errorf("listing the configurations of schedulers: %w", err)
	}
	for i := range list.Items {
		scheduler, err := published(&list.Items[i])
		if err != nil {
			warn(err.Error())
			continue
		}
		if scheduler.Has(name) {
			return scheduler, true, nil
		}
	}
	return engine.Scheduler{}, false, nil
}

// published returns the configuration in a ConfigMap.
func published(m *v1.ConfigMap) (engine.Scheduler, error) {
	source, text := fmt.Sprintf("ConfigMap %s/%s", m.Namespace, m.Name), []byte(m.Data[kube.SchedulerConfigurationKey])
	cfg, err := config.Decode(source, text)
	return engine.Scheduler{Config: cfg, Text: text, Source: source}, err
}

// LoadSourceOf returns the load source that a profile of the scheduler configures, or else the first
// load source that any of its profiles configures. It returns false if there is none.
func LoadSourceOf(scheduler engine.Scheduler, profile engine.Profile) (metricprovider.Config, bool) {
	if source, ok := loadSourceOf(scheduler.Config, profile.SchedulerName); ok {
		return source, true
	}
	return loadSourceOf(scheduler.Config, "")
}
