package integration

import (
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/doctor"
)

// examine examines a cluster at the current time plus later.
func examine(t *testing.T, config *rest.Config, later time.Duration) []doctor.Finding {
	t.Helper()
	cluster, err := doctor.New(config, "v1.37.1")
	if err != nil {
		t.Fatal(err)
	}
	findings, err := cluster.Examine(t.Context(), time.Now().Add(later))
	if err != nil {
		t.Fatal(err)
	}
	return findings
}

// expectFinding fails unless there is a finding with the given check, level and part of the
// message. A finding that is not OK must have a fix.
func expectFinding(t *testing.T, findings []doctor.Finding, check string, level doctor.Level, message string) {
	t.Helper()
	for _, f := range findings {
		if f.Check == check && f.Level == level && strings.Contains(f.Message, message) {
			if level != doctor.OK && f.Fix == "" {
				t.Errorf("%+v has no fix", f)
			}
			return
		}
	}
	t.Errorf("no finding with check %q, level %s and message %q in %+v", check, level, message, findings)
}

// component returns a Deployment with the labels of the chart and one container.
func component(name string, container v1.Container) *appsv1.Deployment {
	labels := map[string]string{"app.kubernetes.io/part-of": "plimsoll", "app.kubernetes.io/component": name}
	container.Name = name
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: systemNamespace, Name: "plimsoll-" + name, Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: v1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       v1.PodSpec{SchedulerName: "unknown", Containers: []v1.Container{container}},
			},
		},
	}
}

// doctor examines an empty cluster, a cluster with problems in each check, and a cluster with
// some of them fixed.
func TestDoctor(t *testing.T) {
	t.Parallel()
	h := startClusterWithCRDs(t)
	config, err := h.Config("test", "system:masters")
	if err != nil {
		t.Fatal(err)
	}

	found := examine(t, config, 0)
	expectFinding(t, found, "api server", doctor.OK, "the scheduler is kube-scheduler v1.37.1")
	expectFinding(t, found, "clock", doctor.OK, "agree")
	expectFinding(t, found, "nodes", doctor.Problem, "no nodes")
	expectFinding(t, found, "components", doctor.Warning, "Plimsoll is not installed")
	expectFinding(t, found, "definitions", doctor.Problem, "resourceslacks.plimsoll.dev is missing")
	for _, f := range found {
		if slices.Contains([]string{"leaders", "rights", "load", "slack", "autoscaler", "placements"}, f.Check) {
			t.Errorf("finding %+v on something that is not installed", f)
		}
	}

	installCRDs(t, config, projectCRDs(t)...)
	buffers, err := karpenterSource(t).CRDs()
	if err != nil {
		t.Fatal(err)
	}
	installCRDs(t, config, buffers...)
	h.create(t, &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}})
	h.create(t, component("controller", v1.Container{
		Image: "plimsoll-controller", Args: []string{"--controllers=slack,placement", "--placeholder-namespace=" + podNamespace},
	}))
	h.create(
		t,
		&coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: systemNamespace, Name: "plimsoll-controller", Labels: component("controller", v1.Container{}).Labels,
			},
		},
	)
	h.create(t, component("load-watcher", v1.Container{Image: "load-watcher"}))
	h.create(
		t,
		&v1.Service{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: systemNamespace, Name: "load-watcher", Labels: component("load-watcher", v1.Container{}).Labels,
			},
			Spec: v1.ServiceSpec{Ports: []v1.ServicePort{{Port: 2020}}},
		},
	)
	rate := "10%"
	policy := &v1alpha1.ResourceSlack{ObjectMeta: metav1.ObjectMeta{Name: "general"}, Spec: v1alpha1.ResourceSlackSpec{MinRate: rate}}
	h.create(t, policy)
	scaler := component(
		"",
		v1.Container{
			Image: "registry.example/autoscaling/cluster-autoscaler:v1.37.0", Args: []string{"--capacity-buffer-controller-enabled"},
		},
	)
	scaler.Name, scaler.Labels = "cluster-autoscaler", nil
	scaler.Spec.Template.Spec.Containers[0].Name = "cluster-autoscaler"
	h.create(t, scaler)
	h.create(
		t,
		&v1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "forgotten"},
			Spec:       v1.PodSpec{SchedulerName: "plimsol", Containers: []v1.Container{{Name: "c", Image: "i"}}},
		},
	)

	found = examine(t, config, 5*time.Minute)
	expectFinding(t, found, "nodes", doctor.OK, "1 node, all ready")
	expectFinding(t, found, "components", doctor.Problem, "plimsoll-controller: 0 of 1 replica is ready")
	expectFinding(t, found, "leaders", doctor.Problem, "has no holder")
	expectFinding(t, found, "rights", doctor.Problem, "plimsoll-system/default of plimsoll-controller may not get namespaces;")
	expectFinding(t, found, "rights", doctor.Problem, "create deployments.apps in "+podNamespace)
	expectFinding(t, found, "definitions", doctor.OK, "resourceslacks.plimsoll.dev is installed")
	expectFinding(t, found, "definitions", doctor.OK, "placements.cluster.open-cluster-management.io is installed")
	expectFinding(t, found, "definitions", doctor.Problem, "managedclusters.cluster.open-cluster-management.io is missing")
	expectFinding(t, found, "schedulers", doctor.Problem, `"plimsol" in spec.schedulerName: default/forgotten`)
	expectFinding(t, found, "placements", doctor.OK, "no problems found")
	expectFinding(t, found, "load", doctor.Problem, "load-watcher plimsoll-system/load-watcher does not respond")
	expectFinding(t, found, "slack", doctor.Problem, "policy general has no status")
	expectFinding(t, found, "autoscaler", doctor.Problem, "without --capacity-buffer-pod-injection-enabled")

	// The CRD is outdated and the lease has expired.
	var definition apiextensionsv1.CustomResourceDefinition
	if err := h.client.Get(t.Context(), client.ObjectKey{Name: "resourceslacks.plimsoll.dev"}, &definition); err != nil {
		t.Fatal(err)
	}
	delete(definition.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties, "granularity")
	if err := h.client.Update(t.Context(), &definition); err != nil {
		t.Fatal(err)
	}
	holder, seconds, renewed := "pod-1", int32(15), metav1.NowMicro()
	lease := &coordinationv1.Lease{}
	if err := h.client.Get(t.Context(), client.ObjectKey{Namespace: systemNamespace, Name: "plimsoll-controller"}, lease); err != nil {
		t.Fatal(err)
	}
	lease.Spec = coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds, RenewTime: &renewed}
	if err := h.client.Update(t.Context(), lease); err != nil {
		t.Fatal(err)
	}
	found = examine(t, config, 5*time.Minute)
	expectFinding(t, found, "definitions", doctor.Warning, "resourceslacks.plimsoll.dev differs from that of this version")
	expectFinding(t, found, "leaders", doctor.Problem, "was last renewed 5m")
	expectFinding(t, examine(t, config, 0), "leaders", doctor.OK, "pod-1 leads")

	// A user without rights sees the version only, and warnings for the other checks.
	unprivileged, err := h.Config("unprivileged")
	if err != nil {
		t.Fatal(err)
	}
	found = examine(t, unprivileged, 0)
	expectFinding(t, found, "nodes", doctor.Warning, "not checked")
	if slices.ContainsFunc(found, func(f doctor.Finding) bool { return f.Level == doctor.Problem }) {
		t.Errorf("problems in checks without access: %+v", found)
	}
}
