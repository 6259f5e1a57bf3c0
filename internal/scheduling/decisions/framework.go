package decisions

import (
	"context"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// recording is a profile that records its decisions.
type recording struct {
	framework.Framework
	recorder *Recorder
}

// RunScorePlugins keeps the scores: the slice, not a copy.
func (f *recording) RunScorePlugins(
	ctx context.Context, state fwk.CycleState, pod *v1.Pod, nodes []fwk.NodeInfo,
) ([]fwk.NodePluginScores, *fwk.Status) {
	scores, status := f.Framework.RunScorePlugins(ctx, state, pod, nodes)
	if status.IsSuccess() {
		f.recorder.setScored(pod.UID, scores)
	}
	return scores, status
}

// RunReservePluginsReserve records the node that was selected, once per pod that is scheduled.
func (f *recording) RunReservePluginsReserve(ctx context.Context, state fwk.CycleState, pod *v1.Pod, node string) *fwk.Status {
	status := f.Framework.RunReservePluginsReserve(ctx, state, pod, node)
	if status.IsSuccess() {
		f.recorder.add(pod, node, f.SnapshotSharedLister().NodeInfos())
	}
	return status
}
