package agent

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/klog/v2"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/algo/clusterscore"
)

// policies reads the policies of resource slack in the member cluster. They are
// few, and there may be no such type: they are asked for with every report, and
// the answer says, too, that the cluster's API server is there.
type policies struct {
	client dynamic.Interface
	// refused: that they may not be read has been logged.
	refused bool
}

// list returns the slack of every policy that has been planned for. An error is
// that the API server does not answer.
func (p *policies) list(ctx context.Context) ([]clusterscore.Slack, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	list, err := p.client.Resource(v1alpha1.GroupVersion.WithResource("resourceslacks")).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case apierrors.IsForbidden(err):
		if !p.refused {
			klog.ErrorS(err, "The scores of slack are left out: policies may not be listed. Apply examples/placement/agent-member-rbac.yaml")
		}
		p.refused = true
		return nil, nil
	case err != nil:
		return nil, &reportError{reason: reasonMember, err: fmt.Errorf("the API server of this cluster does not answer, nothing is reported: %w", err)}
	}
	p.refused = false
	var typed v1alpha1.ResourceSlackList
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(list.UnstructuredContent(), &typed); err != nil {
		return nil, &reportError{reason: reasonMember, err: fmt.Errorf("policies of resource slack: %w", err)}
	}
	out := make([]clusterscore.Slack, 0, len(typed.Items))
	for i := range typed.Items {
		out = append(out, clusterscore.Slack{Available: amountsOf(typed.Items[i].Status.Available), Target: amountsOf(typed.Items[i].Status.Target)})
	}
	return out, nil
}
