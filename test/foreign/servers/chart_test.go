//go:build foreign

package servers

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/doctor"
	"github.com/plimsoll-k8s/plimsoll/internal/embedded/controlplane"
	"github.com/plimsoll-k8s/plimsoll/slack"
	"github.com/plimsoll-k8s/plimsoll/test/support/eventually"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
	"github.com/plimsoll-k8s/plimsoll/test/support/program"
	"github.com/plimsoll-k8s/plimsoll/test/support/testcluster"
)

// release is a release of the chart on a control plane.
type release struct {
	*testcluster.Cluster
	config *rest.Config
	kube   *kubernetes.Clientset
	helm   *program.Helm
	values string
	// notes are the notes that Helm prints after the installation.
	notes string
}

// valuesOfAll enables everything except the objects of the Prometheus operator, whose CRDs are missing.
const valuesOfAll = `
crds: {fleet: true}
networkPolicy: {enabled: true, metricsFrom: [{namespaceSelector: {}}], apiServerCIDRs: [192.0.2.1/32], loadSource: [{ports: [{port: 9090}]}]}
dashboards: {enabled: true}
scheduler: {profiles: [{schedulerName: plimsoll-scheduler, use: low-risk}]}
controller: {controllers: [slack, placement], adopt: all, extraCapacityMinRate: 10%, placeholderNamespace: plimsoll-placeholders}
loadWatcher: {enabled: true}
agent: {enabled: true, clusterName: cluster1, hub: {kubeconfig: "the test has its own"}}
`

// newRelease creates the namespaces of a release and of placeholder pods, which enforce the restricted pod
// security standard. It does not install the release.
func newRelease(t *testing.T, cp *controlplane.ControlPlane, config *rest.Config, kube *kubernetes.Clientset, values string) *release {
	t.Helper()
	tool, err := program.BuildHelm(t.Context(), "../../..", t.TempDir())
	must.Succeed(t, err)
	r := &release{
		Cluster: &testcluster.Cluster{ControlPlane: cp, Client: testcluster.AdminClient(t, config)},
		config:  config,
		kube:    kube,
		helm:    tool,
		values:  testcluster.WriteFile(t, values),
	}
	for _, name := range []string{testcluster.SystemNamespace, testcluster.PodNamespace} {
		r.Create(t, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name:   name,
			Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
		}})
	}
	return r
}

// helmed runs Helm with the control plane.
func (r *release) helmed(t *testing.T, args ...string) string {
	t.Helper()
	out, err := r.helm.Run(t.Context(), append(args, "--kubeconfig="+r.Kubeconfig, "--namespace="+testcluster.SystemNamespace)...)
	must.Succeed(t, err)
	return out
}

// deployment returns a Deployment of the release.
func (r *release) deployment(t *testing.T, component string) *appsv1.Deployment {
	t.Helper()
	deployment, err := r.kube.AppsV1().Deployments(testcluster.SystemNamespace).Get(t.Context(), "plimsoll-"+component, metav1.GetOptions{})
	must.Succeed(t, err)
	return deployment
}

