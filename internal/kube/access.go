// Package kube connects to a cluster, as kubectl does.
package kube

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"

	"github.com/spf13/cobra"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Requests per second and burst that a program may send to an API server, as in kubectl.
const (
	requestsPerSecond = 50
	requestBurst      = 300
)

// Access is the flags --kubeconfig and --context, which select a cluster. The zero value selects the
// cluster that kubectl finds.
type Access struct {
	// Kubeconfig is a file; empty for $KUBECONFIG, ~/.kube/config or the service account of the pod.
	Kubeconfig string
	// Context is the name of a context in the kubeconfig; empty for the current one.
	Context string
}

// AddFlags adds the flags to a command. The cluster is how the help text calls the cluster, such as
// "hub".
func (a *Access) AddFlags(cmd *cobra.Command, cluster string) {
	flags := cmd.Flags()
	flags.StringVar(&a.Kubeconfig, "kubeconfig", "",
		"kubeconfig file of the "+cluster+" (default the pod's own access, $KUBECONFIG or ~/.kube/config)")
	flags.StringVar(&a.Context, "context", "", "context in the kubeconfig (default the current one)")
	_ = cmd.MarkFlagFilename("kubeconfig")
	_ = cmd.RegisterFlagCompletionFunc("context", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		config, err := a.rules().Load()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return slices.Sorted(maps.Keys(config.Contexts)), cobra.ShellCompDirectiveNoFileComp
	})
}

// Given reports whether one of the flags is set.
func (a *Access) Given() bool { return *a != Access{} }

// Config returns the client configuration. The error names the flag and the value found.
func (a *Access) Config() (*rest.Config, error) {
	config, err := a.loader().ClientConfig()
	if err != nil {
		return nil, a.wrap(err)
	}
	if _, err := rest.TLSConfigFor(config); err != nil {
		return nil, a.wrap(err)
	}
	config.QPS, config.Burst = requestsPerSecond, requestBurst
	return config, nil
}

// Namespace returns the namespace of the context, "default" if it has none.
func (a *Access) Namespace() (string, error) {
	namespace, _, err := a.loader().Namespace()
	switch {
	case clientcmd.IsEmptyConfig(err), err == nil && namespace == "":
		return v1.NamespaceDefault, nil
	case err != nil:
		return "", a.wrap(err)
	}
	return namespace, nil
}

func (a *Access) rules() *clientcmd.ClientConfigLoadingRules {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = a.Kubeconfig
	// Without warnings about files in $KUBECONFIG that do not exist, as the error lists the files.
	rules.WarnIfAllMissing = false
	return rules
}

func (a *Access) loader() clientcmd.ClientConfig {
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(a.rules(), &clientcmd.ConfigOverrides{CurrentContext: a.Context})
}

// wrap returns the error of a kubeconfig with the flag that selects it.
func (a *Access) wrap(err error) error {
	if clientcmd.IsEmptyConfig(err) {
		err = fmt.Errorf("%w: must be a kubeconfig whose current-context, or --context, has a cluster", err)
	}
	if a.Context != "" {
		return fmt.Errorf("--context: %w", err)
	}
	return fmt.Errorf("--kubeconfig: %w", err)
}

// Explain returns the error of a request to the cluster, with the server and the flags that select it if the server does not respond,
// rejects the credentials, or forbids what a kubeconfig without credentials requests.
func (a *Access) Explain(err error) error {
	_, noResponse := errors.AsType[*url.Error](err)
	config, configErr := a.Config()
	if configErr != nil || errors.Is(err, context.Canceled) {
		return err
	}
	if apierrors.IsForbidden(err) && !isUser(config) {
		err, noResponse = fmt.Errorf(
			"%w: no user was sent: the kubeconfig has none, or its server is not https",
			err,
		), true
	}
	if !noResponse && !apierrors.IsUnauthorized(err) {
		return err
	}
	return fmt.Errorf("%w: --kubeconfig and --context select the server, which is %s", err, config.Host)
}

// isUser reports whether a configuration has credentials.
func isUser(config *rest.Config) bool {
	return config.BearerToken+config.BearerTokenFile+config.Username+config.CertFile != "" || len(config.CertData) > 0 ||
		config.ExecProvider != nil || config.AuthProvider != nil
}
