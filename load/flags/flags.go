// Package flags are the flags that choose a source of load, for all
// commands that read it.
package flags

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/plimsoll-k8s/plimsoll/internal/kube"
	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/load/provider"
)

// Flags are the values of the flags.
type Flags struct {
	provider   provider.Config
	kubeconfig string
	// prefix of the flags' names.
	prefix string
}

// Add adds the flags to a command. The default source is the cluster's
// metrics-server, which needs no address.
func (f *Flags) Add(cmd *cobra.Command) {
	f.add(cmd, provider.MetricsServer, "")
	kube.AddFlag(cmd, &f.kubeconfig, "cluster")
	cmd.Flags().SortFlags = false
}

// AddOptional adds the flags, with a prefix before their names, to a command that
// does not need a source: there is none by default. Which cluster it is about,
// SetKubeconfig says.
func (f *Flags) AddOptional(cmd *cobra.Command, prefix string) {
	f.prefix = prefix
	f.add(cmd, "", prefix)
	cmd.Flags().Lookup(prefix + "provider").Usage += " (default none)"
}

// SetKubeconfig names the file with access to the cluster.
func (f *Flags) SetKubeconfig(path string) { f.kubeconfig = path }

// Chosen reports whether there is a source.
func (f *Flags) Chosen() bool { return f.provider != provider.Config{} }

func (f *Flags) add(cmd *cobra.Command, byDefault, prefix string) {
	set := prefixed{cmd.Flags(), prefix}
	p := &f.provider
	set.StringVar(&p.Type, "provider", byDefault, "where load is read from: "+strings.Join(provider.Types, ", "))
	set.StringVar(&p.Endpoint.Address, "address", "", "the provider's URL, or the path of a File")
	set.StringVar(&p.Endpoint.TokenFile, "token-file", "", "file with the token to show to the provider, read anew for every request")
	set.StringVar(&p.Endpoint.CAFile, "ca-file", "", "certificates that the provider's is checked with (default those of the system)")
	set.StringVar(&p.Endpoint.CertFile, "cert-file", "", "certificate to show to the provider")
	set.StringVar(&p.Endpoint.KeyFile, "key-file", "", "key of that certificate")
	set.BoolVar(&p.Endpoint.InsecureSkipVerify, "insecure-skip-verify", false, "do not check the provider's certificate")
	set.DurationVar(&p.Window, "window", 0, "what means and deviations are over (default 15m)")
	set.DurationVar(&p.Step, "step", 0, "time between the points that they are made of: Prometheus, SignalFx (default 1m)")
	set.DurationVar(&p.RateWindow, "rate-window", 0, "what Prometheus averages a point of CPU over, at least twice the time between scrapes (default 5m)")
	set.StringVar(&p.NodeLabel, "node-label", "", "label of Prometheus' series with the node's name (default node, nodename, kubernetes_node, or the host of instance)")
	set.StringVar(&p.Selector, "selector", "", `put into every selector of the default queries to Prometheus, such as cluster="prod"`)
	set.StringVar(&p.Queries.CPUMean, "query-cpu-avg", "", "PromQL for the mean of CPU, a fraction of capacity for every node, in place of the default")
	set.StringVar(&p.Queries.CPUStdDev, "query-cpu-std", "", "PromQL for its deviation")
	set.StringVar(&p.Queries.MemoryMean, "query-memory-avg", "", "PromQL for the mean of memory")
	set.StringVar(&p.Queries.MemoryStdDev, "query-memory-std", "", "PromQL for its deviation")
	set.StringVar(&p.CPUMetric, "cpu-metric", "", "SignalFx's metric of CPU in percent (default cpu.utilization)")
	set.StringVar(&p.MemoryMetric, "memory-metric", "", "SignalFx's metric of memory in percent (default memory.utilization)")
	set.StringVar(&p.HostDimension, "host-dimension", "", "dimension of SignalFx's series with the host (default host)")
	set.StringVar(&p.Filter, "filter", "", `further terms of the query to SignalFx, such as kubernetes_cluster:"prod"`)
	_ = cmd.RegisterFlagCompletionFunc(prefix+"provider", cobra.FixedCompletions(provider.Types, cobra.ShellCompDirectiveNoFileComp))
	for _, name := range []string{"token-file", "ca-file", "cert-file", "key-file"} {
		_ = cmd.MarkFlagFilename(prefix + name)
	}
}

// prefixed adds flags with a prefix before their names.
type prefixed struct {
	flags  *pflag.FlagSet
	prefix string
}

func (s prefixed) StringVar(p *string, name, value, usage string) {
	s.flags.StringVar(p, s.prefix+name, value, usage)
}

func (s prefixed) BoolVar(p *bool, name string, value bool, usage string) {
	s.flags.BoolVar(p, s.prefix+name, value, usage)
}

func (s prefixed) DurationVar(p *time.Duration, name string, value time.Duration, usage string) {
	s.flags.DurationVar(p, s.prefix+name, value, usage)
}

// names of the flags for the fields that errors name.
var names = strings.NewReplacer("tokenFile", "--token-file", "caFile", "--ca-file", "certFile", "--cert-file", "keyFile", "--key-file",
	"insecureSkipVerify", "--insecure-skip-verify", "rateWindow", "--rate-window", "nodeLabel", "--node-label", "cpuMetric", "--cpu-metric",
	"memoryMetric", "--memory-metric", "hostDimension", "--host-dimension", "resolution", "--step")

// Source returns the source that the flags choose. It says what is wrong in the
// words of the flags.
func (f *Flags) Source(access provider.Cluster) (load.Source, error) {
	source, err := provider.New(f.provider, access)
	if err != nil {
		text := names.Replace(err.Error())
		if !strings.HasPrefix(text, "--") {
			text = "--" + text
		}
		text = strings.Replace(text, "--type:", "--provider:", 1)
		return nil, fmt.Errorf("%s", strings.ReplaceAll(text, "--", "--"+f.prefix))
	}
	return source, nil
}

// Use makes the source be another than the flags choose, such as that of a
// scheduler's configuration.
func (f *Flags) Use(source provider.Config) { f.provider = source }