// access returns a client configuration and a kubeconfig with a token of the service account of a
// component.
func (r *release) access(t *testing.T, component string) (config *rest.Config, kubeconfig string) {
	t.Helper()
	account := r.deployment(t, component).Spec.Template.Spec.ServiceAccountName
	request, err := r.kube.CoreV1().ServiceAccounts(
		testcluster.SystemNamespace,
	).CreateToken(t.Context(), account, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	must.Succeed(t, err)
	kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	config = &rest.Config{
		Host: r.config.Host, TLSClientConfig: rest.TLSClientConfig{CAData: r.config.CAData},
		BearerToken: request.Status.Token, QPS: -1,
	}
	must.Succeed(t, controlplane.WriteKubeconfig(kubeconfig, config))
	return config, kubeconfig
}

// releaseComponent is a running component of a release.
type releaseComponent struct {
	*program.Process
	name string
}

// stop stops the component, and fails the test if it has been denied an access.
func (c releaseComponent) stop(t *testing.T) {
	t.Helper()
	c.Stop(t)
	for line := range strings.Lines(c.String()) {
		if strings.Contains(line, "orbidden") {
			t.Errorf("%s lacks a permission: %s", c.name, line)
		}
	}
}

// start runs a component as its pods would, with the arguments of its Deployment and further ones,
// which override them.
func (r *release) start(t *testing.T, name, path string, args ...string) releaseComponent {
	t.Helper()
	return releaseComponent{program.Start(t, path, append(slices.Clone(r.deployment(t, name).Spec.Template.Spec.Containers[0].Args),
		args...)...), name}
}

// schedulerFile writes the configuration of the release's scheduler with a kubeconfig and the address of
// the load-watcher, which pods have from the cluster.
func (r *release) schedulerFile(t *testing.T, kubeconfig, watcher string) string {
	t.Helper()
	rendered, err := r.kube.CoreV1().ConfigMaps(testcluster.SystemNamespace).Get(t.Context(), "plimsoll-scheduler", metav1.GetOptions{})
	must.Succeed(t, err)
	const name = "http://plimsoll-load-watcher." + testcluster.SystemNamespace + ":2020"
	text := rendered.Data["scheduler.yaml"]
	if !strings.Contains(text, name) {
		t.Fatalf("the scheduler configuration does not name %s:\n%s", name, text)
	}
	var configuration map[string]any
	must.Succeed(t, yaml.Unmarshal([]byte(strings.ReplaceAll(text, name, watcher)), &configuration))
	configuration["clientConnection"] = map[string]any{"kubeconfig": kubeconfig}
	raw, err := yaml.Marshal(configuration)
	must.Succeed(t, err)
	return testcluster.WriteFile(t, string(raw))
}

// startWatcher starts the load-watcher and returns its address.
func (r *release) startWatcher(t *testing.T, args ...string) (address string, watcher releaseComponent) {
	t.Helper()
	_, kubeconfig := r.access(t, "load-watcher")
	listen := fmt.Sprintf("127.0.0.1:%d", program.FreePort(t))
	return "http://" + listen, r.start(t, "load-watcher", program.Path(t, "load-watcher"),
		append([]string{"--kubeconfig=" + kubeconfig, "--listen=" + listen}, args...)...)
}

// startScheduler starts the scheduler with the address of the load-watcher, and returns its
// configuration file and its port.
func (r *release) startScheduler(t *testing.T, watcher string) (file string, port int, scheduler releaseComponent) {
	t.Helper()
	_, kubeconfig := r.access(t, "scheduler")
	file, port = r.schedulerFile(t, kubeconfig, watcher), program.FreePort(t)
	scheduler = r.start(t, "scheduler", program.Path(t, "plimsoll-scheduler"), "--config="+file, "--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", port), "--authentication-kubeconfig="+kubeconfig, "--authorization-kubeconfig="+kubeconfig)
	return file, port, scheduler
}

// startController starts the controller.
func (r *release) startController(t *testing.T) releaseComponent {
	t.Helper()
	_, kubeconfig := r.access(t, "controller")
	return r.start(t, "controller", program.Path(t, "plimsoll-controller"), "--kubeconfig="+kubeconfig, "--metrics-bind-address=0",
		"--health-probe-bind-address=0")
}

// TestChart installs, upgrades and uninstalls the chart on a real API server in a namespace that enforces
// the restricted pod security standard. Each component runs with its service account and is functional; all
// other access is denied. Uninstalling keeps the CRDs.
func TestChart(t *testing.T) {
	cp, config, kube := startAggregatingPlane(t, testcluster.BuffersCRD(t))
	machines := startMachines(t, kube)
	testcluster.CreateNode(t, kube, "large") // the nodes with kubelets have no capacity for pods
	startMetricsServer(t, cp, kube)
	r := newRelease(t, cp, config, kube, valuesOfAll)
	before := r.inventory(t)
	r.notes = r.helmed(t, "install", "plimsoll", r.helm.Chart, "--values="+r.values)
	t.Run("restricted", r.podsAreRestricted)
	t.Run("rights", r.rights)
	end := r.run(t, machines)
	t.Run("upgrade", r.upgrade)
	t.Run("uninstall", func(t *testing.T) { r.uninstall(t, before, end) })
}

// podsAreRestricted expects that the pods of all Deployments are admitted and privileged pods are denied.
func (r *release) podsAreRestricted(t *testing.T) {
	for _, component := range []string{"scheduler", "controller", "load-watcher", "agent"} {
		var deployment *appsv1.Deployment
		eventually.True(t, component+" has too few pods", nil, func(context.Context) (bool, error) {
			deployment = r.deployment(t, component)
			return deployment.Status.Replicas == *deployment.Spec.Replicas, nil
		})
		pod := &v1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: testcluster.SystemNamespace, Name: "privileged"},
			Spec:       *deployment.Spec.Template.Spec.DeepCopy(),
		}
		pod.Spec.Containers[0].SecurityContext.Privileged = new(true)
		pod.Spec.Containers[0].SecurityContext.AllowPrivilegeEscalation = nil
		if err := r.Client.Create(t.Context(), pod, client.DryRunAll); !apierrors.IsForbidden(err) ||
			!strings.Contains(err.Error(), "privileged") {
			t.Errorf("%s with a privileged container: error %v, want Forbidden", component, err)
		}
	}
}

