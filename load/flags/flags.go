// Package flags defines the command-line flags that select a load source.
package flags

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-k8s/plimsoll/api/metricprovider"
	"github.com/plimsoll-k8s/plimsoll/internal/kube"
	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/load/provider"
)

// Flags are the values of the flags. The zero value is ready to use.
type Flags struct {
	config metricprovider.Config
	access kube.Access
	// prefix precedes the names of the flags.
	prefix string
}

// Add adds the flags to a command, --kubeconfig and --context included. The default source is metrics-server,
// which needs no address.
func (f *Flags) Add(cmd *cobra.Command) {
	f.config.Type = metricprovider.MetricsServer
	f.add(cmd)
	f.access.AddFlags(cmd, "cluster")
	cmd.Flags().SortFlags = false
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

// Use replaces the source of the flags, for example by that of a scheduler configuration.
func (f *Flags) Use(config metricprovider.Config) { f.config = config }

func (f *Flags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	for _, field := range metricprovider.Fields {
		if field.Flag == "" {
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
	if err != nil {
		return nil, errors.New(f.flagNames(err.Error()))
	}
	return source, nil
}

// Pods returns the source of the usage of pods that the flags select. Its errors name flags.
func (f *Flags) Pods(access provider.Cluster) (load.PodSource, error) {
	source, err := provider.NewPods(f.config, access)
	if err != nil {
		return nil, errors.New(f.flagNames(err.Error()))
	}
	return source, nil
}

// flagNames returns an error text with the names of flags in place of those of fields. A name of one
// word, which is the same for both, is replaced at the beginning only.
func (f *Flags) flagNames(text string) string {
	var names []string
	for _, field := range metricprovider.Fields {
		if field.Flag == "" {
			continue
		}
		if rest, found := strings.CutPrefix(text, field.Name+":"); found {
			return "--" + f.prefix + field.Flag + ":" + rest
		}
		if strings.ToLower(field.Name) != field.Name {
			names = append(names, field.Name, "--"+f.prefix+field.Flag)
		}
	}
	text = strings.NewReplacer(names...).Replace(text)
	if !strings.HasPrefix(text, "--") {
		text = "--" + f.prefix + text
	}
	return text
}
