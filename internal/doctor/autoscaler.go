package doctor

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/slack"
)

const (
	// bufferStatusTimeout is the age at which a buffer must have conditions from an autoscaler.
	bufferStatusTimeout = 2 * time.Minute
	// clusterAutoscalerFlags are the flags that enable buffers in Cluster Autoscaler.
	clusterAutoscalerFlags = "--capacity-buffer-controller-enabled --capacity-buffer-pod-injection-enabled"
)

// checkAutoscaler checks whether an autoscaler serves the buffers of the policies, by their conditions
// and by the flags and rights of autoscalers that run as Deployments.
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
	if err := e.checkAutoscalers(ctx); err != nil {
		return err
	}
	e.checkBuffers(list.Items)
	return nil
}

// checkAutoscalers checks the flags and rights of autoscalers that run as Deployments.
func (e *examination) checkAutoscalers(ctx context.Context) error {
	list, err := e.kube.AppsV1().Deployments(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	named := false
	for i := range list.Items {
		d := &list.Items[i]
		isNamed := d.Namespace == e.Autoscaler.Namespace && d.Name == e.Autoscaler.Name
		named = named || isNamed
		if e.Autoscaler.Name != "" && !isNamed {
			continue
		}
		e.checkFlagsOf(d)
		if isNamed && !isKarpenter(d) || isClusterAutoscaler(d) {
			if err := e.checkRightsOfClusterAutoscaler(ctx, d); err != nil {
				return err
			}
		}
	}
	if e.Autoscaler.Name != "" && !named {
		e.add(Problem, fmt.Sprintf("there is no Deployment %s", e.Autoscaler), "name the Deployment of the autoscaler with --autoscaler")
	}
	return nil
}

// isClusterAutoscaler reports whether a Deployment looks like Cluster Autoscaler.
func isClusterAutoscaler(d *appsv1.Deployment) bool { return hasImage(d, "cluster-autoscaler") }

// isKarpenter reports whether a Deployment looks like Karpenter.
func isKarpenter(d *appsv1.Deployment) bool { return hasImage(d, "karpenter") }

// hasImage reports whether the image of a container of a Deployment contains a name.
func hasImage(d *appsv1.Deployment, name string) bool {
	return slices.ContainsFunc(d.Spec.Template.Spec.Containers, func(c v1.Container) bool { return strings.Contains(c.Image, name) })
}

// bufferRules are the permissions that Cluster Autoscaler requires for buffers, in addition to the
// permissions in its chart.
var bufferRules = []rbacv1.PolicyRule{
	{
		Verbs: []string{"list", "watch"}, APIGroups: []string{slack.CapacityBufferVersion.Group}, Resources: []string{"capacitybuffers"},
	},
	{Verbs: []string{"update"}, APIGroups: []string{slack.CapacityBufferVersion.Group}, Resources: []string{"capacitybuffers/status"}},
	{Verbs: []string{"list", "watch"}, APIGroups: []string{""}, Resources: []string{"podtemplates", "resourcequotas"}},
	{Verbs: []string{"list", "watch"}, APIGroups: []string{"apps"}, Resources: []string{"deployments"}},
}

// dryRunRules are the permissions that Cluster Autoscaler requires to create, in a dry run, a pod of each
// buffer, and to store the result as a PodTemplate.
var dryRunRules = []rbacv1.PolicyRule{
	{Verbs: []string{"create"}, APIGroups: []string{""}, Resources: []string{"pods"}},
	{Verbs: []string{"get", "create", "update"}, APIGroups: []string{""}, Resources: []string{"podtemplates"}},
}

// checkRightsOfClusterAutoscaler checks whether the service account of Cluster Autoscaler has the permissions
// for buffers.
func (e *examination) checkRightsOfClusterAutoscaler(ctx context.Context, d *appsv1.Deployment) error {
	rules := slices.Clone(bufferRules)
	if !strings.Contains(wordsOf(d), "--capacity-buffer-pod-dry-run-enabled=false") {
		rules = append(rules, dryRunRules...)
	}
	account := cmp.Or(d.Spec.Template.Spec.ServiceAccountName, "default")
	missing, err := e.denied(ctx, d.Namespace, account, "", rules)
	if err != nil {
		return err
	}
	if len(missing) > 0 {
		e.add(Problem, fmt.Sprintf("service account %s/%s of %s may not %s: without podtemplates, resourcequotas and deployments it "+
			"waits at its start, without pods it refuses every buffer", d.Namespace, account, d.Name, strings.Join(missing, "; ")),
			"bind a ClusterRole with these permissions to it: docs/slack.md, Install")
		return nil
	}
	e.ok("service account %s/%s of %s has the permissions for buffers", d.Namespace, account, d.Name)
	return nil
}

// wordsOf returns the commands, arguments and environment variables of a Deployment.
func wordsOf(d *appsv1.Deployment) string {
	var words []string
	for _, c := range d.Spec.Template.Spec.Containers {
		words = append(append(words, c.Command...), c.Args...)
		for _, variable := range c.Env {
			words = append(words, variable.Name+"="+variable.Value)
		}
	}
	return strings.Join(words, " ")
}

// checkFlagsOf checks the flags and environment variables of a Deployment if it is an autoscaler.
func (e *examination) checkFlagsOf(d *appsv1.Deployment) {
	name, all := resources.Name(d), wordsOf(d)
	switch {
	case isClusterAutoscaler(d):
		for flag := range strings.SplitSeq(clusterAutoscalerFlags, " ") {
			if !strings.Contains(all, flag) || strings.Contains(all, flag+"=false") {
				e.add(Problem, name+" runs without "+flag, "add it to the arguments of "+name)
			}
		}
	case isKarpenter(d):
		if !strings.Contains(all, "CapacityBuffer=true") {
			e.add(Problem, name+" runs without the feature gate CapacityBuffer",
				"set FEATURE_GATES=CapacityBuffer=true in the environment of "+name+" (settings.featureGates of its chart)")
		}
	}
}
