package doctor

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	chart "github.com/plimsoll-k8s/plimsoll/charts/plimsoll"
	"github.com/plimsoll-k8s/plimsoll/internal/kube"
)

// schedulerRules are some of the permissions of the built-in role system:kube-scheduler. They show
// whether the role is bound to the service account.
var schedulerRules = []rbacv1.PolicyRule{
	{Verbs: []string{"list", "watch"}, APIGroups: []string{""}, Resources: []string{"nodes", "pods", "persistentvolumeclaims"}},
	{Verbs: []string{"create"}, APIGroups: []string{""}, Resources: []string{"pods/binding"}},
	{Verbs: []string{"patch"}, APIGroups: []string{""}, Resources: []string{"pods/status"}},
}

// checkRights checks with the API server whether the service account of each component has the
// permissions that its code requires.
func (e *examination) checkRights(ctx context.Context) error {
	for i := range e.components {
		d := &e.components[i]
		account := cmp.Or(d.Spec.Template.Spec.ServiceAccountName, "default")
		required, err := requiredRules(d)
		if err != nil {
			return err
		}
		var missing []string
		for _, namespace := range slices.Sorted(maps.Keys(required)) {
			denied, err := e.denied(ctx, d.Namespace, account, namespace, required[namespace])
			if err != nil {
				return err
			}
			missing = append(missing, denied...)
		}
		if len(missing) > 0 {
			e.add(Problem, fmt.Sprintf("service account %s/%s of %s may not %s", d.Namespace, account, d.Name, strings.Join(missing, "; ")),
				"bind the roles of the chart to it: helm upgrade, or see docs/install.md for the rules")
			continue
		}
		e.ok("service account %s/%s has the permissions that %s requires", d.Namespace, account, d.Name)
	}
	return nil
}

// requiredRules returns the permissions that a component requires by namespace. The empty namespace has the
// cluster-wide permissions.
func requiredRules(d *appsv1.Deployment) (map[string][]rbacv1.PolicyRule, error) {
	var parts []string
	switch d.Labels[componentLabel] {
	case "scheduler":
		return map[string][]rbacv1.PolicyRule{"": schedulerRules}, nil
	case "controller":
		parts = controllersOf(d)
		if _, set := flagOf(d, "extra-capacity-min-rate"); set {
			parts = append(parts, "default-policy")
		}
	case "agent":
		parts = []string{"agent"}
	case "load-watcher":
		parts = []string{"nodes"}
		if provider, set := flagOf(d, "provider"); !set || provider == "KubernetesMetricsServer" {
			parts = append(parts, "node-metrics")
		}
	}
	required := map[string][]rbacv1.PolicyRule{}
	for _, part := range parts {
		if err := addRules(required, d, part, d.Namespace); err != nil {
			return nil, err
		}
	}
	if namespace, _ := flagOf(d, "placeholder-namespace"); namespace != "" {
		if err := addRules(required, d, "placeholder-pods", namespace); err != nil {
			return nil, err
		}
	}
	return required, nil
}

// addRules adds the permissions of a part of a component in the cluster and in a namespace.
func addRules(required map[string][]rbacv1.PolicyRule, d *appsv1.Deployment, part, namespace string) error {
	manifest, err := chart.Rights.ReadFile("generated/rbac/" + part + ".yaml")
	if err != nil {
		return fmt.Errorf("%s: --controllers: invalid value %q: %w", d.Name, part, err)
	}
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifest), len(manifest))
	for {
		var role rbacv1.Role // a ClusterRole has the same fields
		if err := decoder.Decode(&role); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if role.Kind == "Role" {
			required[namespace] = append(required[namespace], role.Rules...)
		} else {
			required[""] = append(required[""], role.Rules...)
		}
	}
}

// flagOf returns the value of a flag in the arguments of a Deployment, and whether it is set.
func flagOf(d *appsv1.Deployment, flag string) (value string, set bool) {
	for _, container := range d.Spec.Template.Spec.Containers {
		for _, argument := range container.Args {
			if value, set = strings.CutPrefix(argument, "--"+flag+"="); set {
				return value, true
			}
		}
	}
	return "", false
}

// denied returns descriptions of the requests in the rules that the API server denies to a service
// account. The rules apply to a namespace, or to the cluster if it is empty.
func (e *examination) denied(
	ctx context.Context, accountNamespace, account, namespace string, rules []rbacv1.PolicyRule,
) ([]string, error) {
	groups := []string{"system:serviceaccounts", "system:serviceaccounts:" + accountNamespace, "system:authenticated"}
	var missing []string
	for _, rule := range rules {
		for _, attributes := range kube.RequestsOf(rule, namespace) {
			review, err := e.kube.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
				Spec: authorizationv1.SubjectAccessReviewSpec{
					User:               "system:serviceaccount:" + accountNamespace + ":" + account,
					Groups:             groups,
					ResourceAttributes: attributes,
				},
			}, metav1.CreateOptions{})
			if err != nil {
				return nil, err
			}
			if !review.Status.Allowed {
				missing = append(missing, describe(attributes))
			}
		}
	}
	return missing, nil
}

// describe returns a description of a request, such as "patch resourceslacks/status.plimsoll.dev".
func describe(a *authorizationv1.ResourceAttributes) string {
	resource := strings.TrimSuffix(a.Resource+"/"+a.Subresource, "/")
	text := a.Verb + " " + schema.GroupResource{Group: a.Group, Resource: resource}.String()
	if a.Namespace != "" {
		text += " in " + a.Namespace
	}
	return text
}
