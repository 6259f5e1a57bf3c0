// Package kube connects to a cluster, as kubectl does.
package kube

import (
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// AddFlag adds the flag --kubeconfig to a command. The cluster is how the help
// text calls the cluster, such as "hub".
func AddFlag(cmd *cobra.Command, kubeconfig *string, cluster string) {
	cmd.Flags().StringVar(kubeconfig, "kubeconfig", "", "access to the "+cluster+" (default the pod's own, $KUBECONFIG or ~/.kube/config)")
	_ = cmd.MarkFlagFilename("kubeconfig")
}

// Config returns the client configuration in a kubeconfig file or, if the name of
// the file is empty, in $KUBECONFIG, ~/.kube/config or the service account of the
// pod. The error names the flag --kubeconfig.
func Config(kubeconfig string) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("--kubeconfig: no access to a cluster: %w", err)
	}
	BoundQuantities(config)
	return config, nil
}
