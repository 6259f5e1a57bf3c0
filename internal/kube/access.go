// Package kube connects to a cluster, as kubectl does.
package kube

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"

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
		contexts, _, _, _ := a.contexts()
		return contexts, cobra.ShellCompDirectiveNoFileComp
	})
}

// Given reports whether one of the flags is set.
func (a *Access) Given() bool { return *a != Access{} }

// Config returns the client configuration. The error names the flag and the value found.
func (a *Access) Config() (*rest.Config, error) {
	config, err := a.loader().ClientConfig()
	if err != nil {
		return nil, a.explain(err)
	}
	if _, err := rest.TLSConfigFor(config); err != nil {
		return nil, fmt.Errorf("--kubeconfig: %w: certificates and keys must be PEM, in base64 in a field that ends in -data", err)
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
		return "", a.explain(err)
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

// contexts returns the names of the contexts, the selected context and the files that they are from.
func (a *Access) contexts() (names []string, selected string, files []string, err error) {
	rules := a.rules()
	config, err := rules.Load()
	if err != nil {
		return nil, "", nil, err
	}
	files = rules.GetLoadingPrecedence()
	if a.Kubeconfig != "" {
		files = []string{a.Kubeconfig}
	}
	return slices.Sorted(maps.Keys(config.Contexts)), cmp.Or(a.Context, config.CurrentContext), files, nil
}

// Explain returns the error of a request to the cluster. It names the server if it does not respond, and the context, too, if the server
// rejects the credentials.
func (a *Access) Explain(err error) error {
	server := "the API server"
	if config, configErr := a.Config(); configErr == nil {
		server = config.Host
	}
	if request, ok := errors.AsType[*url.Error](err); ok && !errors.Is(err, context.Canceled) {
		if _, noConnection := errors.AsType[*net.OpError](err); noConnection {
			return fmt.Errorf("%s does not respond: %w: check --kubeconfig and --context, and that the server runs", server, request.Err)
		}
		problem, _, _ := strings.Cut(request.Err.Error(), "\n") // advice of client-go follows
		return fmt.Errorf("no access to %s: %s", server, problem)
	}
	if apierrors.IsBadRequest(err) && strings.HasPrefix(server, "http://") {
		return fmt.Errorf("--kubeconfig: %w: the address of the cluster is %s: servers with TLS need https://", err, server)
	}
	if !apierrors.IsUnauthorized(err) {
		return err
	}
	_, selected, _, _ := a.contexts()
	const format = "%w: %s rejects the credentials of context %q: check the user in the kubeconfig, or set --context"
	return fmt.Errorf(format, err, server, selected)
}

// otherFile matches the errors of client-go for a file that is no kubeconfig: its path, and its kind and version if it has them.
var otherFile = regexp.MustCompile(
	`error loading config file "(.*?)": (?:no kind "(.*?)" is registered for version "(.*?)"|couldn't get version/kind)`)

// explainFile returns the error of a kubeconfig that cannot be read.
func explainFile(err error) error {
	const allowed = "must be a kubeconfig, of kind Config and apiVersion v1"
	switch found := otherFile.FindStringSubmatch(err.Error()); {
	case found == nil:
		if strings.Contains(err.Error(), "illegal base64 data") {
			return fmt.Errorf("--kubeconfig: %w: a field that ends in -data must be base64; the same without -data takes a file", err)
		}
		return fmt.Errorf("--kubeconfig: %w", err)
	case found[2] != "":
		return fmt.Errorf("--kubeconfig: %s: found kind %q of apiVersion %q: %s", found[1], found[2], found[3], allowed)
	default:
		return fmt.Errorf("--kubeconfig: %s: found no kind and apiVersion: %s", found[1], allowed)
	}
}

// explain returns the error of a kubeconfig with the flag to change.
func (a *Access) explain(err error) error {
	if path, ok := errors.AsType[*os.PathError](err); ok && a.Kubeconfig != "" {
		return fmt.Errorf("--kubeconfig: %w", path)
	}
	contexts, selected, files, loadErr := a.contexts()
	switch where := strings.Join(files, ", "); {
	case loadErr != nil:
		return explainFile(err)
	case a.Context != "" && !slices.Contains(contexts, a.Context):
		if len(contexts) == 0 {
			return fmt.Errorf("--context: invalid value %q: found no contexts in %s", a.Context, where)
		}
		return fmt.Errorf("--context: invalid value %q: must be one of %s (in %s)", a.Context, strings.Join(contexts, ", "), where)
	case selected != "" && !slices.Contains(contexts, selected):
		return fmt.Errorf("current-context: invalid value %q in %s: --context must be one of %s", selected, where,
			strings.Join(contexts, ", "))
	case clientcmd.IsEmptyConfig(err) && selected != "":
		return fmt.Errorf("context %q in %s has no cluster with a server: must be one of clusters, in the field cluster", selected, where)
	case clientcmd.IsEmptyConfig(err) && len(contexts) > 0:
		return fmt.Errorf("--context: required: %s has no current context; must be one of %s", where, strings.Join(contexts, ", "))
	case clientcmd.IsEmptyConfig(err):
		return fmt.Errorf("--kubeconfig: found no cluster in %s, and no service account of a pod: "+
			"set $KUBECONFIG or --kubeconfig to a kubeconfig file", where)
	}
	return fmt.Errorf("--kubeconfig: no access to a cluster: %w", err)
}
