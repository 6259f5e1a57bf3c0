package main

import (
	"context"
	"math"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	metricsclient "k8s.io/metrics/pkg/client/clientset/versioned"

	"github.com/plimsoll-k8s/plimsoll/api/config"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/predict"
	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/prediction"
	"github.com/plimsoll-k8s/plimsoll/lab/nodes/realnodes"
	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/load/metricsserver"
)

// observer learns from the same usage of pods as the scheduler, by the same code, so that its predictions can be compared with what pods
// then use.
type observer struct {
	keeper *prediction.Keeper
	cancel context.CancelFunc
}

// newObserver returns an observer without a history.
func newObserver(ctx context.Context, c *realnodes.Cluster) (*observer, error) {
	metrics, err := metricsclient.NewForConfig(c.Config)
	if err != nil {
		return nil, err
	}
	source, err := metricsserver.NewPods(metricsserver.OpenPods(metrics.MetricsV1beta1().RESTClient()))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	list := func(visit func(node *v1.Node, pods []*v1.Pod)) {
		nodes, err := c.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return
		}
		pods, err := c.Client.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
		if err != nil {
			return
		}
		byNode := map[string][]*v1.Pod{}
		for i := range pods.Items {
			byNode[pods.Items[i].Spec.NodeName] = append(byNode[pods.Items[i].Spec.NodeName], &pods.Items[i])
		}
		for i := range nodes.Items {
			visit(&nodes.Items[i], byNode[nodes.Items[i].Name])
		}
	}
	keeper := prediction.New(predict.Options{HistoryWeight: 1, HalfLife: predict.DefaultHalfLife}, list,
		func(v1.ResourceName, float64, float64) {})
	store := load.NewPodStore(5*time.Minute, time.Now)
	keeper.Watch(load.NewStore(5*time.Minute, time.Now), store)
	go store.Run(ctx, source, realnodes.Resolution, func(state load.State) {
		if state.Err != nil {
			klog.V(2).Infof("observer: %v", state.Err)
		}
	})
	return &observer{keeper, cancel}, nil
}

func (o *observer) stop() { o.cancel() }

// predict returns the predicted mean and peak of the CPU use of a node in millicores.
func (o *observer) predict(pods []v1.Pod, node string) (mean, peak float64) {
	model := o.keeper.Model()
	var declared []predict.Declared
	for i := range pods {
		if pods[i].Spec.NodeName == node {
			amounts := resources.NewPod(&pods[i])
			declared = append(declared, prediction.Declared(&amounts))
		}
	}
	use := model.Node(node, declared)
	return use.Sums[predict.CPU].Mean, model.Peak(&use.Sums[predict.CPU], nil, &predict.Expected{Limit: math.Inf(1)}, predict.CPU,
		config.DefaultDeviations)
}
