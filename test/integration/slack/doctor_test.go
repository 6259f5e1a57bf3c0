package slack

import (
	"slices"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/doctor"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
	"github.com/plimsoll-k8s/plimsoll/test/support/testcluster"
)

// doctor examines an empty cluster, a cluster with problems in each check, and a cluster with
// some of them fixed.
func TestDoctor(t *testing.T) {
	h := testcluster.StartWithCRDs(t)
	config, err := h.Config("test", "system:masters")
	must.Succeed(t, err)

	found := testcluster.Examine(t, config, 0)
	testcluster.ExpectFinding(t, found, "api server", doctor.OK, "the scheduler is kube-scheduler v1.37.1")
	testcluster.ExpectFinding(t, found, "nodes", doctor.Problem, "no nodes")
	testcluster.ExpectFinding(t, found, "components", doctor.Warning, "Plimsoll is not installed")
	testcluster.ExpectFinding(t, found, "definitions", doctor.Problem, "resourceslacks.plimsoll.dev is missing")
	for _, f := range found {
		if slices.Contains([]string{"leaders", "rights", "load", "slack", "autoscaler", "placements"}, f.Check) {
			t.Errorf("finding %+v on something that is not installed", f)
		}
	}

	testcluster.InstallCRDs(t, config, testcluster.ProjectCRDs(t)...)
	buffers, err := testcluster.KarpenterSource(t).CRDs()
	must.Succeed(t, err)
	testcluster.InstallCRDs(t, config, buffers...)
	h.Create(t, &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}})
	h.Create(t, testcluster.Component("controller", v1.Container{
		Image: "plimsoll-controller",
		Args:  []string{"--controllers=slack,placement", "--placeholder-namespace=" + testcluster.PodNamespace},
	}))
	h.Create(t, &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: testcluster.SystemNamespace,
			Name:      "plimsoll-controller",
			Labels:    testcluster.Component("controller", v1.Container{}).Labels,
		},
	})
	h.Create(t, testcluster.Component("load-watcher", v1.Container{Image: "load-watcher"}))
	h.Create(t, &v1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: testcluster.SystemNamespace,
			Name:      "load-watcher",
			Labels:    testcluster.Component("load-watcher", v1.Container{}).Labels,
		},
		Spec: v1.ServiceSpec{Ports: []v1.ServicePort{{Port: 2020}}},
	})
	rate := "10%"
	policy := &v1alpha1.ResourceSlack{ObjectMeta: metav1.ObjectMeta{Name: "general"}, Spec: v1alpha1.ResourceSlackSpec{MinRate: rate}}
	h.Create(t, policy)
	scaler := testcluster.Component("", v1.Container{
		Image: "registry.example/autoscaling/cluster-autoscaler:v1.37.0", Args: []string{"--capacity-buffer-controller-enabled"},
	})
	scaler.Name, scaler.Labels = "cluster-autoscaler", nil
	scaler.Spec.Template.Spec.Containers[0].Name = "cluster-autoscaler"
	h.Create(t, scaler)
	h.Create(t, &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "forgotten"},
		Spec:       v1.PodSpec{SchedulerName: "plimsol", Containers: []v1.Container{{Name: "c", Image: "i"}}},
	})

	found = testcluster.Examine(t, config, 5*time.Minute)
	testcluster.ExpectFinding(t, found, "nodes", doctor.OK, "1 node, all ready")
	testcluster.ExpectFinding(t, found, "components", doctor.Problem, "plimsoll-controller: 0 of 1 replica is ready")
	testcluster.ExpectFinding(t, found, "leaders", doctor.Problem, "has no holder")
	testcluster.ExpectFinding(t, found, "rights", doctor.Problem, "plimsoll-system/default of plimsoll-controller may not list events;")
	testcluster.ExpectFinding(t, found, "rights", doctor.Problem, "create deployments.apps in "+testcluster.PodNamespace)
	testcluster.ExpectFinding(t, found, "definitions", doctor.OK, "resourceslacks.plimsoll.dev is installed")
	testcluster.ExpectFinding(t, found, "definitions", doctor.OK, "placements.cluster.open-cluster-management.io is installed")
	testcluster.ExpectFinding(t, found, "definitions", doctor.Problem, "managedclusters.cluster.open-cluster-management.io is missing")
	testcluster.ExpectFinding(t, found, "schedulers", doctor.Problem, `"plimsol" in spec.schedulerName: default/forgotten`)
	testcluster.ExpectFinding(t, found, "placements", doctor.OK, "no problems found")
	testcluster.ExpectFinding(t, found, "load", doctor.Problem, "load-watcher plimsoll-system/load-watcher does not respond")
	testcluster.ExpectFinding(t, found, "slack", doctor.Problem, "policy general has no status")
	testcluster.ExpectFinding(t, found, "autoscaler", doctor.Problem, "without --capacity-buffer-pod-injection-enabled")

	// The CRD is outdated and the lease has expired.
	var definition apiextensionsv1.CustomResourceDefinition
	must.Succeed(t, h.Client.Get(t.Context(), client.ObjectKey{Name: "resourceslacks.plimsoll.dev"}, &definition))
	delete(definition.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties, "granularity")
	must.Succeed(t, h.Client.Update(t.Context(), &definition))
	holder, seconds, renewed := "pod-1", int32(15), metav1.NowMicro()
	lease := &coordinationv1.Lease{}
	must.Succeed(t, h.Client.Get(t.Context(), client.ObjectKey{Namespace: testcluster.SystemNamespace, Name: "plimsoll-controller"}, lease))
	lease.Spec = coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds, RenewTime: &renewed}
	must.Succeed(t, h.Client.Update(t.Context(), lease))
	found = testcluster.Examine(t, config, 5*time.Minute)
	testcluster.ExpectFinding(t, found, "definitions", doctor.Warning, "resourceslacks.plimsoll.dev differs from that of this version")
	testcluster.ExpectFinding(t, found, "leaders", doctor.Problem, "was last renewed 5m")
	testcluster.ExpectFinding(t, testcluster.Examine(t, config, 0), "leaders", doctor.OK, "pod-1 leads")

	// A user without rights sees the version only, and warnings for the other checks.
	unprivileged, err := h.Config("unprivileged")
	must.Succeed(t, err)
	found = testcluster.Examine(t, unprivileged, 0)
	testcluster.ExpectFinding(t, found, "nodes", doctor.Unmade, "forbidden")
	if slices.ContainsFunc(found, func(f doctor.Finding) bool { return f.Level == doctor.Problem }) {
		t.Errorf("problems in checks without access: %+v", found)
	}
}
