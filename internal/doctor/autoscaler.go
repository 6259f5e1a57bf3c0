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
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/kube/facts"
	"github.com/plimsoll-k8s/plimsoll/slack"
)

// unanswered is how long an autoscaler may take to say something about a buffer.
const unanswered = 2 * time.Minute

// autoscaler looks whether one keeps the buffers of the policies: by what it says of
// them and, where its Deployment is to be seen, by its flags.
func (x *examination) autoscaler(ctx context.Context) error {
	if !slices.ContainsFunc(x.policies, func(p v1alpha1.ResourceSlack) bool { return slack.BackendOf(&p).Writes(slack.CapacityBufferKind) }) {
		x.ok("no policy needs an autoscaler's buffers")
		return nil
	}
	var list unstructured.UnstructuredList
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: slack.CapacityBufferVersion.Group, Version: slack.CapacityBufferVersion.Version, Kind: "CapacityBufferList"})
	if err := x.client.List(ctx, &list); err != nil {
		if meta.IsNoMatchError(err) {
			x.add(Problem, "policies want buffers, and the CRD "+buffers+" is missing", "install it with your autoscaler (docs/slack.md), or set backend: Deployment in the policies")
			return nil
		}
		return err
	}
	var silent []string
	for i := range list.Items {
		buffer := &list.Items[i]
		conditions, _, err := unstructured.NestedSlice(buffer.Object, "status", "conditions")
		if err == nil && len(conditions) == 0 && x.now.Sub(buffer.GetCreationTimestamp().Time) > unanswered {
			silent = append(silent, facts.Name(buffer))
		}
	}
	if err := x.autoscalerFlags(ctx); err != nil {
		return err
	}
	if len(silent) > 0 {
		x.add(Problem, fmt.Sprintf("no autoscaler has said anything of %d of %d buffers: %s", len(silent), len(list.Items), some(silent)), "turn buffers on in your autoscaler: "+flagsOfClusterAutoscaler+" of Cluster Autoscaler, FEATURE_GATES=CapacityBuffer=true of Karpenter")
		return nil
	}
	x.ok("%d buffers, each seen by an autoscaler or new", len(list.Items))
	return nil
}

const flagsOfClusterAutoscaler = "--capacity-buffer-controller-enabled --capacity-buffer-pod-injection-enabled"

// autoscalerFlags looks at autoscalers that run as Deployments.
func (x *examination) autoscalerFlags(ctx context.Context) error {
	list, err := x.kube.AppsV1().Deployments(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range list.Items {
		x.flagsOf(&list.Items[i])
	}
	return nil
}

// flagsOf judges the flags of one Deployment, if it is an autoscaler.
func (x *examination) flagsOf(d *appsv1.Deployment) {
	name := facts.Name(d)
	for _, c := range d.Spec.Template.Spec.Containers {
		words := append(slices.Clone(c.Command), c.Args...)
		for _, variable := range c.Env {
			words = append(words, variable.Name+"="+variable.Value)
		}
		all := strings.Join(words, " ")
		switch {
		case strings.Contains(c.Image, "cluster-autoscaler"):
			for flag := range strings.SplitSeq(flagsOfClusterAutoscaler, " ") {
				if !strings.Contains(all, flag) || strings.Contains(all, flag+"=false") {
					x.add(Problem, name+" runs without "+flag, "add it to the arguments of "+name)
				}
			}
		case strings.Contains(c.Image, "karpenter"):
			if !strings.Contains(all, "CapacityBuffer=true") {
				x.add(Problem, name+" runs without the feature gate CapacityBuffer", "set FEATURE_GATES=CapacityBuffer=true in the environment of "+name+" (settings.featureGates of its chart)")
			}
		}
	}
}
