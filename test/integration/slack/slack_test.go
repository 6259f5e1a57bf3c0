package slack

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	capacityv1alpha1 "github.com/plimsoll-k8s/plimsoll/api/capacity/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/slack"
	"github.com/plimsoll-k8s/plimsoll/test/support/eventually"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
	"github.com/plimsoll-k8s/plimsoll/test/support/program"
	"github.com/plimsoll-k8s/plimsoll/test/support/testcluster"
)

// TestResourceSlackValidation checks that the API server rejects invalid policies with a message that names
// the field, and sets defaults: one policy for each kind of rule. TestBadPolicies of package slack has all rules of the CRD.
func TestResourceSlackValidation(t *testing.T) {
	c := testcluster.Start(t)
	schedule := v1alpha1.Schedule{From: "07:00", To: "07:00", MinRate: "1%"}
	for want, policy := range map[string]*v1alpha1.ResourceSlack{
		`spec.minRate: Invalid value: must be a percentage such as 10%, or a fraction of at most 1`: testcluster.PolicyOf("a", "10", nil),
		"minRate must be less than 100% if base is Allocatable": testcluster.PolicyOf("a", "1.0", func(s *v1alpha1.ResourceSlackSpec) {
			s.Base = v1alpha1.BaseAllocatable
		}),
		`supported values: "Requested", "Allocatable"`: testcluster.PolicyOf("a", "10%", func(s *v1alpha1.ResourceSlackSpec) {
			s.Base = "Used"
		}),
		"spec.minimum.cpu: Invalid value: minimum.cpu must be at most maximum.cpu": testcluster.PolicyOf("a", "10%",
			func(s *v1alpha1.ResourceSlackSpec) {
				s.Minimum, s.Maximum = testcluster.AmountOf("10", "1025Mi", 3), testcluster.AmountOf("9500m", "1Gi", 2)
			}),
		"spec.schedules: Invalid value: minimum.placeholders must be at most maximum.placeholders": testcluster.PolicyOf("a", "10%",
			func(s *v1alpha1.ResourceSlackSpec) {
				s.Schedules = []v1alpha1.Schedule{{From: "07:00", To: "19:00", Minimum: testcluster.AmountOf("", "", 3)}}
				s.Maximum = testcluster.AmountOf("", "", 2)
			}),
		"spec.schedules[0].to: Invalid value: must differ from from: the schedule never applies": testcluster.PolicyOf("a", "10%",
			func(s *v1alpha1.ResourceSlackSpec) { s.Schedules = []v1alpha1.Schedule{schedule} }),
		`spec.pool.devices[1]: Duplicate value: "a.com/b"`: testcluster.PolicyOf("a", "10%",
			func(s *v1alpha1.ResourceSlackSpec) { s.Pool.Devices = []string{"a.com/b", "a.com/b"} }),
		"metadata.name must have at most 50 characters": testcluster.PolicyOf(strings.Repeat("a", 51), "10%", nil),
	} {
		if err := c.Client.Create(t.Context(), policy); !apierrors.IsInvalid(err) ||
			!strings.Contains(testcluster.WithoutValue(err.Error()), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	// The API server computes with all digits of a quantity, which does not end with this exponent.
	for _, part := range []string{"minimum", "maximum"} {
		large := map[string]any{"cpu": "1e2147483647", "memory": "1Gi"}
		spec := map[string]any{"minRate": "10%", "minimum": large, "maximum": map[string]any{"cpu": "1", "memory": "2Gi"}}
		spec[part] = large
		policy := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
		policy.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.Kind))
		policy.SetName("large")
		if err := c.Client.Create(t.Context(), policy); !apierrors.IsInvalid(err) ||
			!strings.Contains(err.Error(), "with at most 15 digits") {
			t.Errorf("%s: %v, want an invalid quantity", part, err)
		}
	}
	for _, rate := range []any{int64(10), int64(0), 0.1} {
		number := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"minRate": rate}}}
		number.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.Kind))
		number.SetName("number")
		want := "spec.minRate: Invalid value: "
		if rate != 0.1 { // the API server refuses a number with decimals before it evaluates rules
			want += `must be a percentage such as 10%, or a fraction of at most 1 in quotes such as "0.1"`
		}
		if err := c.Client.Create(t.Context(), number); !apierrors.IsInvalid(err) ||
			!strings.Contains(testcluster.WithoutValue(err.Error()), want) {
			t.Errorf("%v: %v, want %s", rate, err, want)
		}
	}
	c.Create(t, testcluster.PolicyOf("schedules", "10%", func(s *v1alpha1.ResourceSlackSpec) {
		s.Minimum, s.Maximum = testcluster.AmountOf("2", "1Gi", 1), testcluster.AmountOf("8", "64Gi", 10)
		for range 16 {
			s.Schedules = append(s.Schedules, v1alpha1.Schedule{
				Days:        "Mon-Wed,Sat",
				From:        "22:00",
				To:          "24:00",
				TimeZone:    "America/New_York",
				MinRate:     "0.5",
				Minimum:     testcluster.AmountOf("8", "64Gi", 10),
				LeadSeconds: new(int32(3600)),
			})
		}
		s.Pool.NodeShape, s.Pool.Devices = testcluster.AmountOf("16", "64Gi", 0), []string{"nvidia.com/gpu", "example.com/nic"}
	}))
	policy := testcluster.PolicyOf("valid", "200%", nil)
	c.Create(t, policy)
	if s := policy.Spec; s.Base != v1alpha1.BaseRequested || *s.Granularity != 5 || !*s.CoverBiggestPod ||
		s.Backend != v1alpha1.BackendCapacityBuffer {
		t.Errorf("defaults: %+v", s)
	}
}

