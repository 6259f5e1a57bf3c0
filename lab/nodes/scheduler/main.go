// Command scheduler is plimsoll-scheduler with the formula of Crane, an arm of the experiment on real nodes. The formula reads the
// load of nodes from metrics-server, averaged over a window as short as the recorded usage is compressed.
package main

import (
	"context"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/component-base/cli"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/cmd/kube-scheduler/app"
	metricsclient "k8s.io/metrics/pkg/client/clientset/versioned"

	"github.com/plimsoll-k8s/plimsoll/api/metricprovider"
	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/shared"
	"github.com/plimsoll-k8s/plimsoll/lab/experiment/baselines"
	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/load/provider"
	"github.com/plimsoll-k8s/plimsoll/plugins"
)

const (
	window   = time.Minute
	interval = 2 * time.Second
)

func main() {
	options := append(plugins.Options(), app.WithPlugin(baselines.Dynamic, newDynamic))
	os.Exit(cli.Run(app.NewSchedulerCommand(options...)))
}

// newDynamic returns the plugin with the load of nodes.
func newDynamic(ctx context.Context, args runtime.Object, h fwk.Handle) (fwk.Plugin, error) {
	client, err := metricsclient.NewForConfig(h.KubeConfig())
	if err != nil {
		return nil, err
	}
	config := metricprovider.Config{Type: metricprovider.MetricsServer, Window: metav1.Duration{Duration: window}}
	source, err := provider.New(config, provider.Cluster{
		Nodes:   load.FromLister(h.SharedInformerFactory().Core().V1().Nodes().Lister()),
		Metrics: client.MetricsV1beta1().NodeMetricses(),
	})
	if err != nil {
		return nil, err
	}
	store := load.NewStore(metricprovider.DefaultMaxAge, nil)
	go store.Run(ctx, source, interval, func(load.State) {})
	state := shared.NewWithLoad(func(time.Duration) (*load.Store, error) { return store, nil }, nil)
	return state.Share(baselines.Registry(baselines.Future{})[baselines.Dynamic])(ctx, args, h)
}