// run starts all components and checks the function of each. It returns a function that stops them.
func (r *release) run(t *testing.T, machines []*machine) (end func()) {
	t.Helper()
	address, watcher := r.startWatcher(t, "--poll-interval=1s")
	_, _, scheduler := r.startScheduler(t, address)
	controller := r.startController(t)

	// The cluster is its own hub. The permissions of the agent on the hub are not part of the chart.
	fleet := r.Hub(t)
	r.Apply(t, testcluster.Example(t, "fleet.yaml")...)
	r.Create(t, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "cluster1"}})
	testcluster.CreateAll(t, r.Client, testcluster.AgentHubRBAC)
	hubAccess := filepath.Join(t.TempDir(), "hub")
	fleet.Credentials(t, "cluster1", hubAccess)
	_, agentAccess := r.access(t, "agent")
	agent := r.start(t, "agent", program.Path(t, "plimsoll-controller"), "--kubeconfig="+agentAccess, "--hub-kubeconfig="+hubAccess,
		"--interval=1s", "--metrics-bind-address=0", "--health-probe-bind-address=0")

	t.Run("the scheduler places pods that name it", func(t *testing.T) {
		commands := regexp.MustCompile(`(?m)(?:^  .*\n)+`).FindString(r.notes)
		if out := runInProject(t, "export KUBECONFIG="+r.Kubeconfig+"\n"+commands); !strings.Contains(out, "pod/try condition met") {
			t.Errorf("the first commands of the notes print\n%s\nnotes:\n%s", out, r.notes)
		}
		eventually.True(t, "the pod does not run", scheduler, func(ctx context.Context) (bool, error) {
			pod, err := r.kube.CoreV1().Pods("default").Get(ctx, "try", metav1.GetOptions{})
			return err == nil && pod.Status.Phase == v1.PodRunning, err
		})
		lease, err := r.kube.CoordinationV1().Leases(
			testcluster.SystemNamespace,
		).Get(t.Context(), "plimsoll-scheduler", metav1.GetOptions{})
		if err != nil || lease.Spec.HolderIdentity == nil || lease.Labels["app.kubernetes.io/managed-by"] != "Helm" {
			t.Errorf("lease of the release: %+v, %v", lease, err)
		}
	})
	t.Run("the controller keeps slack", func(t *testing.T) { r.keepsSlack(t, machines, controller) })
	t.Run("the controller decides placements", func(t *testing.T) {
		r.Apply(t, testcluster.Example(t, "1-largest-ratios/placement.yaml")...)
		r.AwaitChosen(t, controller, "largest-ratios", "cluster2", "cluster4", "cluster6")
	})
	t.Run("the agent reports", func(t *testing.T) {
		eventually.True(t, "no scores are reported", agent, func(ctx context.Context) (bool, error) {
			scores, until, err := fleet.Scores(ctx, "cluster1")
			return len(scores) > 0 && until.After(time.Now()), err
		})
	})
	t.Run("the load-watcher reads the metrics API", func(t *testing.T) {
		eventually.True(t, "the load-watcher has no fresh load", watcher, func(ctx context.Context) (bool, error) {
			_, err := program.Get(ctx, address+"/readyz")
			return err == nil, nil
		})
	})
	t.Run("the doctor reports permissions and leaders as OK", r.doctorFindsComponents)
	return func() {
		t.Helper()
		for _, c := range []releaseComponent{agent, controller, scheduler, watcher} {
			c.stop(t)
		}
	}
}

// doctorFindsComponents expects that plimsoll doctor finds the permissions and the leaders of all components.
func (r *release) doctorFindsComponents(t *testing.T) {
	permissions, leaders := 0, 0
	for _, f := range testcluster.Examine(t, r.config, 0) {
		switch f.Check {
		case "rights", "leaders", "definitions":
			if f.Level != doctor.OK {
				t.Errorf("%s: %s: %s", f.Check, f.Level, f.Message)
			}
		}
		switch f.Check {
		case "rights":
			permissions++
		case "leaders":
			leaders++
		}
	}
	if permissions != 4 || leaders != 3 {
		t.Errorf("permissions of %d components and %d leaders, want 4 and 3", permissions, leaders)
	}
}

