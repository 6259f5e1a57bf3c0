package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/kube/facts"
	"github.com/plimsoll-k8s/plimsoll/slack"
)

const (
	// bufferStatusTimeout is the age at which a buffer must have conditions from an autoscaler.
	bufferStatusTimeout = 2 * time.Minute
	// clusterAutoscalerFlags are the flags that enable buffers in Cluster Autoscaler.
	clusterAutoscalerFlags = "--capacity-buffer-controller-enabled --capacity-buffer-pod-injection-enabled"
)

// checkAutoscaler checks whether an autoscaler serves the buffers of the policies, by their conditions
// and by the flags of autoscalers that run as Deployments.
func (e *examination) checkAutoscaler(ctx context.Context) error {
	usesBuffers := func(p v1alpha1.ResourceSlack) bool { return slack.BackendOf(&p).Writes(slack.CapacityBufferKind) }
	if !slices.ContainsFunc(e.policies, usesBuffers) {
		e.ok("no policy uses the buffers of an autoscaler")
		return nil
	}
	var list unstructured.UnstructuredList
	list.SetGroupVersionKind(slack.CapacityBufferVersion.WithKind("CapacityBufferList"))
	if err := e.client.List(ctx, &list); err != nil {
		if meta.IsNoMatchError(err) {
			e.add(Problem, "policies use buffers, but the CRD "+buffersCRD+" is not installed",
				"install it with your autoscaler (docs/slack.md), or set backend: Deployment in the policies")
			return nil
		}
		return err
	}
	var unserved []string
	for i := range list.Items {
		buffer := &list.Items[i]
		conditions, _, err := unstructured.NestedSlice(buffer.Object, "status", "conditions")
		if err == nil && len(conditions) == 0 && e.now.Sub(buffer.GetCreationTimestamp().Time) > bufferStatusTimeout {
			unserved = append(unserved, facts.Name(buffer))
		}
	}
	if err := e.checkAutoscalerFlags(ctx); err != nil {
		return err
	}
	if len(unserved) > 0 {
		e.add(Problem, fmt.Sprintf("%d of %d buffers have no conditions from an autoscaler: %s",
			len(unserved), len(list.Items), abbreviate(unserved)),
			"enable buffers in your autoscaler: "+clusterAutoscalerFlags+" of Cluster Autoscaler, "+
				"FEATURE_GATES=CapacityBuffer=true of Karpenter")
		return nil
	}
	e.ok("%d buffers, all new or with conditions from an autoscaler", len(list.Items))
	return nil
}

// checkAutoscalerFlags checks the flags of autoscalers that run as Deployments.
func (e *examination) checkAutoscalerFlags(ctx context.Context) error {
	list, err := e.kube.AppsV1().Deployments(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range list.Items {
		e.checkFlagsOf(&list.Items[i])
	}
	return nil
}

// checkFlagsOf checks the flags and environment variables of a Deployment if it is an autoscaler.
func (e *examination) checkFlagsOf(d *appsv1.Deployment) {
	name := facts.Name(d)
	for _, c := range d.Spec.Template.Spec.Containers {
		words := append(slices.Clone(c.Command), c.Args...)
		for _, variable := range c.Env {
			words = append(words, variable.Name+"="+variable.Value)
		}
		all := strings.Join(words, " ")
		switch {
		case strings.Contains(c.Image, "cluster-autoscaler"):
			for flag := range strings.SplitSeq(clusterAutoscalerFlags, " ") {
				if !strings.Contains(all, flag) || strings.Contains(all, flag+"=false") {
					e.add(Problem, name+" runs without "+flag, "add it to the arguments of "+name)
				}
			}
		case strings.Contains(c.Image, "karpenter"):
			if !strings.Contains(all, "CapacityBuffer=true") {
				e.add(Problem, name+" runs without the feature gate CapacityBuffer",
					"set FEATURE_GATES=CapacityBuffer=true in the environment of "+name+" (settings.featureGates of its chart)")
			}
		}
	}
}
