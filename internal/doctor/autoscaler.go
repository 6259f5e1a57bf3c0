package doctor

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	cliflag "k8s.io/component-base/cli/flag"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/format"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/slack"
)

// checkSlack reads the policies and checks their conditions.
func (e *examination) checkSlack(ctx context.Context) error {
	var list v1alpha1.ResourceSlackList
	if err := e.client.List(ctx, &list); err != nil && !resources.IsNotServed(err) {
		return err
	}
	e.policies = list.Items
	if len(e.policies) == 0 {
		e.absent("there are no slack policies")
		return nil
	}
	if len(e.components) > 0 && !slices.Contains(e.controllers(), "slack") {
		e.add(Problem, fmt.Sprintf("there are %d slack policies, but the slack controller is not installed", len(e.policies)),
			"helm upgrade plimsoll charts/plimsoll --set controller.enabled=true")
	}
	for i := range e.policies {
		policy := &e.policies[i]
		ready := meta.FindStatusCondition(policy.Status.Conditions, v1alpha1.ConditionReady)
		switch {
		case ready == nil:
			e.add(Problem, "policy "+policy.Name+" has no status: no controller has reconciled it",
				"check whether plimsoll-controller runs and is the leader")
		case ready.Status != metav1.ConditionTrue:
			level := Warning
			if ready.Reason != "PoolEmpty" && e.now.Sub(ready.LastTransitionTime.Time) > notReadyTimeout {
				level = Problem
			}
			e.add(level, fmt.Sprintf("policy %s is not ready: %s: %s", policy.Name, ready.Reason, ready.Message),
				"plimsoll slack status "+policy.Name)
		default:
			e.ok("policy %s is ready", policy.Name)
		}
	}
	return nil
}

const (
	// answerTimeout is the time after which an autoscaler must have reported on the buffers of a policy.
	answerTimeout = 2 * time.Minute
	// notReadyTimeout is the time after which a policy that is not ready is a problem: the default of --max-node-provision-time of
	// Cluster Autoscaler.
	notReadyTimeout = 15 * time.Minute
	// clusterAutoscalerFlags are the flags that enable buffers in Cluster Autoscaler.
	clusterAutoscalerFlags = "--capacity-buffer-controller-enabled --capacity-buffer-pod-injection-enabled"
	// defaultClientRate is the default of --kube-client-qps of Cluster Autoscaler, and maxUpdateTime the time in seconds
	// that it may take to update the status of all buffers, one after the other, in each of its loops.
	defaultClientRate, maxUpdateTime = 5.0, 4
)

// checkAutoscaler checks whether an autoscaler serves the buffers of the policies, by their conditions
// and by the flags and rights of autoscalers that run as Deployments.
func (e *examination) checkAutoscaler(ctx context.Context) error {
	if err := e.checkNamed(ctx); err != nil {
		return err
	}
	if !slices.ContainsFunc(e.policies, func(p v1alpha1.ResourceSlack) bool { return slack.BackendOf(&p).Virtual }) {
		e.absent("no policy uses the buffers of an autoscaler")
		return nil
	}
	var list unstructured.UnstructuredList
	list.SetGroupVersionKind(slack.CapacityBufferVersion.WithKind("CapacityBufferList"))
	if err := e.client.List(ctx, &list); err != nil {
		if resources.IsNotServed(err) {
			e.add(Problem, "policies use buffers, but the CRD "+buffersCRD+" is not installed",
				"install it with your autoscaler (docs/slack.md), or set backend: Deployment in the policies")
			return nil
		}
		return err
	}
	if err := e.checkAutoscalers(ctx, len(list.Items)); err != nil {
		return err
	}
	for i := range e.policies {
		e.checkAccepted(&e.policies[i])
	}
	return nil
}

