// Package plane gives tests control planes, which the tests of a package use one after the other.
package plane

import (
	"context"
	"os"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	v1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/plimsoll-k8s/plimsoll/internal/kube"
	"github.com/plimsoll-k8s/plimsoll/test/support/eventually"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// ApplyRights creates the ServiceAccount and the RBAC objects in a file, waits until they apply to a user, and returns the rules of
// the ClusterRole.
func ApplyRights(t testing.TB, client kubernetes.Interface, file, user string, groups []string) (rules []rbacv1.PolicyRule) {
	t.Helper()
	raw, err := os.ReadFile(file)
	must.Succeed(t, err)
	for document := range strings.SplitSeq(string(raw), "\n---\n") {
		object, _, err := scheme.Codecs.UniversalDeserializer().Decode([]byte(document), nil, nil)
		must.Succeed(t, err)
		switch object := object.(type) {
		case *rbacv1.ClusterRole:
			rules = object.Rules
			_, err = client.RbacV1().ClusterRoles().Create(t.Context(), object, metav1.CreateOptions{})
		case *rbacv1.ClusterRoleBinding:
			_, err = client.RbacV1().ClusterRoleBindings().Create(t.Context(), object, metav1.CreateOptions{})
		case *v1.ServiceAccount:
			_, err = client.CoreV1().ServiceAccounts(object.Namespace).Create(t.Context(), object, metav1.CreateOptions{})
		}
		must.Succeed(t, err)
	}
	AwaitRights(t, client, user, groups, "", rules)
	return rules
}

// AwaitRights waits until the API server grants a user the rights of RBAC rules in a namespace, or in all namespaces if it is
// empty. A busy API server refuses requests for a while after a role and its binding were created.
func AwaitRights(t testing.TB, client kubernetes.Interface, user string, groups []string, namespace string, rules []rbacv1.PolicyRule) {
	t.Helper()
	for _, rule := range rules {
		for _, attributes := range kube.RequestsOf(rule, namespace) {
			review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
				User: user, Groups: groups, ResourceAttributes: attributes,
			}}
			eventually.True(t, user+" is not allowed to "+attributes.Verb+" "+attributes.Resource, nil,
				func(ctx context.Context) (bool, error) {
					answer, err := client.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
					return err == nil && answer.Status.Allowed, err
				})
		}
	}
}
