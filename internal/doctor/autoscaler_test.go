package doctor

import (
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	crfake "sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/kube"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// TestUpdatesOfStatus checks the warning that Cluster Autoscaler updates too many buffers in each loop.
func TestUpdatesOfStatus(t *testing.T) {
	for _, tc := range []struct {
		buffers int
		flags   []string
		want    string
	}{
		{20, nil, ""},
		{22, nil, "kube-system/scaler updates the status of 22 buffers in each loop, which takes up to 4 s at --kube-client-qps=5"},
		{22, []string{"--kube-client-qps=50", "--kube-client-burst=100"}, ""},
		{22, []string{"--kube-client-qps=0"}, ""},
		{22, []string{"--kube-client-qps", "50", "--v", "4"}, ""},
		{22, []string{"--kube-client-qps=50", "--kube_client_qps=5"}, "takes up to 4 s at --kube-client-qps=5"},
		{22, []string{"--kube-client-qps=$(QPS)"}, ""},
		{500, []string{"--kube-client-qps=50"}, "500 buffers in each loop, which takes up to 10 s at --kube-client-qps=50"},
	} {
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "scaler"}}
		d.Spec.Template.Spec.Containers = []v1.Container{{
			Image: "cluster-autoscaler", Env: []v1.EnvVar{{Name: "QPS", Value: "50"}},
			Args: append(strings.Split(clusterAutoscalerFlags, " "), tc.flags...),
		}}
		e := &examination{}
		if e.checkFlagsOf(d, tc.buffers); tc.want == "" {
			if len(e.findings) > 0 {
				t.Errorf("%d buffers, %v: %+v", tc.buffers, tc.flags, e.findings)
			}
			continue
		}
		if f := onlyFinding(t, e, Warning); !strings.Contains(f.Message, tc.want) {
			t.Errorf("message %q, want %q", f.Message, tc.want)
		}
	}
}

// TestFlags checks the findings for autoscalers that are or may be without buffers.
func TestFlags(t *testing.T) {
	env := func(value string, from *v1.EnvVarSource) []v1.EnvVar {
		return []v1.EnvVar{{Name: "FEATURE_GATES", Value: value, ValueFrom: from}}
	}
	for name, tc := range map[string]struct {
		container v1.Container
		level     Level // OK for no finding
		message   string
	}{
		"false": {v1.Container{Image: clusterAutoscaler, Args: append(strings.Split(clusterAutoscalerFlags, " "),
			"--capacity-buffer-pod-injection-enabled=0")}, Problem, "runs without --capacity-buffer-pod-injection-enabled"},
		"true": {v1.Container{Image: clusterAutoscaler, Command: []string{
			"sh", "-c",
			"./cluster-autoscaler --v 4 --capacity_buffer_controller_enabled=T --capacity-buffer-pod-injection-enabled",
		}}, OK, ""},
		"gate":         {v1.Container{Image: karpenter, Env: env("SpotToSpot=true,CapacityBuffer=true", nil)}, OK, ""},
		"gate by flag": {v1.Container{Image: karpenter, Args: []string{"--feature-gates", "CapacityBuffer=true"}}, OK, ""},
		"no gate":      {v1.Container{Image: karpenter}, Problem, "runs without the feature gate CapacityBuffer"},
		"value from":   {v1.Container{Image: karpenter, Env: env("", &v1.EnvVarSource{})}, Warning, "it is not known whether"},
		"env from":     {v1.Container{Image: karpenter, EnvFrom: []v1.EnvFromSource{{}}}, Warning, "it is not known whether"},
		"false, others": {
			v1.Container{Image: karpenter, Env: env("CapacityBuffer=false", nil), EnvFrom: []v1.EnvFromSource{{}}}, Problem, "runs without",
		},
	} {
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "scaler"}}
		d.Spec.Template.Spec.Containers = []v1.Container{tc.container}
		e := &examination{}
		if e.checkFlagsOf(d, 1); tc.level == OK {
			if len(e.findings) > 0 {
				t.Errorf("%s: %+v", name, e.findings)
			}
			continue
		}
		if f := onlyFinding(t, e, tc.level); !strings.Contains(f.Message, tc.message) {
			t.Errorf("%s: %q, want %q", name, f.Message, tc.message)
		}
	}
}

// TestCheckAccepted checks that buffers that an autoscaler refuses are a problem, and those without an answer after two minutes.
func TestCheckAccepted(t *testing.T) {
	for _, tc := range []struct {
		status metav1.ConditionStatus
		since  time.Duration
		want   Level // "" for no finding
	}{
		{metav1.ConditionTrue, 0, OK},
		{metav1.ConditionFalse, 0, Problem},
		{metav1.ConditionUnknown, 2 * time.Minute, ""},
		{metav1.ConditionUnknown, 3 * time.Minute, Problem},
		{"", 0, ""},
	} {
		policy := &v1alpha1.ResourceSlack{ObjectMeta: metav1.ObjectMeta{Name: "general"}}
		if tc.status != "" {
			policy.Status.Conditions = []metav1.Condition{
				{
					Type:               v1alpha1.ConditionAccepted,
					Status:             tc.status,
					Message:            "the message",
					LastTransitionTime: metav1.NewTime(noon.Add(-tc.since)),
				},
			}
		}
		e := &examination{now: noon}
		e.checkAccepted(policy)
		if tc.want == "" {
			if len(e.findings) > 0 {
				t.Errorf("%s for %s: %+v", tc.status, tc.since, e.findings)
			}
			continue
		}
		if f := onlyFinding(t, e, tc.want); f.Message != "policy general: the message" {
			t.Errorf("message %q", f.Message)
		}
	}
}

