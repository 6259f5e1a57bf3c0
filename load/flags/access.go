package flags

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	metricsclient "k8s.io/metrics/pkg/client/clientset/versioned"

	"github.com/plimsoll-k8s/plimsoll/api/metricprovider"
	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/load/metricsserver"
	"github.com/plimsoll-k8s/plimsoll/load/provider"
)

// Access returns the access to the cluster that the source needs. metrics-server requires it;
// Prometheus and SignalFx match addresses with nodes if --kubeconfig or --context is set or the process runs in a
// pod. Nodes are watched until ctx is done.
func (f *Flags) Access(ctx context.Context) (provider.Cluster, error) {
	if err := provider.Validate(f.config); err != nil { // before a missing kubeconfig
		return provider.Cluster{}, f.withFlagNames(err)
	}
	switch f.config.Type {
	case metricprovider.MetricsServer:
	case metricprovider.Prometheus, metricprovider.SignalFx:
		if _, err := rest.InClusterConfig(); err != nil && !f.access.Given() {
			return provider.Cluster{}, nil
		}
	default:
		return provider.Cluster{}, nil
	}
	config, err := f.access.Config()
	if err != nil {
		return provider.Cluster{}, fmt.Errorf("provider %s: %w", f.config.Type, err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return provider.Cluster{}, fmt.Errorf("--kubeconfig: %w", err)
	}
	metrics, err := metricsclient.NewForConfig(config)
	if err != nil {
		return provider.Cluster{}, fmt.Errorf("--kubeconfig: %w", err)
	}
	return provider.Cluster{Nodes: watchNodes(ctx, client), Metrics: metrics.MetricsV1beta1().NodeMetricses()}, nil
}

// AccessTo returns the access to a cluster with the given nodes, without watching them.
func (f *Flags) AccessTo(config *rest.Config, nodes []*v1.Node) (provider.Cluster, error) {
	metrics, err := metricsclient.NewForConfig(config)
	if err != nil {
		return provider.Cluster{}, err
	}
	return provider.Cluster{
		Nodes:      func() ([]*v1.Node, error) { return nodes, nil },
		Metrics:    metrics.MetricsV1beta1().NodeMetricses(),
		PodMetrics: metricsserver.OpenPods(metrics.MetricsV1beta1().RESTClient()),
	}, nil
}

// Config returns the client configuration of the cluster in --kubeconfig and --context.
func (f *Flags) Config() (*rest.Config, error) { return f.access.Config() }

// Explain returns the error of a request to the cluster with the server and the context if the server rejects the credentials.
func (f *Flags) Explain(err error) error { return f.access.Explain(err) }

// Namespace returns the namespace of the context, "default" if it has none.
func (f *Flags) Namespace() (string, error) { return f.access.Namespace() }

// syncTimeout is the longest wait for the first list of nodes.
const syncTimeout = 5 * time.Second

// +kubebuilder:rbac:groups="",resources=nodes,verbs=list;watch

// watchNodes returns the nodes of a cluster, which are watched until ctx is done.
func watchNodes(ctx context.Context, client kubernetes.Interface) load.Inventory {
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTransform(stripFields))
	nodes := factory.Core().V1().Nodes()
	lister, informer := nodes.Lister(), nodes.Informer()
	factory.Start(ctx.Done())
	started := time.Now()
	return func() ([]*v1.Node, error) {
		syncCtx, cancel := context.WithDeadline(ctx, started.Add(syncTimeout))
		defer cancel()
		if !informer.HasSynced() {
			factory.WaitForCacheSync(syncCtx.Done())
		}
		if !informer.HasSynced() {
			return nil, errors.New(
				"nodes are not synced yet: check that the API server is reachable and that RBAC permits list and watch of nodes",
			)
		}
		return lister.List(labels.Everything())
	}
}

// stripFields removes the fields of a node that load sources do not use.
func stripFields(obj any) (any, error) {
	node, ok := obj.(*v1.Node)
	if !ok {
		return obj, nil
	}
	return &v1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: node.Name, UID: node.UID, ResourceVersion: node.ResourceVersion, Labels: node.Labels,
			CreationTimestamp: node.CreationTimestamp,
		},
		Status: v1.NodeStatus{Capacity: node.Status.Capacity, Addresses: node.Status.Addresses},
	}, nil
}
