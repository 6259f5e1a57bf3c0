// Package schedtest runs scheduler plugins in the real scheduler framework, without an API server, and
// builds the clusters for it.
package schedtest

import (
	"context"
	"fmt"
	"maps"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
	internalconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	inTree "k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/metrics"

	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/test/support/clustertest"
)

// Amounts returns a resource list from pairs of name and quantity.
func Amounts(pairs ...string) v1.ResourceList { return clustertest.Amounts(pairs...) }

// Node returns a node whose capacity and allocatable are these amounts.
func Node(name string, pairs ...string) *v1.Node {
	amounts := Amounts(pairs...)
	return &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: v1.NodeStatus{Capacity: amounts, Allocatable: amounts}}
}

// Pod returns a pod with one container per pair of requests and limits. The node may be empty.
func Pod(name, node string, requestsAndLimits ...v1.ResourceList) *v1.Pod {
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID(name)},
		Spec:       v1.PodSpec{NodeName: node},
	}
	for i := 0; i+1 < len(requestsAndLimits); i += 2 {
		pod.Spec.Containers = append(pod.Spec.Containers, v1.Container{
			Name:      fmt.Sprint("c", i/2),
			Resources: v1.ResourceRequirements{Requests: requestsAndLimits[i], Limits: requestsAndLimits[i+1]},
		})
	}
	return pod
}

// CPU returns a pod of one container with a CPU request and a CPU limit, which may be empty.
func CPU(name, node, request, limit string) *v1.Pod {
	limits := v1.ResourceList{}
	if limit != "" {
		limits = Amounts("cpu", limit)
	}
	return Pod(name, node, Amounts("cpu", request), limits)
}

// Cluster is the nodes and pods of a cluster.
type Cluster struct {
	Nodes []*v1.Node
	Pods  []*v1.Pod
	// Devices has the devices and their claims, nil without any.
	Devices fwk.SharedDRAManager
}

// Plugin is a plugin to run. Args may be nil for the defaults.
type Plugin struct {
	Name string
	Args runtime.Object
	// ScoreOnly enables the plugin for Score only instead of all its extension points.
	ScoreOnly bool
}

// Scores are the scores of a node.
type Scores struct{ Raw, Normalized int64 }

// Scheduler is the scheduler framework with one plugin, and the nodes of a cluster in the order of Cluster.Nodes.
type Scheduler struct {
	framework.Framework
	Plugin fwk.Plugin
	Nodes  []fwk.NodeInfo
}

// New returns the scheduler framework with one plugin of a registry, and the nodes of a cluster.
func New(ctx context.Context, registry frameworkruntime.Registry, p Plugin, cluster Cluster) (*Scheduler, error) {
	metrics.Register() // the framework updates its metrics
	s := &Scheduler{}
	all := inTree.NewInTreeRegistry()
	maps.Copy(all, registry)
	if create, ok := all[p.Name]; ok {
		all[p.Name] = func(ctx context.Context, args runtime.Object, h fwk.Handle) (plugin fwk.Plugin, err error) {
			s.Plugin, err = create(ctx, args, h)
			return s.Plugin, err
		}
	}
	enabled := internalconfig.PluginSet{Enabled: []internalconfig.Plugin{{Name: p.Name, Weight: 1}}}
	profile := &internalconfig.KubeSchedulerProfile{
		SchedulerName: v1.DefaultSchedulerName,
		Plugins: &internalconfig.Plugins{
			QueueSort: internalconfig.PluginSet{Enabled: []internalconfig.Plugin{{Name: "PrioritySort"}}},
			Bind:      internalconfig.PluginSet{Enabled: []internalconfig.Plugin{{Name: "DefaultBinder"}}},
			Score:     enabled,
		},
	}
	if !p.ScoreOnly {
		profile.Plugins.Score, profile.Plugins.MultiPoint = internalconfig.PluginSet{}, enabled
	}
	if p.Args != nil {
		profile.PluginConfig = []internalconfig.PluginConfig{{Name: p.Name, Args: p.Args}}
	}
	snapshot := cache.NewSnapshot(cluster.Pods, cluster.Nodes)
	var err error
	if s.Framework, err = frameworkruntime.NewFramework(
		ctx, all, profile, frameworkruntime.WithSnapshotSharedLister(snapshot), frameworkruntime.WithSharedDRAManager(cluster.Devices),
	); err != nil {
		return nil, err
	}
	for _, node := range cluster.Nodes {
		info, err := snapshot.Get(node.Name)
		if err != nil {
			return nil, err
		}
		s.Nodes = append(s.Nodes, info)
	}
	return s, nil
}

// Run scores all nodes of a cluster for a pod with one plugin and returns the scores by node.
func Run(t testing.TB, registry frameworkruntime.Registry, p Plugin, cluster Cluster, pod *v1.Pod) (map[string]Scores, error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	defer cancel()
	s, err := New(ctx, registry, p, cluster)
	if err != nil {
		return nil, err
	}
	state := framework.NewCycleState()
	if status := s.RunPreScorePlugins(ctx, state, pod, s.Nodes); !status.IsSuccess() {
		return nil, status.AsError()
	}
	scored, status := s.RunScorePlugins(ctx, state, pod, s.Nodes)
	if !status.IsSuccess() {
		return nil, status.AsError()
	}
	scores := map[string]Scores{}
	for i, node := range scored {
		raw, status := s.Plugin.(fwk.ScorePlugin).Score(ctx, state, pod, s.Nodes[i])
		if !status.IsSuccess() {
			return nil, status.AsError()
		}
		scores[node.Name] = Scores{raw, node.Scores[0].Score}
	}
	return scores, nil
}

// CheckScores runs a plugin over a cluster, once with PreScore and once enabled for score only, and
// compares the raw and the normalized score of every node.
func CheckScores(t *testing.T, registry frameworkruntime.Registry, p Plugin, cluster Cluster, pod *v1.Pod, want map[string][2]int64) {
	t.Helper()
	for _, scoreOnly := range []bool{false, true} {
		p.ScoreOnly = scoreOnly
		scores, err := Run(t, registry, p, cluster, pod)
		got := map[string][2]int64{}
		for node, s := range scores {
			got[node] = [2]int64{s.Raw, s.Normalized}
		}
		if err != nil || !maps.Equal(got, want) {
			t.Errorf("score only %t: scores %v, want %v (error %v)", scoreOnly, got, want, err)
		}
	}
}

// now is the fixed time of the stores that WithLoad creates.
var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// WithLoad returns a function that creates stores with a reading of that age, or without a reading if
// nodes is nil.
func WithLoad(nodes map[string]load.Node, age time.Duration) func(maxAge time.Duration) (*load.Store, error) {
	return func(maxAge time.Duration) (*load.Store, error) {
		store := load.NewStore(maxAge, func() time.Time { return now })
		if nodes == nil {
			return store, nil
		}
		return store, store.Put(load.Reading{Time: now.Add(-age), Nodes: nodes})
	}
}

// CPULoad returns the load of a node whose CPU alone is measured.
func CPULoad(mean, stdDev float64) load.Node {
	return load.Node{CPU: load.Utilization{Mean: mean, StdDev: stdDev}, HasCPU: true}
}