// keepsSlack expects buffers for the default policy, placeholder pods (which are restricted, too) for
// another policy, and mirror placeholders for a workload in its namespace.
func (r *release) keepsSlack(t *testing.T, machines []*machine, log fmt.Stringer) {
	testcluster.CreatePod(t, r.kube, "web", machines[4].name, "", "4", "8")
	web := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "web",
		Annotations: map[string]string{v1alpha1.AnnotationSlack: "1"},
	}}
	web.Spec.Replicas = new(int32(0))
	web.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	web.Spec.Template = v1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
		Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "c", Image: "i"}}},
	}
	r.Create(t, web)
	r.Create(t, testcluster.PolicyOf("real", "5%", func(s *v1alpha1.ResourceSlackSpec) { s.Backend = v1alpha1.BackendDeployment }))
	r.Create(t, testcluster.PolicyOf("mirrors", "0", nil)) // the default policy mirrors nothing
	eventually.True(t, "the default policy has no buffer", log, func(ctx context.Context) (bool, error) {
		buffers, err := r.held(ctx, "CapacityBuffer", testcluster.SystemNamespace, "default")
		return buffers > 0, err
	})
	eventually.True(t, "the workload has no placeholders in its namespace", log, func(ctx context.Context) (bool, error) {
		buffers, err := r.held(ctx, "CapacityBuffer", "default", "mirrors")
		return buffers > 0, err
	})
	eventually.True(t, "the placeholder pods of policy real are not created", log, func(ctx context.Context) (bool, error) {
		pods, err := r.kube.CoreV1().Pods(
			testcluster.PodNamespace,
		).List(ctx, metav1.ListOptions{LabelSelector: slack.PlaceholderLabel + "=real"})
		return err == nil && len(pods.Items) > 0, err
	})
	var class schedulingv1.PriorityClass
	must.Succeed(t, r.Client.Get(t.Context(), client.ObjectKey{Name: slack.PriorityClassName}, &class))
	for _, manager := range class.ManagedFields {
		if manager.Manager == "plimsoll-slack" {
			t.Error("the controller has changed the priority class of the chart")
		}
	}
}

// upgrade expects that an upgrade changes values and keeps the leader.
func (r *release) upgrade(t *testing.T) {
	leader := func() string {
		lease, err := r.kube.CoordinationV1().Leases(
			testcluster.SystemNamespace,
		).Get(t.Context(), "plimsoll-controller", metav1.GetOptions{})
		if err != nil || lease.Spec.HolderIdentity == nil {
			t.Fatal(lease, err)
		}
		return *lease.Spec.HolderIdentity
	}
	before := leader()
	r.helmed(t, "upgrade", "plimsoll", r.helm.Chart, "--values="+r.values, "--set=controller.replicas=3",
		"--set=controller.extraArgs={--adopt=annotated}")
	if got := r.deployment(t, "controller"); *got.Spec.Replicas != 3 ||
		!slices.Contains(got.Spec.Template.Spec.Containers[0].Args, "--adopt=annotated") {
		t.Errorf("the upgrade did not change the Deployment: %+v", got.Spec)
	}
	if after := leader(); after != before {
		t.Errorf("the leader is %s, was %s", after, before)
	}
	_, err := r.helm.Run(t.Context(), "upgrade", "plimsoll", r.helm.Chart, "--values="+r.values, "--set=controller.replica=1",
		"--kubeconfig="+r.Kubeconfig, "--namespace="+testcluster.SystemNamespace)
	if err == nil || !strings.Contains(err.Error(), "replica") {
		t.Errorf("upgrade with an unknown value: %v", err)
	}
}

// uninstall deletes the policies, stops the components, uninstalls the release, and expects that only the
// CRDs remain.
func (r *release) uninstall(t *testing.T, before map[string]bool, end func()) {
	must.Succeed(t, r.Client.DeleteAllOf(t.Context(), &v1alpha1.ResourceSlack{}))
	eventually.True(t, "placeholders remain", nil, func(ctx context.Context) (bool, error) {
		remaining := 0
		for _, kind := range []string{"CapacityBuffer", "PodTemplate", "Deployment"} {
			for _, policy := range []string{"default", "real"} {
				held, err := r.held(ctx, kind, "", policy)
				if err != nil {
					return false, err
				}
				remaining += held
			}
		}
		return remaining == 0, nil
	})
	end()
	r.helmed(t, "uninstall", "plimsoll")
	var remaining []string
	defer func() {
		if t.Failed() {
			t.Log("remaining objects:", strings.Join(remaining, "\n"))
		}
	}()
	eventually.True(t, "objects other than CRDs remain", nil, func(context.Context) (bool, error) {
		remaining = slices.DeleteFunc(r.added(t, before), func(object string) bool {
			return strings.HasPrefix(object, "customresourcedefinitions.apiextensions.k8s.io ")
		})
		return len(remaining) == 0, nil
	})
	for _, name := range []string{"resourceslacks.plimsoll.dev", "placements.cluster.open-cluster-management.io"} {
		if !r.inventory(t)["customresourcedefinitions.apiextensions.k8s.io "+name] {
			t.Errorf("the CRD %s was deleted", name)
		}
	}
	// The next release of the same name takes over the CRDs.
	r.helmed(t, "install", "plimsoll", r.helm.Chart, "--values="+r.values)
}