// TestSlackController runs the controller with an API server and the CRD CapacityBuffer. It checks that
// placeholders follow the pool, that a restart writes nothing, and that the objects of a deleted policy
// are deleted.
func TestSlackController(t *testing.T) {
	c := testcluster.Start(t, testcluster.BuffersCRD(t))
	for i := range 4 {
		node := testcluster.ReadyNode(fmt.Sprint("node-", i), "16", "64Gi", map[string]string{"pool": "general"})
		node.Annotations = map[string]string{capacityv1alpha1.AnnotationPrice: "0.80"}
		c.Create(t, node)
	}
	c.Create(t, testcluster.ReadyNode("other", "64", "256Gi", nil))
	// 40 pods of (1, 2Gi) in the pool, and one of (30, 100Gi) outside.
	for i := range 40 {
		c.Create(t, testcluster.RunningPod(fmt.Sprint("pod-", i), fmt.Sprint("node-", i%4), "1", "2Gi"))
	}
	c.Create(t, testcluster.RunningPod("outside", "other", "30", "100Gi"))
	suite := t // for programs that a subtest starts for later subtests
	metrics := fmt.Sprintf("127.0.0.1:%d", program.FreePort(t))
	controller := c.StartController(suite, "--controllers=slack", "--metrics-bind-address="+metrics)
	general := func(s *v1alpha1.ResourceSlackSpec) { s.Pool.NodeSelector = map[string]string{"pool": "general"} }
	c.Create(t, testcluster.PolicyOf("general", "10%", general))
	// 10% of (40, 80Gi) is (4, 8Gi): four placeholders of (1, 2Gi), one of them for the biggest pod.
	want := map[string]string{"general-head": "1 x 1 2Gi", "general-rate": "3 x 1 2Gi"}
	c.AwaitBuffers(t, controller, want)
	policy := c.AwaitCondition(t, controller, "general", v1alpha1.ConditionReady, "Held")
	if s := policy.Status; s.Placeholders != 4 || s.Target.Cpu().String() != "4" || s.Available.Cpu().String() != "24" ||
		s.Base.Memory().String() != "80Gi" {
		t.Errorf("status %+v", s)
	}
	t.Run("metrics", func(t *testing.T) {
		testcluster.ExpectMetrics(t, testcluster.Scrape(t, metrics, "plimsoll_", "# "), "slack")
		amounts := testcluster.Scrape(t, metrics, `plimsoll_slack_resource{amount="target",policy="general"`,
			`plimsoll_slack_resource{amount="available",policy="general",resource="cpu"`)
		const want = `plimsoll_slack_resource{amount="available",policy="general",resource="cpu"} 24
plimsoll_slack_resource{amount="target",policy="general",resource="cpu"} 4
plimsoll_slack_resource{amount="target",policy="general",resource="memory"} 8.589934592e+09
`
		if amounts != want {
			t.Errorf("found\n%s\nwant\n%s", amounts, want)
		}
	})

	t.Run("more pods, more placeholders", func(t *testing.T) {
		for i := range 20 {
			c.Create(t, testcluster.RunningPod(fmt.Sprint("more-", i), fmt.Sprint("node-", i%4), "1", "2Gi"))
		}
		c.AwaitBuffers(t, controller, map[string]string{"general-head": "1 x 1 2Gi", "general-rate": "5 x 1 2Gi"})
		// 60 of 64 cores are requested: 4 are free, the target is 6.
		c.AwaitCondition(t, controller, "general", v1alpha1.ConditionReady, "Provisioning")
	})
	t.Run("a restart writes nothing", func(t *testing.T) {
		versions := func() (out string) {
			for _, name := range []string{"general-rate", "general-head"} {
				buffer := &unstructured.Unstructured{}
				buffer.SetGroupVersionKind(slack.CapacityBufferVersion.WithKind("CapacityBuffer"))
				var template v1.PodTemplate
				key := client.ObjectKey{Namespace: testcluster.SystemNamespace, Name: name}
				must.Succeed(t, c.Client.Get(t.Context(), key, buffer))
				must.Succeed(t, c.Client.Get(t.Context(), key, &template))
				out += buffer.GetResourceVersion() + " " + template.ResourceVersion + " "
			}
			return out
		}
		before := versions()
		controller.Stop(t)
		// Pods are deleted while no controller runs: the cool-down starts.
		for i := range 20 {
			must.Succeed(t, c.Client.Delete(t.Context(), testcluster.RunningPod(fmt.Sprint("more-", i), "", "1", "1"),
				client.GracePeriodSeconds(0)))
		}
		controller = c.StartController(suite)
		c.AwaitCondition(t, controller, "general", v1alpha1.ConditionReady, "Held")
		if after := versions(); after != before {
			t.Errorf("versions after the restart %s, before %s", after, before)
		}
	})
	t.Run("the definition of buffers is deleted for a while", func(t *testing.T) {
		definition := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "capacitybuffers.autoscaling.x-k8s.io"}}
		must.Succeed(t, c.Client.Delete(t.Context(), definition))
		c.AwaitCondition(t, controller, "general", v1alpha1.ConditionReady, "CapacityBufferMissing")
		config, err := c.Config("system:admin", "system:masters")
		must.Succeed(t, err)
		testcluster.InstallCRDs(t, config, testcluster.BuffersCRD(t))
		c.AwaitBuffers(t, controller, map[string]string{"general-head": "1 x 1 2Gi", "general-rate": "5 x 1 2Gi"})
	})
	t.Run("a deleted policy", func(t *testing.T) {
		must.Succeed(t, c.Client.Delete(t.Context(), testcluster.PolicyOf("general", "", nil)))
		c.AwaitBuffers(t, controller, map[string]string{})
		eventually.True(t, "templates remain", controller, func(ctx context.Context) (bool, error) {
			var templates v1.PodTemplateList
			err := c.Client.List(ctx, &templates, client.InNamespace(testcluster.SystemNamespace))
			return len(templates.Items) == 0, err
		})
	})
	controller.Stop(t)
}

