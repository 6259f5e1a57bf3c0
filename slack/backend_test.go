package slack

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// TestBackends checks that each backend of the API has an implementation and the other way round.
func TestBackends(t *testing.T) {
	var names []v1alpha1.Backend
	for _, backend := range Backends() {
		names = append(names, backend.Name)
		if got := BackendOf(newPolicy("10%", func(s *v1alpha1.ResourceSlackSpec) { s.Backend = backend.Name })); got != backend {
			t.Errorf("BackendOf(%s) = %s", backend.Name, got.Name)
		}
	}
	if diff := cmp.Diff(v1alpha1.Backends, names); diff != "" {
		t.Errorf("backends: -API +implemented:\n%s", diff)
	}
	if got := BackendOf(&v1alpha1.ResourceSlack{}).Name; got != v1alpha1.BackendCapacityBuffer {
		t.Errorf("backend of a policy without defaults: %s", got)
	}
}

// TestBackendObjects checks the objects of each backend: each template before its buffer, the
// PriorityClass before the Deployments, no status, and no nulls.
func TestBackendObjects(t *testing.T) {
	for name, tc := range map[string]struct {
		backend v1alpha1.Backend
		change  func(*v1alpha1.ResourceSlackSpec)
		want    []string
	}{
		"capacity buffers": {
			v1alpha1.BackendCapacityBuffer, func(*v1alpha1.ResourceSlackSpec) {},
			[]string{"PodTemplate slack/web-head", "CapacityBuffer slack/web-head", "PodTemplate slack/web", "CapacityBuffer slack/web"},
		},
		"deployments": {
			v1alpha1.BackendDeployment, func(*v1alpha1.ResourceSlackSpec) {},
			[]string{"PriorityClass /plimsoll-placeholder", "Deployment slack/web-head", "Deployment slack/web"},
		},
		"deployments with a priority class": {
			v1alpha1.BackendDeployment, func(s *v1alpha1.ResourceSlackSpec) { s.PriorityClassName = "low" },
			[]string{"Deployment slack/web-head", "Deployment slack/web"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			policy := newPolicy("10%", func(s *v1alpha1.ResourceSlackSpec) { s.Backend = tc.backend }, tc.change)
			objects, err := BackendOf(policy).Objects(policy, twoGroups(), "slack")
			must.Succeed(t, err)
			var got []string
			for _, object := range objects {
				got = append(got, object.GetKind()+" "+object.GetNamespace()+"/"+object.GetName())
				if _, ok := object.Object["status"]; ok {
					t.Errorf("%s has a status", object.GetName())
				}
				if path := nullIn(object.Object); path != "" {
					t.Errorf("%s: %s is null", object.GetName(), path)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// nullIn returns the path of a field that is null, empty if there is none.
func nullIn(object map[string]any) string {
	for name, value := range object {
		switch value := value.(type) {
		case nil:
			return name
		case map[string]any:
			if path := nullIn(value); path != "" {
				return name + "." + path
			}
		case []any:
			for _, item := range value {
				if object, ok := item.(map[string]any); ok && nullIn(object) != "" {
					return name + "[]." + nullIn(object)
				}
			}
		}
	}
	return ""
}

// TestHeldGroups checks that the groups of a plan are read back from its objects in any
// order, with each backend, and that a buffer without its template is skipped.
func TestHeldGroups(t *testing.T) {
	policy := newPolicy("10%")
	objects, err := BackendOf(policy).Objects(policy, twoGroups(), "slack")
	must.Succeed(t, err)
	var list []unstructured.Unstructured
	for _, object := range objects {
		list = append(list, *object)
	}
	slices.Reverse(list)
	groups, err := HeldGroups(list)
	must.Succeed(t, err)
	plan := twoGroups()
	slices.Reverse(plan.Groups) // by name
	if diff := cmp.Diff(groupsOf(plan), groupsOf(Plan{Groups: groups})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	// list[3] is the template of the head.
	if groups, err := HeldGroups(list[:3]); err != nil || len(groups) != 1 || groups[0].Name != "web" {
		t.Errorf("without the template of the head: %v, %v", groups, err)
	}
	// A tenant can change the template of a buffer. The first two objects are the buffer and the template of the group web.
	for i := range list[:3] {
		if template := list[i].DeepCopy(); template.GetKind() == "PodTemplate" {
			containers := template.Object["template"].(map[string]any)["spec"].(map[string]any)["containers"].([]any)
			containers[0].(map[string]any)["resources"] = map[string]any{"requests": map[string]any{"cpu": "1e2147483647"}}
			groups, err := HeldGroups([]unstructured.Unstructured{*template, list[0], list[2]})
			if err != nil || len(groups) != 0 {
				t.Errorf("a template with a quantity that cannot be added: %v, %v, want that its buffer is written again", groups, err)
			}
		}
	}
	policy.Spec.Backend = v1alpha1.BackendDeployment
	objects, err = BackendOf(policy).Objects(policy, twoGroups(), "slack")
	must.Succeed(t, err)
	groups, err = HeldGroups([]unstructured.Unstructured{*objects[2], *objects[1]})
	if diff := cmp.Diff(groupsOf(plan), groupsOf(Plan{Groups: groups})); diff != "" || err != nil {
		t.Errorf("Deployments: %v, -want +got:\n%s", err, diff)
	}
	broken := list[0].DeepCopy()
	broken.Object["spec"].(map[string]any)["replicas"] = "many"
	if _, err := HeldGroups([]unstructured.Unstructured{*broken, list[1]}); err == nil {
		t.Error("replicas that are not a number: no error")
	}
}
