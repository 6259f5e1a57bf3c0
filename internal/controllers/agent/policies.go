package agent

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// policies returns the slack of all policies. It returns an error if the API server does not answer.
func (m *member) policies(ctx context.Context) ([]Slack, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	list, err := m.client.Resource(v1alpha1.GroupVersion.WithResource("resourceslacks")).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case apierrors.IsForbidden(err):
		if !m.forbidden.Swap(true) {
			klog.ErrorS(err, "Listing slack policies is forbidden, the slack scores are omitted: "+
				"apply examples/placement/agent-member-rbac.yaml")
		}
		return nil, nil
	case err != nil:
		return nil, &reportError{reasonMember, fmt.Errorf("listing slack policies of the cluster failed, nothing is reported: %w", err)}
	}
	m.forbidden.Store(false)
	var typed v1alpha1.ResourceSlackList
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(list.UnstructuredContent(), &typed); err != nil {
		return nil, &reportError{reasonMember, fmt.Errorf("decoding slack policies: %w", err)}
	}
	out := make([]Slack, 0, len(typed.Items))
	for i := range typed.Items {
		out = append(out, Slack{
			Available: resources.CPUAndMemory(typed.Items[i].Status.Available),
			Target:    resources.CPUAndMemory(typed.Items[i].Status.Target),
			Total:     typed.Items[i].Status.Total,
		})
	}
	return out, nil
}