// TestSlackWithoutBuffers checks that the controller reports a missing CRD CapacityBuffer, that backend
// Deployment does not need it, and that the flag creates the default policy.
func TestSlackWithoutBuffers(t *testing.T) {
	c := testcluster.Start(t)
	c.Create(t, testcluster.ReadyNode("node", "16", "64Gi", nil))
	c.Create(t, testcluster.RunningPod("pod", "node", "2", "4Gi"))
	controller := c.StartController(t, "--extra-capacity-min-rate=20%")
	policy := c.AwaitCondition(t, controller, "default", v1alpha1.ConditionReady, "CapacityBufferMissing")
	if policy.Spec.MinRate != "20%" {
		t.Errorf("policy %+v", policy.Spec)
	}
	// Deployments need no CRD.
	policy.Spec.Backend = v1alpha1.BackendDeployment
	must.Succeed(t, c.Client.Update(t.Context(), policy))
	c.AwaitCondition(t, controller, "default", v1alpha1.ConditionReady, "Held")
	// The controllers of the control plane create the pods of the Deployment.
	eventually.True(t, "no placeholder pod has priority -10", controller, func(ctx context.Context) (bool, error) {
		var pods v1.PodList
		err := c.Client.List(
			ctx, &pods, client.InNamespace(testcluster.PodNamespace), client.MatchingLabels{slack.PlaceholderLabel: "default"},
		)
		return len(pods.Items) == 1 && *pods.Items[0].Spec.Priority == -10, err
	})
	controller.Stop(t)
}

