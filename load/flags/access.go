package flags

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	metricsclient "k8s.io/metrics/pkg/client/clientset/versioned"

	"github.com/plimsoll-k8s/plimsoll/api/metricprovider"
	"github.com/plimsoll-k8s/plimsoll/internal/kube"
	"github.com/plimsoll-k8s/plimsoll/load/cluster"
	"github.com/plimsoll-k8s/plimsoll/load/provider"
)

// Access returns access to the cluster, as far as the source has a use for it:
// metrics-server needs one; others find nodes by address where there is one,
// which is where a kubeconfig is named or this runs in a pod. Nodes are watched
// until ctx ends.
func (f *Flags) Access(ctx context.Context) (provider.Cluster, error) {
	switch f.config.Type {
	case metricprovider.MetricsServer:
	case metricprovider.Prometheus, metricprovider.SignalFx:
		if f.kubeconfig == "" && !inCluster() {
			return provider.Cluster{}, nil
		}
	default:
		return provider.Cluster{}, nil
	}
	config, err := kube.Config(f.kubeconfig)
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

// AccessTo returns access to a cluster whose nodes are known: nothing is watched.
func (f *Flags) AccessTo(config *rest.Config, nodes []*v1.Node) (provider.Cluster, error) {
	metrics, err := metricsclient.NewForConfig(config)
	if err != nil {
		return provider.Cluster{}, err
	}
	machines := cluster.MachinesOf(nodes)
	return provider.Cluster{
		Nodes:   func() ([]cluster.Machine, error) { return machines, nil },
		Metrics: metrics.MetricsV1beta1().NodeMetricses(),
	}, nil
}

// Kubeconfig returns the file with access to the cluster, empty for the usual ways.
func (f *Flags) Kubeconfig() string { return f.kubeconfig }

// inCluster reports whether this runs in a pod that may ask the API server.
func inCluster() bool {
	_, err := rest.InClusterConfig()
	return err == nil
}

// firstList bounds how long the first question for nodes waits for them.
const firstList = 5 * time.Second

// +kubebuilder:rbac:groups="",resources=nodes,verbs=list;watch

// watchNodes returns the nodes of a cluster, which are watched until ctx ends.
func watchNodes(ctx context.Context, client kubernetes.Interface) cluster.Inventory {
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTransform(strip))
	nodes := factory.Core().V1().Nodes()
	lister, informer := nodes.Lister(), nodes.Informer()
	factory.Start(ctx.Done())
	started := time.Now()
	list := cluster.FromLister(lister)
	return func() ([]cluster.Machine, error) {
		waiting, cancel := context.WithDeadline(ctx, started.Add(firstList))
		defer cancel()
		if !informer.HasSynced() {
			factory.WaitForCacheSync(waiting.Done())
		}
		if !informer.HasSynced() {
			return nil, errors.New("the nodes of the cluster are not known yet; is the API server up, may nodes be listed and watched?")
		}
		return list()
	}
}

// strip leaves of a node what sources of load need.
func strip(obj any) (any, error) {
	node, ok := obj.(*v1.Node)
	if !ok {
		return obj, nil
	}
	return &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: node.Name, UID: node.UID, ResourceVersion: node.ResourceVersion, Labels: node.Labels},
		Status:     v1.NodeStatus{Capacity: node.Status.Capacity, Addresses: node.Status.Addresses},
	}, nil
}
