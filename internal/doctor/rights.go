package doctor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	chart "github.com/plimsoll-k8s/plimsoll/charts/plimsoll"
)

// schedulerNeeds is a part of what a scheduler has to be allowed, by which it is
// seen whether the cluster's own role is bound to it.
var schedulerNeeds = []rbacv1.PolicyRule{
	{Verbs: []string{"list", "watch"}, APIGroups: []string{""}, Resources: []string{"nodes", "pods", "persistentvolumeclaims"}},
	{Verbs: []string{"create"}, APIGroups: []string{""}, Resources: []string{"pods/binding"}},
	{Verbs: []string{"patch"}, APIGroups: []string{""}, Resources: []string{"pods/status"}},
}

// rights asks the API server whether the service account of each component may do
// what its code needs.
func (x *examination) rights(ctx context.Context) error {
	for i := range x.components {
		d := &x.components[i]
		account := d.Spec.Template.Spec.ServiceAccountName
		if account == "" {
			account = "default"
		}
		everywhere, here, err := needs(d)
		if err != nil {
			return err
		}
		missing, err := x.refused(ctx, d.Namespace, account, "", everywhere)
		if err != nil {
			return err
		}
		more, err := x.refused(ctx, d.Namespace, account, d.Namespace, here)
		if err != nil {
			return err
		}
		if missing = append(missing, more...); len(missing) > 0 {
			x.add(Problem, fmt.Sprintf("service account %s/%s of %s may not %s", d.Namespace, account, d.Name, strings.Join(missing, "; ")),
				"bind the roles of the chart to it: helm upgrade, or docs/install.md for what they say")
			continue
		}
		x.ok("%s/%s may do what %s needs", d.Namespace, account, d.Name)
	}
	return nil
}

// needs returns what a component has to be allowed, in the whole cluster and in
// its namespace.
func needs(d *appsv1.Deployment) (everywhere, here []rbacv1.PolicyRule, err error) {
	arguments := argumentsOf(d)
	measures := !slices.ContainsFunc(arguments, func(a string) bool {
		return strings.HasPrefix(a, "--provider=") && a != "--provider=KubernetesMetricsServer"
	})
	var parts []string
	switch d.Labels[component] {
	case "scheduler":
		return schedulerNeeds, nil, nil
	case "controller":
		parts = controllersOf(d)
		if slices.ContainsFunc(arguments, func(a string) bool { return strings.HasPrefix(a, "--extra-capacity-min-rate=") }) {
			parts = append(parts, "default-policy")
		}
	case "agent":
		parts = []string{"agent"}
	case "load-watcher":
		parts = []string{"nodes"}
		if measures {
			parts = append(parts, "node-metrics")
		}
	}
	for _, part := range parts {
		manifest, err := chart.Rights.ReadFile("generated/rbac/" + part + ".yaml")
		if err != nil {
			return nil, nil, fmt.Errorf("%s: --controllers=%s is not known: %w", d.Name, part, err)
		}
		decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifest), len(manifest))
		for {
			var role rbacv1.Role // a ClusterRole has the same fields
			if err := decoder.Decode(&role); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return nil, nil, err
			}
			if role.Kind == "Role" {
				here = append(here, role.Rules...)
			} else {
				everywhere = append(everywhere, role.Rules...)
			}
		}
	}
	return everywhere, here, nil
}

// argumentsOf returns the arguments of all containers of a Deployment.
func argumentsOf(d *appsv1.Deployment) []string {
	var all []string
	for _, container := range d.Spec.Template.Spec.Containers {
		all = append(all, container.Args...)
	}
	return all
}

// refused returns what of the rules an account is not allowed, in words.
func (x *examination) refused(ctx context.Context, of, account, namespace string, rules []rbacv1.PolicyRule) ([]string, error) {
	var missing []string
	for _, rule := range rules {
		for _, asked := range attributes(rule, namespace) {
			answer, err := x.kube.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
				Spec: authorizationv1.SubjectAccessReviewSpec{
					User:               "system:serviceaccount:" + of + ":" + account,
					Groups:             []string{"system:serviceaccounts", "system:serviceaccounts:" + of, "system:authenticated"},
					ResourceAttributes: asked,
				},
			}, metav1.CreateOptions{})
			if err != nil {
				return nil, err
			}
			if !answer.Status.Allowed {
				missing = append(missing, describe(asked))
			}
		}
	}
	return missing, nil
}

// attributes returns every single thing that a rule allows.
func attributes(rule rbacv1.PolicyRule, namespace string) []*authorizationv1.ResourceAttributes {
	names := rule.ResourceNames
	if len(names) == 0 {
		names = []string{""}
	}
	var all []*authorizationv1.ResourceAttributes
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			resource, part, _ := strings.Cut(resource, "/")
			for _, verb := range rule.Verbs {
				for _, name := range names {
					all = append(all, &authorizationv1.ResourceAttributes{Namespace: namespace, Verb: verb, Group: group, Resource: resource, Subresource: part, Name: name})
				}
			}
		}
	}
	return all
}

// describe says what was asked for: patch resourceslacks/status.plimsoll.dev.
func describe(a *authorizationv1.ResourceAttributes) string {
	text := a.Verb + " " + a.Resource
	if a.Subresource != "" {
		text += "/" + a.Subresource
	}
	if a.Group != "" {
		text += "." + a.Group
	}
	if a.Namespace != "" {
		text += " in " + a.Namespace
	}
	return text
}