// TestSlackFieldsOfOthers checks that fields that another client adds to placeholders, which autoscalers honor, are removed, and that the
// controller then leaves the objects as they are.
func TestSlackFieldsOfOthers(t *testing.T) {
	c := testcluster.Start(t, testcluster.BuffersCRD(t))
	for _, name := range []string{"general", "pods"} {
		c.Create(t, testcluster.ReadyNode(name, "16", "64Gi", map[string]string{"pool": name}))
		c.Create(t, testcluster.RunningPod("pod-of-"+name, name, "2", "4Gi"))
		c.Create(t, testcluster.PolicyOf(name, "10%", func(s *v1alpha1.ResourceSlackSpec) {
			testcluster.InPool(name)(s)
			if name == "pods" {
				s.Backend = v1alpha1.BackendDeployment
			}
		}))
	}
	controller := c.StartController(t)
	selects := map[string]any{"spec": map[string]any{"nodeSelector": map[string]any{"disk": "ssd"}}}
	for _, tc := range []struct {
		kind            schema.GroupVersionKind
		namespace, name string
		change          map[string]any
		field           []string
	}{
		{
			v1.SchemeGroupVersion.WithKind("PodTemplate"), testcluster.SystemNamespace, "general-head",
			map[string]any{"template": selects},
			[]string{"template", "spec", "nodeSelector"},
		},
		{
			slack.CapacityBufferKind, testcluster.SystemNamespace, "general-head",
			map[string]any{"spec": map[string]any{"provisioningStrategy": "foo"}},
			[]string{"spec", "provisioningStrategy"},
		},
		{
			appsv1.SchemeGroupVersion.WithKind("Deployment"), testcluster.PodNamespace, "pods-head",
			map[string]any{"spec": map[string]any{"template": selects}},
			[]string{"spec", "template", "spec", "nodeSelector"},
		},
	} {
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(tc.kind)
		key := client.ObjectKey{Namespace: tc.namespace, Name: tc.name}
		eventually.True(t, tc.kind.Kind+" does not exist", controller, func(ctx context.Context) (bool, error) {
			return c.Client.Get(ctx, key, object) == nil, nil
		})
		before, _, _ := unstructured.NestedFieldNoCopy(object.Object, tc.field...)
		c.Patch(t, object, tc.change)
		eventually.True(t, fmt.Sprint(tc.kind.Kind, " has the field"), controller, func(ctx context.Context) (bool, error) {
			err := c.Client.Get(ctx, key, object)
			after, _, _ := unstructured.NestedFieldNoCopy(object.Object, tc.field...)
			return err == nil && reflect.DeepEqual(before, after), err
		})
		for _, entry := range object.GetManagedFields() {
			if entry.Subresource == "" && entry.Manager != "plimsoll-slack" && !strings.Contains(entry.Manager, "controller-manager") {
				t.Errorf("%s: fields of %s remain: %s", tc.kind.Kind, entry.Manager, entry.FieldsV1)
			}
		}
	}
	recorder := c.RecordChanges(t, v1.SchemeGroupVersion.WithKind("PodTemplate"))
	c.Patch(t, testcluster.PolicyOf("general", "10%", nil), map[string]any{"spec": map[string]any{"granularity": 6}})
	c.AwaitCondition(t, controller, "general", v1alpha1.ConditionReady, "Held")
	if changes := recorder.Changes(); len(changes) > 0 {
		t.Errorf("written again: %v", changes)
	}
	controller.Stop(t)
}
