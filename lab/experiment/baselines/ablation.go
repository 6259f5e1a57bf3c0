package baselines

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"

	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/predict"
	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/shared"
	"github.com/plimsoll-k8s/plimsoll/plugins/predictedutilization"
)

// Names of PredictedUtilization with a part of its model left out.
const (
	WithoutFit         = "PredictedUtilizationWithoutFit"
	WithoutCorrelation = "PredictedUtilizationWithoutCorrelation"
	WithoutBlending    = "PredictedUtilizationWithoutBlending"
)

// reduced is PredictedUtilization under another name.
type reduced struct {
	predicted
	name string
}

// predicted has the methods of PredictedUtilization.
type predicted interface {
	fwk.PreScorePlugin
	fwk.ScorePlugin
	fwk.SignPlugin
}

// Name returns the name of the plugin.
func (r reduced) Name() string { return r.name }

// without returns the constructor of PredictedUtilization without parts of its model.
func without(name string, parts predict.Parts) frameworkruntime.PluginFactory {
	return func(ctx context.Context, obj runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
		shared.Of(handle).Without = parts
		plugin, err := predictedutilization.New(ctx, obj, handle)
		if err != nil {
			return nil, err
		}
		return reduced{plugin.(predicted), name}, nil
	}
}