// checkAutoscalers checks the flags and rights of autoscalers that run as Deployments, for a number of buffers.
func (e *examination) checkAutoscalers(ctx context.Context, buffers int) error {
	list, err := e.kube.AppsV1().Deployments(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range list.Items {
		d := &list.Items[i]
		isNamed := d.Namespace == e.Autoscaler.Namespace && d.Name == e.Autoscaler.Name
		if e.Autoscaler.Name != "" && !isNamed {
			continue
		}
		e.checkFlagsOf(d, buffers)
		if isNamed && !hasImage(d, karpenter) || hasImage(d, clusterAutoscaler) {
			if err := e.checkRightsOfClusterAutoscaler(ctx, d); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkNamed checks whether the Deployment that is named as the autoscaler exists.
func (e *examination) checkNamed(ctx context.Context) error {
	if e.Autoscaler.Name == "" {
		return nil
	}
	_, err := e.kube.AppsV1().Deployments(e.Autoscaler.Namespace).Get(ctx, e.Autoscaler.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		e.add(Problem, fmt.Sprintf("there is no Deployment %s", e.Autoscaler), "name the Deployment of the autoscaler with --autoscaler")
		return nil
	}
	return err
}

// Parts of the names of the images by which autoscalers are recognized.
const (
	clusterAutoscaler = "cluster-autoscaler"
	karpenter         = "karpenter"
)

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
	if flagsOf(d).dryRun {
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

// autoscalerFlags are flags of Cluster Autoscaler.
type autoscalerFlags struct {
	controller, injection, dryRun bool
	qps                           float64
}

// flagsOf returns the flags of a Deployment, parsed as Cluster Autoscaler parses them, with references to environment variables replaced.
func flagsOf(d *appsv1.Deployment) (f autoscalerFlags) {
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	set.ParseErrorsAllowlist.UnknownFlags = true
	set.SetNormalizeFunc(cliflag.WordSepNormalizeFunc)
	set.BoolVar(&f.controller, "capacity-buffer-controller-enabled", false, "")
	set.BoolVar(&f.injection, "capacity-buffer-pod-injection-enabled", false, "")
	set.BoolVar(&f.dryRun, "capacity-buffer-pod-dry-run-enabled", true, "")
	set.Float64Var(&f.qps, "kube-client-qps", defaultClientRate, "")
	var words []string
	for _, c := range d.Spec.Template.Spec.Containers {
		text := strings.Join(slices.Concat(c.Command, c.Args), " ")
		for _, variable := range c.Env {
			text = strings.ReplaceAll(text, "$("+variable.Name+")", variable.Value)
		}
		words = append(words, strings.Fields(text)...)
	}
	_ = set.Parse(words) // what cannot be parsed has its default
	return f
}

// checkFlagsOf checks the flags and environment variables of a Deployment if it is an autoscaler, for a number of
// buffers.
func (e *examination) checkFlagsOf(d *appsv1.Deployment, buffers int) {
	name := resources.Name(d)
	switch {
	case hasImage(d, clusterAutoscaler):
		flags := flagsOf(d)
		for i, flag := range strings.Fields(clusterAutoscalerFlags) {
			if enabled := []bool{flags.controller, flags.injection}[i]; !enabled {
				e.add(Problem, name+" runs without "+flag, "add it to the arguments of "+name)
			}
		}
		if time := float64(buffers) / flags.qps; flags.qps > 0 && time > maxUpdateTime {
			e.add(Warning, fmt.Sprintf("%s updates the status of %s in each loop, which takes up to %.0f s at --kube-client-qps=%g",
				name, format.Of(buffers, "buffer"), time, flags.qps),
				"add --kube-client-qps=50 --kube-client-burst=100 to the arguments of "+name)
		}
	case hasImage(d, karpenter):
		e.checkFeatureGate(d)
	}
}

// checkFeatureGate checks whether the feature gate of buffers is set in Karpenter, by a flag or an environment variable.
func (e *examination) checkFeatureGate(d *appsv1.Deployment) {
	name, text, isElsewhere := resources.Name(d), "", false
	for _, c := range d.Spec.Template.Spec.Containers {
		text += strings.Join(slices.Concat(c.Command, c.Args), " ")
		isElsewhere = isElsewhere || len(c.EnvFrom) > 0
		for _, variable := range c.Env {
			text += " " + variable.Value
			isElsewhere = isElsewhere || variable.Name == "FEATURE_GATES" && variable.ValueFrom != nil
		}
	}
	switch fix := "set FEATURE_GATES=CapacityBuffer=true in the environment of " + name + " (settings.featureGates of its chart)"; {
	case strings.Contains(text, "CapacityBuffer=true"):
	case isElsewhere && !strings.Contains(text, "CapacityBuffer="):
		e.add(Warning, name+" has environment variables from other objects: it is not known whether the feature gate CapacityBuffer is set",
			fix)
	default:
		e.add(Problem, name+" runs without the feature gate CapacityBuffer", fix)
	}
}

// checkAccepted checks what an autoscaler reports about the buffers of a policy, according to the condition Accepted.
func (e *examination) checkAccepted(policy *v1alpha1.ResourceSlack) {
	accepted := meta.FindStatusCondition(policy.Status.Conditions, v1alpha1.ConditionAccepted)
	switch {
	case accepted == nil: // a policy with another backend, or without a status
	case accepted.Status == metav1.ConditionTrue:
		e.ok("policy %s: %s", policy.Name, accepted.Message)
	case accepted.Status == metav1.ConditionFalse || e.now.Sub(accepted.LastTransitionTime.Time) > answerTimeout:
		e.add(Problem, "policy "+policy.Name+": "+accepted.Message, "plimsoll slack status "+policy.Name+" and docs/slack.md, Install; "+
			"without an answer, check whether the autoscaler runs, and enable buffers in it: "+clusterAutoscalerFlags+
			" of Cluster Autoscaler, FEATURE_GATES=CapacityBuffer=true of Karpenter")
	}
}
