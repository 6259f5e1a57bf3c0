package command

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	apimachineryversion "k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"

	"github.com/plimsoll-k8s/plimsoll/api/config"
	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/emulation"
)

// emulatedVersion is the flag with the version that the scheduler emulates.
const emulatedVersion = "emulated-version"

// emulate sets the features of the scheduler: those of the version of the API server, or in the flags. It waits for the API server, as the
// informers of kube-scheduler do. It returns an error if the scheduler does not support the version, or a feature
// gate of the flags does not exist in it.
func emulate(ctx context.Context, opts *options.Options) error {
	flags := opts.Flags.FlagSet("feature gate")
	emulated := ""
	if !flags.Changed(emulatedVersion) && opts.WriteConfigTo == "" {
		info, err := serverVersion(ctx, opts)
		if err != nil {
			return cmp.Or(checkConfig(opts), err)
		}
		server := emulation.ServerVersion(info)
		minor, supported, err := emulation.For(server)
		switch {
		case err != nil:
			return err
		case !supported:
			return fmt.Errorf("the API server has version %s: must be %s, which this scheduler supports", server, emulation.Supported())
		}
		emulated = minor.String()
		if err := flags.Set(emulatedVersion, emulated); err != nil {
			return err
		}
		if minor.LessThan(emulation.Built()) {
			klog.FromContext(ctx).Info("Emulating the version of the API server", "emulated", emulated, "apiServer", info.GitVersion)
		}
	}
	err := opts.ComponentGlobalsRegistry.Set()
	if err == nil {
		err = utilerrors.NewAggregate(opts.ComponentGlobalsRegistry.Validate())
	}
	if err != nil && emulated != "" {
		return fmt.Errorf("with the features of Kubernetes %s, the version of the API server: %w", emulated, err)
	}
	return err
}

// serverVersion returns the version of the API server. While the API server does not respond, it tries again.
func serverVersion(ctx context.Context, opts *options.Options) (*apimachineryversion.Info, error) {
	kubeconfig, err := kubeconfigOf(opts)
	if err != nil {
		return nil, err
	}
	// Without both, the configuration of a pod's ServiceAccount.
	access, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(&clientcmd.ClientConfigLoadingRules{ExplicitPath: kubeconfig},
		&clientcmd.ConfigOverrides{ClusterInfo: clientcmdapi.Cluster{Server: opts.Master}}).ClientConfig()
	switch {
	case clientcmd.IsEmptyConfig(err) && opts.ConfigFile != "":
		return nil, fmt.Errorf("%s: clientConnection.kubeconfig: required: the kubeconfig of the cluster, as this is no pod; "+
			"--kubeconfig is ignored with --config", opts.ConfigFile)
	case clientcmd.IsEmptyConfig(err):
		return nil, errors.New("--kubeconfig: required: the kubeconfig of the cluster, as this is no pod")
	case err != nil:
		return nil, err
	}
	client, err := discovery.NewDiscoveryClientForConfig(access)
	if err != nil {
		return nil, err
	}
	info, checked := &apimachineryversion.Info{}, false
	err = wait.PollUntilContextCancel(ctx, time.Second, true, func(ctx context.Context) (bool, error) {
		raw, err := client.RESTClient().Get().AbsPath("/version").DoRaw(ctx)
		switch {
		case err == nil:
			return true, json.Unmarshal(raw, info)
		case apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err):
			return false, fmt.Errorf("reading the version of the API server: %w (permit it, or set --%s)", err, emulatedVersion)
		case checked || ctx.Err() != nil:
			return false, nil //nolint:nilerr // it is tried again
		}
		checked = true
		if err := checkConfig(opts); err != nil {
			return false, err
		}
		klog.FromContext(ctx).Error(err, "Waiting for the API server, to read its version")
		return false, nil
	})
	return info, err
}

// kubeconfigOf returns the path of the kubeconfig of the scheduler.
func kubeconfigOf(opts *options.Options) (string, error) {
	if opts.ConfigFile != "" {
		return config.Kubeconfig(opts.ConfigFile)
	}
	return opts.Deprecated.Kubeconfig, nil
}

// checkConfig returns an error if the configuration file is invalid.
func checkConfig(opts *options.Options) error {
	if opts.ConfigFile == "" {
		return nil
	}
	_, err := config.Load(opts.ConfigFile)
	return err
}