// TestCheckSlack checks that a policy that is not ready for long is a problem, unless its pool is empty.
func TestCheckSlack(t *testing.T) {
	for _, tc := range []struct {
		reason string
		since  time.Duration
		want   Level
	}{{"Provisioning", 15 * time.Minute, Warning}, {"Provisioning", 16 * time.Minute, Problem}, {"PoolEmpty", time.Hour, Warning}} {
		policy := &v1alpha1.ResourceSlack{ObjectMeta: metav1.ObjectMeta{Name: "general"}}
		policy.Status.Conditions = []metav1.Condition{
			{
				Type:               v1alpha1.ConditionReady,
				Status:             metav1.ConditionFalse,
				Reason:             tc.reason,
				LastTransitionTime: metav1.NewTime(noon.Add(-tc.since)),
			},
		}
		c := crfake.NewClientBuilder().WithScheme(kube.Scheme()).WithObjects(policy).Build()
		e := &examination{Cluster: &Cluster{client: c}, now: noon}
		must.Succeed(t, e.checkSlack(t.Context()))
		onlyFinding(t, e, tc.want)
	}
}

// TestRightsOfClusterAutoscaler checks the permissions of the service account of Cluster Autoscaler, which is
// found by its image or named.
func TestRightsOfClusterAutoscaler(t *testing.T) {
	deployment := func(name, image string, args ...string) *appsv1.Deployment {
		return &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: name},
			Spec: appsv1.DeploymentSpec{Template: v1.PodTemplateSpec{Spec: v1.PodSpec{
				ServiceAccountName: "scaler",
				Containers:         []v1.Container{{Image: image, Args: append(strings.Split(clusterAutoscalerFlags, " "), args...)}},
			}}},
		}
	}
	const image, custom = "registry.k8s.io/autoscaling/cluster-autoscaler:v1.37.0", "example.com/scaler:1"
	for name, tc := range map[string]struct {
		deployment *appsv1.Deployment
		named      types.NamespacedName
		denied     []string // "verb resource"
		level      Level
		message    string
	}{
		"all": {deployment("scaler", image), types.NamespacedName{}, nil, OK, "kube-system/scaler of scaler has the permissions for buffers"},
		"those of common charts": {
			deployment("scaler", image),
			types.NamespacedName{},
			[]string{"list resourcequotas", "watch resourcequotas", "list deployments", "watch deployments", "create pods"},
			Problem,
			"service account kube-system/scaler of scaler may not list resourcequotas; watch resourcequotas; list deployments.apps; " +
				"watch deployments.apps; create pods: without",
		},
		"no dry run": {
			deployment("scaler", image, "--capacity-buffer-pod-dry-run-enabled=false"), types.NamespacedName{}, []string{"create pods"}, OK, "has the",
		},
		"no status": {
			deployment("scaler", image),
			types.NamespacedName{},
			[]string{"update capacitybuffers/status"},
			Problem,
			"may not update capacitybuffers/status.autoscaling.x-k8s.io",
		},
		"named": {
			deployment("scaler", custom),
			types.NamespacedName{Namespace: "kube-system", Name: "scaler"},
			[]string{"create pods"},
			Problem,
			"may not create pods",
		},
		"named, but not there": {
			deployment("scaler", image),
			types.NamespacedName{Namespace: "kube-system", Name: "other"},
			[]string{"create pods"},
			Problem,
			"there is no Deployment kube-system/other",
		},
	} {
		t.Run(name, func(t *testing.T) {
			clientset := fake.NewClientset(tc.deployment)
			clientset.PrependReactor("create", "subjectaccessreviews", func(action clienttesting.Action) (bool, runtime.Object, error) {
				review := action.(clienttesting.CreateAction).GetObject().(*authorizationv1.SubjectAccessReview).DeepCopy()
				a := review.Spec.ResourceAttributes
				text := strings.TrimSuffix(a.Verb+" "+a.Resource+"/"+a.Subresource, "/")
				review.Status.Allowed = review.Spec.User == "system:serviceaccount:kube-system:scaler" && !slices.Contains(tc.denied, text)
				return true, review, nil
			})
			e := &examination{Cluster: &Cluster{kube: clientset, Autoscaler: tc.named}, now: noon}
			must.Succeed(t, e.checkNamed(t.Context()))
			must.Succeed(t, e.checkAutoscalers(t.Context(), 1))
			if f := onlyFinding(t, e, tc.level); !strings.Contains(f.Message, tc.message) {
				t.Errorf("message %q, want %q", f.Message, tc.message)
			}
		})
	}
}
