// Package flags defines the command-line flags that select a load source.
package flags

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-k8s/plimsoll/api/metricprovider"
	"github.com/plimsoll-k8s/plimsoll/internal/kube"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/load/provider"
)

// Flags are the values of the flags. The zero value is ready to use.
type Flags struct {
	config metricprovider.Config
	access kube.Access
	// prefix precedes the names of the flags.
	prefix string
	// some are the names of the flags that are added, nil for all.
	some []string
	// file has the source, in place of flags.
	file string
}

// Add adds the flags to a command, --kubeconfig and --context included. The default source is metrics-server,
// which needs no address.
func (f *Flags) Add(cmd *cobra.Command) {
	f.config.Type = metricprovider.MetricsServer
	f.add(cmd)
	f.access.AddFlags(cmd, "cluster")
	cmd.Flags().SortFlags = false
}

// AddShort adds only --provider and --address, and --load-source for a file with all fields, to a command, with --kubeconfig and --context.
func (f *Flags) AddShort(cmd *cobra.Command) {
	f.config.Type = metricprovider.MetricsServer
	f.some = []string{"provider", "address"}
	f.add(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.file, "load-source", "",
		"file with the source of load: type, address, credentials and all other fields of a metricProvider")
	_ = cmd.MarkFlagFilename("load-source", "yaml", "yml", "json")
	cmd.MarkFlagsMutuallyExclusive("load-source", "provider")
	cmd.MarkFlagsMutuallyExclusive("load-source", "address")
	f.access.AddFlags(cmd, "cluster")
	flags.SortFlags = false
}

// ReadFile reads the file in --load-source, if it is given. It must be called before the flags are used.
func (f *Flags) ReadFile() error {
	if f.file == "" {
		return nil
	}
	config, err := ReadFile(f.file)
	if err != nil {
		return fmt.Errorf("--load-source: %w", err)
	}
	f.config = config
	return nil
}

// ReadFile reads a file with the fields of a metric provider.
func ReadFile(name string) (metricprovider.Config, error) {
	var config metricprovider.Config
	raw, err := os.ReadFile(name)
	if err != nil {
		return config, err
	}
	if err := resources.DecodeStrict(raw, &config); err != nil {
		return config, fmt.Errorf("%s: %w", name, err)
	}
	return config, nil
}

// AddOptional adds the flags, with a prefix before their names, to a command that can run without
// a source: none is the default. SetCluster selects the cluster.
func (f *Flags) AddOptional(cmd *cobra.Command, prefix string) {
	f.prefix = prefix
	f.add(cmd)
	cmd.Flags().Lookup(prefix + "provider").Usage += " (default none)"
}

// SetCluster sets the kubeconfig file and the context in it; empty for the default access.
func (f *Flags) SetCluster(kubeconfig, context string) {
	f.access = kube.Access{Kubeconfig: kubeconfig, Context: context}
}

// Chosen reports whether the flags select a source.
func (f *Flags) Chosen() bool { return f.config != metricprovider.Config{} }

// Use replaces the source of the flags, for example by the source in a scheduler configuration.
func (f *Flags) Use(config metricprovider.Config) { f.config = config }

// isFlag reports whether a field has a flag.
func (f *Flags) isFlag(field metricprovider.Field) bool {
	return field.Flag != "" && (f.some == nil || slices.Contains(f.some, field.Flag))
}

// add adds the flags of the fields.
func (f *Flags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	for _, field := range metricprovider.Fields {
		if !f.isFlag(field) {
			continue
		}
		name := f.prefix + field.Flag
		switch value := field.Value(&f.config).(type) {
		case *string:
			flags.StringVar(value, name, *value, field.Usage)
		case *bool:
			flags.BoolVar(value, name, *value, field.Usage)
		case *metav1.Duration:
			flags.DurationVar(&value.Duration, name, value.Duration, field.Usage)
		}
		if strings.HasSuffix(name, "-file") {
			_ = cmd.MarkFlagFilename(name)
		}
	}
	types := cobra.FixedCompletions(metricprovider.Types, cobra.ShellCompDirectiveNoFileComp)
	_ = cmd.RegisterFlagCompletionFunc(f.prefix+"provider", types)
}

// Source returns the source that the flags select. Its errors name flags.
func (f *Flags) Source(access provider.Cluster) (load.Source, error) {
	source, err := provider.New(f.config, access)
	return source, f.withFlagNames(err)
}

// Validate returns an error for flags that select no valid source. It needs no access to a cluster.
func (f *Flags) Validate() error {
	if f.config.Type == metricprovider.MetricsServer { // which needs access
		return f.withFlagNames(provider.Validate(f.config))
	}
	_, err := f.Source(provider.Cluster{})
	return err
}

// Pods returns the source of the usage of pods that the flags select. Its errors name flags.
func (f *Flags) Pods(access provider.Cluster) (load.PodSource, error) {
	source, err := provider.NewPods(f.config, access)
	return source, f.withFlagNames(err)
}

// withFlagNames returns an error with names of fields replaced by names of flags, nil for none. A name of one word,
// which is the same for both, is replaced at the beginning only.
func (f *Flags) withFlagNames(err error) error {
	switch {
	case err == nil:
		return nil
	case f.file != "":
		return fmt.Errorf("--load-source: %s: %w", f.file, err)
	}
	var names []string
	for _, field := range metricprovider.Fields {
		if field.Flag == "" && f.some == nil {
			continue
		}
		name := "--" + f.prefix + field.Flag
		if !f.isFlag(field) {
			name = "--load-source: " + field.Name
		}
		if rest, found := strings.CutPrefix(err.Error(), field.Name+":"); found {
			return errors.New(name + ":" + rest)
		}
		if strings.ToLower(field.Name) != field.Name {
			names = append(names, field.Name, name)
		}
	}
	text := strings.NewReplacer(names...).Replace(err.Error())
	if !strings.HasPrefix(text, "--") {
		text = "--" + f.prefix + text
	}
	return errors.New(text)
}
