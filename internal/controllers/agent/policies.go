package agent

import (
	"context"
	"fmt"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/klog/v2"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// policies lists the slack policies of the member cluster for every report. They are few, their CRD
// may not be installed, and the request also shows that the API server answers.
type policies struct {
	client dynamic.Interface
	// forbidden reports whether the last request was denied, which is logged once.
	forbidden atomic.Bool
}

// list returns the slack of all policies. It returns an error if the API server does not answer.
func (p *policies) list(ctx context.Context) ([]Slack, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	list, err := p.client.Resource(v1alpha1.GroupVersion.WithResource("resourceslacks")).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case apierrors.IsForbidden(err):
		if !p.forbidden.Swap(true) {
			klog.ErrorS(err, "Listing slack policies is forbidden, the slack scores are omitted: "+
				"apply examples/placement/agent-member-rbac.yaml")
		}
		return nil, nil
	case err != nil:
		return nil, &reportError{reasonMember, fmt.Errorf("listing slack policies of the cluster failed, nothing is reported: %w", err)}
	}
	p.forbidden.Store(false)
	var typed v1alpha1.ResourceSlackList
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(list.UnstructuredContent(), &typed); err != nil {
		return nil, &reportError{reasonMember, fmt.Errorf("decoding slack policies: %w", err)}
	}
	out := make([]Slack, 0, len(typed.Items))
	for i := range typed.Items {
		out = append(out, Slack{
			Available: resources.CPUAndMemory(typed.Items[i].Status.Available),
			Target:    resources.CPUAndMemory(typed.Items[i].Status.Target),
			Total:     resources.CPUAndMemory(typed.Items[i].Status.Total),
		})
	}
	return out, nil
}
