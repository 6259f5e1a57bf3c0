package slack

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// drawPolicy returns a policy of the pool web with random optional fields, and the affinity of the workload that it mirrors.
func drawPolicy(rt *rapid.T, backend v1alpha1.Backend) (*v1alpha1.ResourceSlack, *v1.Affinity) {
	has := func(name string) bool { return rapid.Bool().Draw(rt, name) }
	policy := newPolicy("web", "web", func(s *v1alpha1.ResourceSlackSpec) {
		s.Backend, s.MinRate = backend, "100%" // the head and one placeholder, with and without a spread
		if has("priority class") {
			s.PriorityClassName = "low"
		}
		if has("strategy") {
			s.ProvisioningStrategy = "active"
		}
		if has("spread") {
			s.Spread = &v1alpha1.Spread{TopologyKey: v1.LabelHostname}
		}
		if has("toleration") {
			s.Pool.Tolerations = []v1.Toleration{{Key: "dedicated", Operator: v1.TolerationOpExists}}
		}
		if has("selector") {
			s.Pool.NodeSelector[v1.LabelHostname] = "a"
		}
		s.Default()
	})
	if !has("affinity") {
		return policy, nil
	}
	return policy, &v1.Affinity{NodeAffinity: &v1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{
		NodeSelectorTerms: []v1.NodeSelectorTerm{{MatchExpressions: []v1.NodeSelectorRequirement{
			{Key: "disk", Operator: v1.NodeSelectorOpIn, Values: []string{"ssd"}},
		}}},
	}}}
}

// contents returns the specs and templates of all objects of policies, by kind and name.
func contents(t *testing.T, c *Controller) map[string]any {
	t.Helper()
	objects, err := c.existing(t.Context(), "web")
	must.Succeed(t, err)
	all := map[string]any{}
	for _, o := range objects {
		unstructured.RemoveNestedField(o.Object, "status")
		all[fmt.Sprint(o.GetKind(), " ", o.GetNamespace(), "/", o.GetName())] = []any{o.Object["spec"], o.Object["template"]}
	}
	return all
}

// TestRemovedFields checks for any two policies and workloads that applying the second leaves exactly its own objects, whatever the
// first was.
func TestRemovedFields(t *testing.T) {
	node := newNode("a", "web")
	node.Labels[v1.LabelHostname] = "a"
	rapid.Check(t, func(rt *rapid.T) {
		backend := rapid.SampledFrom(v1alpha1.Backends).Draw(rt, "backend")
		first, before := drawPolicy(rt, backend)
		second, after := drawPolicy(rt, backend)
		run := func(steps ...*v1alpha1.ResourceSlack) map[string]any {
			c := controllerOf(t, interceptor.Funcs{}, node.DeepCopy(), newPod("x", "a"), newPod("y", "a"))
			for i, policy := range steps {
				workload := newMirrored("shop", "1")
				if workload.Spec.Template.Spec.Affinity = after; policy == first {
					workload.Spec.Template.Spec.Affinity = before
				}
				policy = policy.DeepCopy()
				if i == 0 {
					must.Succeed(rt, c.client.Create(t.Context(), workload))
					must.Succeed(rt, c.client.Create(t.Context(), policy))
				} else {
					for _, object := range []client.Object{policy, workload} {
						existing := object.DeepCopyObject().(client.Object)
						must.Succeed(rt, c.client.Get(t.Context(), client.ObjectKeyFromObject(object), existing))
						object.SetResourceVersion(existing.GetResourceVersion())
						object.SetGeneration(existing.GetGeneration() + 1)
						must.Succeed(rt, c.client.Update(t.Context(), object))
					}
				}
				reconcileOnce(t, c, "web")
			}
			return contents(t, c)
		}
		want := run(second)
		if diff := cmp.Diff(want, run(first, second)); diff != "" || len(want) == 0 {
			rt.Fatalf("objects of the second policy: -alone +after the first:\n%s", diff)
		}
	})
}
