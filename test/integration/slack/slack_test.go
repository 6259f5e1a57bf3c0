package slack

import (
	"context"
	"fmt"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	capacityv1alpha1 "github.com/plimsoll-k8s/plimsoll/api/capacity/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/slack"
	"github.com/plimsoll-k8s/plimsoll/test/support/eventually"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
	"github.com/plimsoll-k8s/plimsoll/test/support/program"
	"github.com/plimsoll-k8s/plimsoll/test/support/testcluster"
)

// scheduled returns a policy with a schedule.
func scheduled(s v1alpha1.Schedule) *v1alpha1.ResourceSlack {
	return testcluster.PolicyOf("a", "10%", func(spec *v1alpha1.ResourceSlackSpec) { spec.Schedules = []v1alpha1.Schedule{s} })
}

// withDevices returns a policy of a pool with devices.
func withDevices(devices ...string) *v1alpha1.ResourceSlack {
	return testcluster.PolicyOf("a", "10%", func(spec *v1alpha1.ResourceSlackSpec) { spec.Pool.Devices = devices })
}

// TestResourceSlackValidation checks that the API server rejects invalid policies with a message that names
// the field, and sets defaults.
func TestResourceSlackValidation(t *testing.T) {
	c := testcluster.Start(t)
	for name, tc := range map[string]struct {
		policy *v1alpha1.ResourceSlack
		want   string
	}{
		"negative":     {testcluster.PolicyOf("a", "-5%", nil), "spec.minRate"},
		"not a number": {testcluster.PolicyOf("a", "NaN", nil), "spec.minRate"},
		"percentage without %": {
			testcluster.PolicyOf("a", "10", nil), `spec.minRate: Invalid value: must be a percentage such as 10%, or a fraction of at most 1`,
		},
		"fraction above 1":   {testcluster.PolicyOf("a", "1.5", nil), "spec.minRate: Invalid value"},
		"a millionth of 1 %": {testcluster.PolicyOf("a", "0.000001%", nil), "spec.minRate: Invalid value"},
		"high rate":          {testcluster.PolicyOf("a", "200.1%", nil), "minRate must be at most 200%: set a minimum for more"},
		"100% of allocatable": {
			testcluster.PolicyOf("a", "100%", func(s *v1alpha1.ResourceSlackSpec) { s.Base = v1alpha1.BaseAllocatable }),
			"minRate must be less than 100% if base is Allocatable",
		},
		"1.0 of allocatable": {
			testcluster.PolicyOf("a", "1.0", func(s *v1alpha1.ResourceSlackSpec) { s.Base = v1alpha1.BaseAllocatable }),
			"minRate must be less than 100% if base is Allocatable",
		},
		"granularity": {testcluster.PolicyOf("a", "10%", func(s *v1alpha1.ResourceSlackSpec) { s.Granularity = new(int32(0)) }), "spec.granularity"},
		"maximum": {
			testcluster.PolicyOf("a", "10%", func(s *v1alpha1.ResourceSlackSpec) { s.MaxPlaceholders = new(int32(0)) }),
			"spec.maxPlaceholders",
		},
		"base": {
			testcluster.PolicyOf("a", "10%", func(s *v1alpha1.ResourceSlackSpec) { s.Base = "Used" }),
			`supported values: "Requested", "Allocatable"`,
		},
		"floor of 0": {
			testcluster.PolicyOf("a", "10%", func(s *v1alpha1.ResourceSlackSpec) { s.Minimum = testcluster.AmountOf("0", "", 0) }),
			"spec.minimum.cpu: Invalid value: must be a quantity of more than 0",
		},
		"floor above ceiling": {
			testcluster.PolicyOf("a", "10%", func(s *v1alpha1.ResourceSlackSpec) {
				s.Minimum, s.Maximum = testcluster.AmountOf("10", "1025Mi", 3), testcluster.AmountOf("9500m", "1Gi", 2)
			}),
			"spec.minimum.cpu: Invalid value: minimum.cpu must be at most maximum.cpu",
		},
		"floor above ceiling, memory": {
			testcluster.PolicyOf("a", "10%", func(s *v1alpha1.ResourceSlackSpec) {
				s.Minimum, s.Maximum = testcluster.AmountOf("", "1025Mi", 0), testcluster.AmountOf("", "1Gi", 0)
			}),
			"spec.minimum.memory: Invalid value: minimum.memory must be at most maximum.memory",
		},
		"floor of a schedule above the ceiling": {
			testcluster.PolicyOf("a", "10%", func(s *v1alpha1.ResourceSlackSpec) {
				s.Schedules = []v1alpha1.Schedule{{From: "07:00", To: "19:00", Minimum: testcluster.AmountOf("", "", 3)}}
				s.Maximum = testcluster.AmountOf("", "", 2)
			}),
			"spec.schedules: Invalid value: minimum.placeholders must be at most maximum.placeholders",
		},
		"schedule that never applies": {
			scheduled(v1alpha1.Schedule{From: "07:00", To: "07:00", MinRate: "1%"}),
			"spec.schedules[0].to: Invalid value: must differ from from: the schedule never applies",
		},
		"days of a schedule":      {scheduled(v1alpha1.Schedule{Days: "Monday", From: "07:00", To: "08:00", MinRate: "1%"}), "spec.schedules[0].days"},
		"time of a schedule":      {scheduled(v1alpha1.Schedule{From: "7:00", To: "08:00", MinRate: "1%"}), "spec.schedules[0].from"},
		"schedule without effect": {scheduled(v1alpha1.Schedule{From: "07:00", To: "08:00"}), "minRate or minimum must be set"},
		"rate of a schedule":      {scheduled(v1alpha1.Schedule{From: "07:00", To: "08:00", MinRate: "10"}), "spec.schedules[0].minRate"},
		"high rate of a schedule": {
			scheduled(v1alpha1.Schedule{From: "07:00", To: "08:00", MinRate: "201%"}),
			"spec.schedules: Invalid value: minRate must be at most 200%: set a minimum for more",
		},
		"lead time": {scheduled(v1alpha1.Schedule{From: "07:00", To: "08:00", MinRate: "1%", LeadSeconds: new(int32(3601))}), "leadSeconds"},
		"shape without memory": {
			testcluster.PolicyOf("a", "10%", func(s *v1alpha1.ResourceSlackSpec) { s.Pool.NodeShape = testcluster.AmountOf("4", "", 0) }),
			"spec.pool.nodeShape: Invalid value: must have cpu and memory, and nothing else",
		},
		"native resource as a device": {
			withDevices("nvidia.com/gpu", "memory"), "spec.pool.devices[1]: Invalid value: must be the name of an extended resource such as",
		},
		"device of Kubernetes": {withDevices("requests.nvidia.com/gpu"), "must be the name of an extended resource such as nvidia.com/gpu"},
		"devices twice":        {withDevices("a.com/b", "a.com/b"), `spec.pool.devices[1]: Duplicate value: "a.com/b"`},
		"too many devices":     {withDevices(strings.Fields("a.b/1 a.b/2 a.b/3 a.b/4 a.b/5 a.b/6 a.b/7 a.b/8 a.b/9")...), "spec.pool.devices: Too many: 9"},
		"devices of allocatable": {
			testcluster.PolicyOf("a", "10%", func(s *v1alpha1.ResourceSlackSpec) {
				s.Base, s.Pool.Devices = v1alpha1.BaseAllocatable, []string{"nvidia.com/gpu"}
			}),
			"spec.base: Invalid value: must be Requested if pool.devices is set",
		},
		"name": {testcluster.PolicyOf(strings.Repeat("a", 51), "10%", nil), "metadata.name must have at most 50 characters"},
		"backend": {
			testcluster.PolicyOf("a", "10%", func(s *v1alpha1.ResourceSlackSpec) { s.Backend = "Unknown" }),
			`supported values: "CapacityBuffer", "Deployment"`,
		},
	} {
		if err := c.Client.Create(t.Context(), tc.policy); !apierrors.IsInvalid(err) ||
			!strings.Contains(testcluster.WithoutValue(err.Error()), tc.want) {
			t.Errorf("%s: %v, want %s", name, err, tc.want)
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
	devices := withDevices("nvidia.com/gpu", "example.com/nic")
	devices.Name = "devices"
	c.Create(t, devices)
	for i, rate := range []string{"0", "0%", "0.5", "1", "200%", "200.0%", "0100%", "99.9999%"} {
		c.Create(t, testcluster.PolicyOf(fmt.Sprint("rate-", i), rate, nil))
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
		s.Pool.NodeShape = testcluster.AmountOf("16", "64Gi", 0)
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
	t.Run("another policy on the same nodes", func(t *testing.T) {
		c.Create(t, testcluster.PolicyOf("everything", "5%", nil))
		c.AwaitCondition(t, controller, "everything", v1alpha1.ConditionReady, "PoolsOverlap")
		must.Succeed(t, c.Client.Delete(t.Context(), testcluster.PolicyOf("everything", "", nil)))
		c.AwaitBuffers(t, controller, map[string]string{"general-head": "1 x 1 2Gi", "general-rate": "5 x 1 2Gi"})
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
