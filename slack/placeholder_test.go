package slack

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// twoGroups returns a plan with a head and a group of the rate.
func twoGroups() Plan {
	return Plan{Policy: "web", Feasible: true, Groups: []Group{
		{Name: "web-head", Head: true, Requests: list("2", "8Gi"), Count: 1},
		{Name: "web", Requests: list("500m", "1536Mi"), Count: 12},
	}}
}

// dedicatedPolicy returns a policy with all fields that placeholders have.
func dedicatedPolicy() *v1alpha1.ResourceSlack {
	return newPolicy("10%", func(s *v1alpha1.ResourceSlackSpec) {
		s.Pool.Tolerations = []v1.Toleration{
			{Key: "dedicated", Operator: v1.TolerationOpEqual, Value: "web", Effect: v1.TaintEffectNoSchedule},
		}
		s.PriorityClassName = "plimsoll-placeholder"
	})
}

// The objects of the group web of twoGroups.
const (
	wantTemplate = `apiVersion: v1
kind: PodTemplate
metadata:
  labels:
    plimsoll.dev/placeholder: web
  name: web
  namespace: slack
  ownerReferences:
  - apiVersion: plimsoll.dev/v1alpha1
    controller: true
    kind: ResourceSlack
    name: web
    uid: "1234"
template:
  metadata:
    labels:
      plimsoll.dev/placeholder: web
  spec:
    automountServiceAccountToken: false
    containers:
    - image: registry.k8s.io/pause:3.10
      name: placeholder
      resources:
        requests:
          cpu: 500m
          memory: 1536Mi
      securityContext:
        allowPrivilegeEscalation: false
        capabilities:
          drop:
          - ALL
        readOnlyRootFilesystem: true
    nodeSelector:
      pool: web
    priorityClassName: plimsoll-placeholder
    securityContext:
      runAsNonRoot: true
      seccompProfile:
        type: RuntimeDefault
    terminationGracePeriodSeconds: 0
    tolerations:
    - effect: NoSchedule
      key: dedicated
      operator: Equal
      value: web
`
	wantBuffer = `apiVersion: autoscaling.x-k8s.io/v1beta1
kind: CapacityBuffer
metadata:
  labels:
    plimsoll.dev/placeholder: web
  name: web
  namespace: slack
  ownerReferences:
  - apiVersion: plimsoll.dev/v1alpha1
    controller: true
    kind: ResourceSlack
    name: web
    uid: "1234"
spec:
  podTemplateRef:
    name: web
  replicas: 12
`
)

// capacityBuffers returns the templates and the buffers of a plan.
func capacityBuffers(
	policy *v1alpha1.ResourceSlack, plan Plan, namespace string,
) (templates []*v1.PodTemplate, buffers []*unstructured.Unstructured) {
	written, err := capacityBufferBackend.Objects(policy, plan, namespace)
	if err != nil {
		panic(err)
	}
	for i, object := range capacityBufferBackend.objects(policy, plan, namespace) {
		if template, ok := object.(*v1.PodTemplate); ok {
			templates = append(templates, template)
		} else {
			buffers = append(buffers, written[i])
		}
	}
	return templates, buffers
}

func TestObjects(t *testing.T) {
	templates, buffers := capacityBuffers(dedicatedPolicy(), twoGroups(), "slack")
	if len(templates) != 2 || len(buffers) != 2 {
		t.Fatalf("%d templates and %d buffers, want 2 and 2", len(templates), len(buffers))
	}
	for want, object := range map[string]any{wantTemplate: templates[1], wantBuffer: buffers[1]} {
		got, err := yaml.Marshal(object)
		must.Succeed(t, err)
		if diff := cmp.Diff(want, string(got)); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
	// Templates and buffers are in the order of the groups.
	for i, group := range twoGroups().Groups {
		spec := buffers[i].Object["spec"].(map[string]any)
		want := map[string]any{"podTemplateRef": map[string]any{"name": group.Name}, "replicas": group.Count}
		if diff := cmp.Diff(want, spec); diff != "" {
			t.Errorf("buffer %d: -want +got:\n%s", i, diff)
		}
		if templates[i].Name != group.Name || buffers[i].GetName() != group.Name {
			t.Errorf("template %q and buffer %q, want %q", templates[i].Name, buffers[i].GetName(), group.Name)
		}
		if diff := cmp.Diff(group.Requests, templates[i].Template.Spec.Containers[0].Resources.Requests); diff != "" {
			t.Errorf("template %d: requests -want +got:\n%s", i, diff)
		}
	}
}

// TestObjectsOfAMinimalPolicy checks that unset fields of the policy are not set in the template. Policies from files have no UID, and the
// API server rejects owner references without one.
func TestObjectsOfAMinimalPolicy(t *testing.T) {
	policy := newPolicy("10%", func(s *v1alpha1.ResourceSlackSpec) { s.Pool = v1alpha1.Pool{} })
	policy.UID = ""
	templates, buffers := capacityBuffers(policy, twoGroups(), "slack")
	spec := templates[0].Template.Spec
	if spec.NodeSelector != nil || spec.Tolerations != nil || spec.PriorityClassName != "" {
		t.Errorf("selector %v, tolerations %v, priority class %q, want none", spec.NodeSelector, spec.Tolerations, spec.PriorityClassName)
	}
	if _, has := buffers[0].Object["metadata"].(map[string]any)["ownerReferences"]; has || templates[0].OwnerReferences != nil {
		t.Errorf("owners %v and %v without a UID", templates[0].OwnerReferences, buffers[0].GetOwnerReferences())
	}
	if templates, buffers := capacityBuffers(policy, Plan{Policy: "web"}, "slack"); len(templates)+len(buffers) > 0 {
		t.Errorf("plan without groups: %d templates, %d buffers", len(templates), len(buffers))
	}
}

// TestObjectsShareNoMemory checks that objects can be changed without changing the policy, the plan or
// each other.
func TestObjectsShareNoMemory(t *testing.T) {
	policy := newPolicy("10%")
	before := policy.DeepCopy()
	plan := Plan{Policy: "web", Groups: []Group{
		{Name: "web-head", Requests: list("1", "1Gi"), Count: 1},
		{Name: "web-rate", Requests: list("1", "1Gi"), Count: 2},
	}}
	templates, _ := capacityBuffers(policy, plan, "slack")
	templates[0].Template.Spec.NodeSelector["zone"] = "a"
	templates[0].Template.Spec.Containers[0].Resources.Requests["cpu"] = list("7", "1Gi")["cpu"]
	if diff := cmp.Diff(before, policy); diff != "" {
		t.Error(diff)
	}
	if _, zone := templates[1].Template.Spec.NodeSelector["zone"]; zone || plan.Groups[0].Requests.Cpu().String() != "1" {
		t.Error("changing a template changed another one, or the plan")
	}
}

// TestGroupNamesAreUnique checks that no two policies have groups of the same name.
func TestGroupNamesAreUnique(t *testing.T) {
	seen := map[string]string{}
	for _, policy := range []string{"web", "web-head", "web-rate", "web-head2", "web-head-rate"} {
		placeholders := ratePlaceholders{Head: []resources.Amounts{{}, {}}, Rest: Placeholders{Count: 1}}
		for _, group := range planOf(policy, ratePlan{ratePlaceholders: placeholders}).Groups {
			if other, exists := seen[group.Name]; exists {
				t.Errorf("%s is a group of both %s and %s", group.Name, other, policy)
			}
			seen[group.Name] = policy
		}
	}
}
