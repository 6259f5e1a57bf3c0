// Package demo has the shared parts of the demos of node scheduling, slack and placements: the cluster
// that they run in, and their results.
package demo

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"
	"k8s.io/kubernetes/pkg/scheduler"
	internalconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	ctrl "sigs.k8s.io/controller-runtime"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/plimsoll-k8s/plimsoll/api/config"
	"github.com/plimsoll-k8s/plimsoll/internal/controllers/setup"
	"github.com/plimsoll-k8s/plimsoll/internal/embedded/controlplane"
	"github.com/plimsoll-k8s/plimsoll/internal/kube"
	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/command"
)

// MaxLoadAge is how long the demo's scheduler uses load data: much shorter than in a cluster, so
// that the demo does not wait.
const MaxLoadAge = 2 * time.Second

//go:embed profiles.yaml
var profiles string

// Environment is the cluster that the demos run in.
type Environment struct {
	*Cluster
	// Access has administrator rights in the cluster.
	Access *rest.Config
	// Scheduler is the configuration of the cluster's scheduler.
	Scheduler *internalconfig.KubeSchedulerConfiguration
	// Plane is the control plane, nil if the cluster is external.
	Plane *controlplane.ControlPlane

	ctx     context.Context
	stop    context.CancelCauseFunc
	running sync.WaitGroup
}

// Start starts a control plane and a scheduler with the plugins. They run until Stop is called or
// ctx ends. loadArguments are the arguments of the plugins that name the load source; progress
// is called before each step. The caller's main must call controlplane.RunIfChild first.
func Start(ctx context.Context, loadArguments string, progress func(string)) (_ *Environment, err error) {
	e := &Environment{}
	e.ctx, e.stop = context.WithCancelCause(ctx)
	defer func() {
		if err != nil {
			e.Stop()
		}
	}()
	progress("starting etcd and kube-apiserver")
	if e.Plane, err = controlplane.Start(ctx, controlplane.Options{}); err != nil {
		return nil, err
	}
	if e.Access, err = e.Plane.Config("plimsoll-demo", "system:masters"); err != nil {
		return nil, err
	}
	if e.Cluster, err = newCluster(e.Access); err != nil {
		return nil, err
	}
	progress("starting kube-scheduler with Plimsoll's plugins")
	if err := e.startScheduler(loadArguments); err != nil {
		return nil, fmt.Errorf("starting the scheduler: %w", err)
	}
	return e, e.publishProfiles(ctx, Profiles(loadArguments, MaxLoadAge))
}

// Attach returns the environment of a cluster in which the scheduler, with the profiles of
// Profiles, and for the slack and fleet demos also the CRDs and controllers are already installed.
// The demos delete all nodes of the cluster and all pods of the default namespace.
func Attach(ctx context.Context, access *rest.Config, scheduler *internalconfig.KubeSchedulerConfiguration) (*Environment, error) {
	cluster, err := newCluster(access)
	e := &Environment{Cluster: cluster, Access: access, Scheduler: scheduler}
	e.ctx, e.stop = context.WithCancelCause(ctx)
	return e, err
}

// Context returns a context that ends with the environment, or when one of its programs exits by itself, with the reason as its cause.
func (e *Environment) Context() context.Context { return e.ctx }

// Go runs a program in the background until the context of the environment ends.
func (e *Environment) Go(name string, run func(context.Context) error) {
	e.running.Go(func() {
		err := run(e.ctx)
		e.stop(errors.Join(errors.New(name+" has exited"), err))
	})
}

// StartController installs CRDs and starts a controller, unless the cluster is external.
func (e *Environment) StartController(name string, crds [][]byte, register func(ctrl.Manager) error) error {
	if e.Plane == nil {
		return nil
	}
	if err := controlplane.InstallCRDs(e.ctx, e.Access, crds...); err != nil {
		return err
	}
	m, err := setup.New(e.Access, ctrl.Options{Metrics: metricsserver.Options{BindAddress: "0"}})
	if err != nil {
		return err
	}
	if err := register(m); err != nil {
		return err
	}
	e.Go("the "+name+" controller", m.Start)
	return nil
}

// Stop stops all programs of the environment and the control plane, and removes their files.
func (e *Environment) Stop() {
	e.stop(nil)
	e.running.Wait()
	if e.Plane != nil {
		e.Plane.Stop()
	}
}

// Profiles returns the configuration of a scheduler with the profiles of the node scenarios.
// The scheduler reads load from the source that loadArguments, arguments of the plugins, name.
func Profiles(loadArguments string, maxLoadAge time.Duration) string {
	return strings.NewReplacer("LOAD_SOURCE", loadArguments, "MAX_LOAD_AGE", maxLoadAge.String()).Replace(profiles)
}

// startScheduler writes the scheduler's configuration and starts it as the user
// system:kube-scheduler.
func (e *Environment) startScheduler(loadArguments string) error {
	kubeconfig := filepath.Join(e.Plane.Dir, "scheduler.kubeconfig")
	if err := e.Plane.WriteKubeconfig(kubeconfig, "system:kube-scheduler"); err != nil {
		return err
	}
	file := e.SchedulerConfig()
	content := Profiles(loadArguments, MaxLoadAge) +
		fmt.Sprintf("clientConnection: {kubeconfig: %q, qps: 1000, burst: 2000}\n", kubeconfig)
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		return err
	}
	opts := options.NewOptions()
	opts.ConfigFile = file
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	opts.SecureServing.Listener = listener
	opts.Authentication.RemoteKubeConfigFile, opts.Authorization.RemoteKubeConfigFile = kubeconfig, kubeconfig
	started := make(chan struct{})
	e.Go("the scheduler", func(ctx context.Context) error {
		return command.Run(ctx, opts, func(*scheduler.Scheduler) { close(started) })
	})
	select {
	case <-started:
	case <-e.ctx.Done():
		return context.Cause(e.ctx)
	}
	e.Scheduler, err = config.Load(file) // with the defaults for the version that the scheduler emulates
	return err
}

// publishProfiles creates the ConfigMap with the configuration of the scheduler that the chart creates in
// a real cluster, from which plimsoll explain reads the profiles and the load source.
func (e *Environment) publishProfiles(ctx context.Context, profiles string) error {
	_, err := e.Client.CoreV1().ConfigMaps(metav1.NamespaceSystem).Create(ctx, &v1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "plimsoll-scheduler", Labels: map[string]string{
			"app.kubernetes.io/part-of": "plimsoll", "app.kubernetes.io/component": "scheduler",
		}},
		Data: map[string]string{kube.SchedulerConfigurationKey: profiles},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("publishing the profiles of the scheduler: %w", err)
	}
	return nil
}

// SchedulerConfig returns the path of the scheduler's configuration.
func (e *Environment) SchedulerConfig() string { return filepath.Join(e.Plane.Dir, "scheduler.yaml") }
