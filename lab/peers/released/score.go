package main

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	fwk "k8s.io/kube-scheduler/framework"
	schedconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"sigs.k8s.io/scheduler-plugins/apis/config"
	"sigs.k8s.io/scheduler-plugins/pkg/noderesources"
	"sigs.k8s.io/scheduler-plugins/pkg/trimaran/loadvariationriskbalancing"
	"sigs.k8s.io/scheduler-plugins/pkg/trimaran/lowriskovercommitment"
	"sigs.k8s.io/scheduler-plugins/pkg/trimaran/targetloadpacking"
)

// handle has the parts of the framework that the plugins use.
type handle struct {
	framework.Handle
	informers informers.SharedInformerFactory
}

func (h handle) SharedInformerFactory() informers.SharedInformerFactory { return h.informers }

// addScores adds a case for each plugin and number of pods: the score of one node. The arguments are the
// defaults of the plugins.
func addScores(ctx context.Context, w *workload, watcher string, operations map[string]operation) error {
	load := config.TrimaranSpec{WatcherAddress: watcher}
	h := handle{informers: informers.NewSharedInformerFactory(fake.NewClientset(), 0)}
	for name, p := range map[string]struct {
		construct func(context.Context, runtime.Object, framework.Handle) (framework.Plugin, error)
		args      runtime.Object
	}{
		lowriskovercommitment.Name: {lowriskovercommitment.New, &config.LowRiskOverCommitmentArgs{
			TrimaranSpec: load, SmoothingWindowSize: 5,
			RiskLimitWeights: map[v1.ResourceName]float64{v1.ResourceCPU: 0.5, v1.ResourceMemory: 0.5},
		}},
		loadvariationriskbalancing.Name: {loadvariationriskbalancing.New, &config.LoadVariationRiskBalancingArgs{
			TrimaranSpec: load, SafeVarianceMargin: 1, SafeVarianceSensitivity: 1,
		}},
		targetloadpacking.Name: {targetloadpacking.New, &config.TargetLoadPackingArgs{
			TrimaranSpec: load, DefaultRequests: v1.ResourceList{v1.ResourceCPU: resource.MustParse("1000m")},
			DefaultRequestsMultiplier: "1.5", TargetUtilization: 40,
		}},
		noderesources.AllocatableName: {noderesources.NewAllocatable, &config.NodeResourcesAllocatableArgs{
			Mode:      config.Least,
			Resources: []schedconfig.ResourceSpec{{Name: "cpu", Weight: 1 << 20}, {Name: "memory", Weight: 1}},
		}},
	} {
		plugin, err := p.construct(ctx, p.args, h)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		for pods, n := range w.Nodes {
			info := framework.NewNodeInfo(n.Pods...)
			info.SetNode(n.Node)
			operations["score/"+name+"/"+pods] = scoreOf(ctx, plugin.(framework.ScorePlugin), w.Pod, info)
		}
	}
	return nil
}

// scoreOf returns the operation that scores a node for a pod. PreScore has been called.
func scoreOf(ctx context.Context, plugin framework.ScorePlugin, pod *v1.Pod, node fwk.NodeInfo) operation {
	state := framework.NewCycleState()
	if p, ok := plugin.(framework.PreScorePlugin); ok {
		p.PreScore(ctx, state, pod, []fwk.NodeInfo{node})
	}
	return func() error {
		_, status := plugin.Score(ctx, state, pod, node)
		return status.AsError()
	}
}
