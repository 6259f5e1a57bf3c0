//go:build foreign

// Package chart renders the Helm chart and compares it with the programs, the configuration, the other
// manifests and the documentation of the project.
package chart

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/plimsoll-k8s/plimsoll/api/config"
	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/emulation"
	"github.com/plimsoll-k8s/plimsoll/slack"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
	"github.com/plimsoll-k8s/plimsoll/test/support/program"
)

const project = "../.."

var (
	update = flag.Bool("update", false, "write the table of docs/security.md")
	tool   *program.Helm
	home   string
)

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

// run builds Helm, runs the tests and returns the exit code.
func run(m *testing.M) int {
	var err error
	if home, err = os.MkdirTemp("", "plimsoll-helm-"); err == nil {
		defer os.RemoveAll(home)
		tool, err = program.BuildHelm(context.Background(), project, home)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// valuesFile writes values to a file and returns the argument that names it.
func valuesFile(t *testing.T, values string) string {
	t.Helper()
	// Not in t.TempDir(), which contains the name of the test: Helm splits file names at commas.
	file, err := os.CreateTemp(home, "values-*.yaml")
	must.Succeed(t, err)
	defer file.Close()
	if _, err := file.WriteString(values); err != nil {
		t.Fatal(err)
	}
	return "--values=" + file.Name()
}

// renders are the renders of the chart by their values.
var renders sync.Map

// render returns the objects of the chart with values. Tests with the same values share them.
func render(t *testing.T, values string) []*unstructured.Unstructured {
	t.Helper()
	once, _ := renders.LoadOrStore(values, sync.OnceValues(func() ([]*unstructured.Unstructured, error) {
		return tool.Template(context.WithoutCancel(t.Context()), valuesFile(t, values))
	}))
	objects, err := once.(func() ([]*unstructured.Unstructured, error))()
	must.Succeed(t, err)
	return objects
}

const (
	none = "scheduler: {enabled: false}\ncontroller: {enabled: false}\nloadWatcher: {enabled: false}\nagent: {enabled: false}\nshadow: {enabled: false}\n"
	all  = `
crds: {fleet: true}
commonLabels: {team: platform}
image: {registry: registry.example/plimsoll, tag: v1, pullSecrets: [{name: pull}]}
networkPolicy: {enabled: true, metricsFrom: [{namespaceSelector: {}}], apiServerCIDRs: [192.0.2.1/32], loadSource: [{ports: [{port: 9090}]}]}
serviceMonitor: {enabled: true, labels: {prometheus: main}}
dashboards: {enabled: true}
alerts: {enabled: true, labels: {prometheus: main}}
scheduler:
  profiles:
  - {schedulerName: a, use: allocatable-least}
  - {schedulerName: b, use: limits}
  - {schedulerName: c, use: low-risk}
  tolerations: [{operator: Exists}]
  affinity: {nodeAffinity: {}}
  nodeSelector: {kubernetes.io/os: linux}
  priorityClassName: system-cluster-critical
  podAnnotations: {a: b}
  podLabels: {c: d}
  extraArgs: [--v=2]
  extraEnv: [{name: E, value: f}]
  extraVolumes: [{name: g, emptyDir: {}}]
  extraVolumeMounts: [{name: g, mountPath: /g}]
  serviceAccount: {annotations: {h: i}}
controller: {adopt: all, extraCapacityMinRate: 10%, placeholderNamespace: plimsoll-placeholders}
loadWatcher: {enabled: true, provider: Prometheus, address: "http://prometheus.monitoring:9090"}
agent: {enabled: true, clusterName: cluster1, hub: {secretName: hub}, load: {provider: KubernetesMetricsServer},
  quotaNamespaces: [shop, lab]}
shadow: {enabled: true, prometheus: "http://prometheus.monitoring:9090", candidates: [predicted, low-risk]}
`
)

// alone returns the values that enable one component only.
func alone(component, more string) string {
	return strings.Replace(none, component+": {enabled: false}", component+": {enabled: true"+more+"}", 1)
}

// TestRenders expects that helm lint passes with each combination of components, and the right number
// of objects.
func TestRenders(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		values      string
		deployments []string
		kinds       map[string]int
	}{
		"default values":    {"", []string{"controller", "scheduler"}, map[string]int{"CustomResourceDefinition": 1, "Lease": 2, "PodDisruptionBudget": 2, "NetworkPolicy": 0, "ServiceMonitor": 0}},
		"all":               {all, []string{"agent", "controller", "load-watcher", "scheduler", "shadow"}, map[string]int{"CustomResourceDefinition": 7, "Lease": 3, "NetworkPolicy": 5, "ServiceMonitor": 5, "PersistentVolumeClaim": 1, "Secret": 0}},
		"none":              {none, nil, map[string]int{"CustomResourceDefinition": 0, "Service": 0, "ClusterRole": 0}},
		"the scheduler":     {alone("scheduler", ""), []string{"scheduler"}, map[string]int{"CustomResourceDefinition": 0, "ClusterRole": 1, "ClusterRoleBinding": 3, "RoleBinding": 3, "ConfigMap": 2}},
		"no usage of pods":  {alone("scheduler", ", podUsage: null"), []string{"scheduler"}, map[string]int{"ClusterRole": 0, "ClusterRoleBinding": 2, "RoleBinding": 2, "ConfigMap": 1}},
		"usage for packed":  {alone("scheduler", ", profiles: [{schedulerName: a, use: packed}]"), []string{"scheduler"}, map[string]int{"ClusterRole": 1, "ClusterRoleBinding": 3, "RoleBinding": 3, "ConfigMap": 2}},
		"another profile":   {alone("scheduler", ", profiles: [{schedulerName: a, use: limits}]"), []string{"scheduler"}, map[string]int{"ClusterRole": 0, "ClusterRoleBinding": 2, "RoleBinding": 2, "ConfigMap": 1}},
		"from Prometheus":   {alone("scheduler", ", podUsage: {type: Prometheus, address: 'http://p:9090'}"), []string{"scheduler"}, map[string]int{"ClusterRole": 0, "ClusterRoleBinding": 2, "RoleBinding": 2, "ConfigMap": 1}},
		"the controller":    {alone("controller", ""), []string{"controller"}, map[string]int{"CustomResourceDefinition": 1, "PriorityClass": 0, "Role": 1, "ConfigMap": 0}},
		"placeholder pods":  {alone("controller", ", placeholderNamespace: p"), []string{"controller"}, map[string]int{"PriorityClass": 1, "Role": 2, "RoleBinding": 2}},
		"placements only":   {alone("controller", ", controllers: [placement]"), []string{"controller"}, map[string]int{"CustomResourceDefinition": 1, "PriorityClass": 0, "ConfigMap": 0}},
		"the load-watcher":  {alone("loadWatcher", ""), []string{"load-watcher"}, map[string]int{"Lease": 0, "Role": 0, "ClusterRole": 1}},
		"the agent":         {alone("agent", ", clusterName: c, hub: {kubeconfig: k}"), []string{"agent"}, map[string]int{"CustomResourceDefinition": 1, "Secret": 1, "ClusterRole": 1}},
		"the shadow":        {alone("shadow", ""), []string{"shadow"}, map[string]int{"ClusterRole": 1, "Role": 0, "PersistentVolumeClaim": 1, "PodDisruptionBudget": 0, "Lease": 0}},
		"an own volume":     {alone("shadow", ", persistence: {existingClaim: c}"), []string{"shadow"}, map[string]int{"PersistentVolumeClaim": 0}},
		"existing accounts": {"scheduler: {serviceAccount: {create: false, name: mine}}", []string{"controller", "scheduler"}, map[string]int{"ServiceAccount": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := tool.Run(t.Context(), "lint", "--strict", tool.Chart, valuesFile(t, tc.values)); err != nil {
				t.Error(err)
			}
			var deployments []string
			kinds := map[string]int{}
			for _, object := range render(t, tc.values) {
				kinds[object.GetKind()]++
				if object.GetKind() == "Deployment" {
					deployments = append(deployments, strings.TrimPrefix(object.GetName(), "plimsoll-"))
				}
			}
			slices.Sort(deployments)
			if !slices.Equal(deployments, tc.deployments) {
				t.Errorf("found %v, want %v", deployments, tc.deployments)
			}
			for kind, want := range tc.kinds {
				if kinds[kind] != want {
					t.Errorf("%s: found %d, want %d", kind, kinds[kind], want)
				}
			}
		})
	}
}

// TestNothing expects no object and no notes if everything is disabled.
func TestNothing(t *testing.T) {
	t.Parallel()
	if objects := render(t, none); len(objects) != 0 {
		t.Errorf("found %v", objects)
	}
	if got := notes(t, none); got != "" {
		t.Errorf("notes %q", got)
	}
}

// TestDefaultProfile expects the profile that docs/results.md recommends, and that the way back is kube-scheduler's profile alone.
func TestDefaultProfile(t *testing.T) {
	t.Parallel()
	configuration := find[v1.ConfigMap](t, render(t, ""), "ConfigMap", "plimsoll-scheduler").Data["scheduler.yaml"]
	for text, want := range map[string]bool{
		"name: PredictedUtilization": true, "type: KubernetesMetricsServer": true, "watcherAddress": false, "name: NodeResourcesLimits": false,
	} {
		if strings.Contains(configuration, text) != want {
			t.Errorf("%s: want %t\n%s", text, want, configuration)
		}
	}
	const back = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n- schedulerName: plimsoll-scheduler"
	objects := render(t, "scheduler: {profiles: [{schedulerName: plimsoll-scheduler, use: default}]}")
	if got := find[v1.ConfigMap](t, objects, "ConfigMap", "plimsoll-scheduler").Data["scheduler.yaml"]; strings.TrimSpace(got) != back {
		t.Error(got)
	}
}

// TestKubeVersion expects that the chart requires the versions of Kubernetes that the README states.
func TestKubeVersion(t *testing.T) {
	t.Parallel()
	for version, wants := range map[string][2]string{
		"v1.28.15":      {"chart requires kubeVersion: >=1.29.0-0", "chart requires kubeVersion: >=1.29.0-0"},
		"v1.29.0":       {"scheduler.enabled: invalid value true: must be false with Kubernetes v1.29.0", ""},
		"v1.33.9-eks-1": {"must be false with Kubernetes v1.33.9-eks-1: plimsoll-scheduler supports " + emulation.Supported(), ""},
		"v1.34.0-gke.1": {"", ""},
		"v1.38.1+k3s1":  {"", ""},
		"v1.39.0-rc.1":  {"must be false with Kubernetes v1.39.0-rc.1: plimsoll-scheduler supports " + emulation.Supported(), ""},
	} {
		for i, values := range []string{"", "scheduler: {enabled: false}"} {
			_, err := tool.Template(t.Context(), valuesFile(t, values), "--kube-version="+version)
			if want := wants[i]; (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%s, values %q: error %v, want %q", version, values, err, want)
			}
		}
	}
}

// TestBadValues expects that an invalid value is rejected with an error that names it.
func TestBadValues(t *testing.T) {
	t.Parallel()
	for values, want := range map[string]string{
		"scheduler: {replica: 2}":                                "additional properties 'replica' not allowed",
		"scheduler: {replicas: two}":                             "at '/scheduler/replicas': got string, want integer",
		"scheduler: {profiles: []}":                              "at '/scheduler/profiles'",
		"scheduler: {profiles: [{schedulerName: a, use: fast}]}": "value must be one of 'allocatable-least', 'batch', 'default', 'limits', 'low-risk', 'most-allocated', 'packed', 'predicted'",
		"scheduler: {profiles: [{use: limits}]}":                 "missing property 'schedulerName'",
		"scheduler: {profiles: [{schedulerName: a, use: limits}, {schedulerName: a, use: batch}]}": `scheduler.profiles: ` +
			`duplicate schedulerName "a"`,
		"scheduler: {config: 'kind: Pod'}":                             `scheduler.config: invalid kind "Pod": must be the text of a KubeSchedulerConfiguration`,
		"scheduler: {metricProvider: {address: 'http://p'}}":           "missing property 'type'",
		"scheduler: {podUsage: {type: SignalFx}}":                      "at '/scheduler/podUsage/type'",
		"scheduler: {extraArgs: [v=2]}":                                "at '/scheduler/extraArgs/0'",
		"controller: {controllers: [slak]}":                            "value must be one of 'slack', 'placement'",
		"controller: {extraCapacityMinRate: 10}":                       "controller.extraCapacityMinRate: invalid value 10: must be a percentage such as 10%",
		"controller: {placeholderNamespace: plimsoll-system}":          `controller.placeholderNamespace: invalid value "plimsoll-system": must be a namespace`,
		"controller: {placeholderNamespace: A_b}":                      "at '/controller/placeholderNamespace'",
		"controller: {adopt: some}":                                    "value must be one of 'annotated', 'all'",
		"scheduler: {metricProvider: {type: Prometheus}}":              "at '/scheduler/metricProvider': missing property 'address'",
		"scheduler: {metricProvider: {type: Service, address: w}}":     "at '/scheduler/metricProvider/address'",
		"agent: {load: {provider: SignalFx}}":                          "at '/agent/load/address'",
		"loadWatcher: {provider: Prometheus}":                          "at '/loadWatcher/address'",
		"loadWatcher: {address: 'http://p'}":                           "at '/loadWatcher/address'",
		"loadWatcher: {maxAge: 5}":                                     "at '/loadWatcher/maxAge'",
		"shadow: {candidates: []}":                                     "at '/shadow/candidates'",
		"shadow: {replicas: 2}":                                        "at '/shadow/replicas'",
		"shadow: {prometheus: 'p:9090'}":                               "at '/shadow/prometheus'",
		"shadow: {persistence: {size: large}}":                         "at '/shadow/persistence/size'",
		"loadWatcher: {image: {digest: latest}}":                       "at '/loadWatcher/image/digest'",
		"image: {registry: \"https://registry.example.com/plimsoll\"}": "at '/image/registry'",
		"scheduler: {resources: {limits: {memory: 4GB}}}":              "at '/scheduler/resources/limits/memory'",
		"agent: {enabled: true, hub: {secretName: s}}":                 "agent.clusterName: must be the name of this cluster on the hub",
		"agent: {quotaNamespaces: [A_b]}":                              "at '/agent/quotaNamespaces/0'",
		"agent: {enabled: true, clusterName: c}":                       "agent.hub: must have either secretName or kubeconfig",
		"networkPolicy: {apiServerPorts: [99999]}":                     "at '/networkPolicy/apiServerPorts/0'",
		"crds: {install: 'yes'}":                                       "at '/crds/install'",
	} {
		t.Run(values, func(t *testing.T) {
			t.Parallel()
			if _, err := tool.Template(t.Context(), valuesFile(t, values)); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("found %v, want %s", err, want)
			}
		})
	}
}

// lowRisk are values with the profile low-risk.
const lowRisk = "scheduler: {profiles: [{schedulerName: p, use: low-risk}]}\n"

// TestSchedulerConfiguration expects that the rendered configuration is valid and names the right load
// source.
func TestSchedulerConfiguration(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ values, want string }{
		"the load-watcher":          {"loadWatcher: {enabled: true}\n" + lowRisk, "watcherAddress http://plimsoll-load-watcher.plimsoll-system:2020"},
		"no load source":            {lowRisk, "watcherAddress  metricProvider  "},
		"another source":            {"scheduler: {profiles: [{schedulerName: p, use: low-risk}], metricProvider: {type: Prometheus, address: 'http://p:9090', tokenFile: /token}}", "watcherAddress  metricProvider Prometheus http://p:9090"},
		"instead of a load-watcher": {"loadWatcher: {enabled: true}\nscheduler: {profiles: [{schedulerName: p, use: low-risk}], metricProvider: {type: KubernetesMetricsServer}}", "watcherAddress  metricProvider KubernetesMetricsServer "},
		"another name":              {"fullnameOverride: deep\nloadWatcher: {enabled: true}\n" + lowRisk, "watcherAddress http://deep-load-watcher.plimsoll-system:2020"},
		"scheduler.config":          {"scheduler:\n  config: |\n    apiVersion: kubescheduler.config.k8s.io/v1\n    kind: KubeSchedulerConfiguration\n    profiles: [{schedulerName: own, pluginConfig: [{name: LowRiskOverCommitment, args: {watcherAddress: 'http://w:1'}}]}]\n", "watcherAddress http://w:1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, object := range render(t, tc.values) {
				if object.GetKind() != "ConfigMap" {
					continue
				}
				text, found, _ := unstructured.NestedString(object.Object, "data", "scheduler.yaml")
				if !found { // the history
					continue
				}
				file := filepath.Join(t.TempDir(), "scheduler.yaml")
				must.Succeed(t, os.WriteFile(file, []byte(text), 0o600))
				read, err := config.Load(file)
				must.Succeed(t, err)
				for _, plugin := range read.Profiles[0].PluginConfig {
					if args, ok := plugin.Args.(*config.LowRiskOverCommitmentArgs); ok {
						got := fmt.Sprintf("watcherAddress %s metricProvider %s %s", args.WatcherAddress, args.MetricProvider.Type,
							args.MetricProvider.Address)
						if !strings.Contains(got, tc.want) {
							t.Errorf("found %s, want %s", got, tc.want)
						}
						return
					}
				}
			}
			t.Error("LowRiskOverCommitment is not configured")
		})
	}
}

// find returns the object of a kind and name, converted to a type.
func find[T any](t *testing.T, objects []*unstructured.Unstructured, kind, name string) T {
	t.Helper()
	var found T
	for _, object := range objects {
		if object.GetKind() == kind && object.GetName() == name {
			must.Succeed(t, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &found))
			return found
		}
	}
	t.Fatalf("%s %s is missing", kind, name)
	return found
}

// TestHistoryRights expects that the scheduler may get and update the ConfigMap of its history, which Helm keeps, and no other ConfigMap.
func TestHistoryRights(t *testing.T) {
	t.Parallel()
	const name = "plimsoll-scheduler-history"
	found := map[string]bool{}
	for _, object := range render(t, alone("scheduler", "")) {
		found[object.GetKind()+" "+object.GetName()+object.GetAnnotations()["helm.sh/resource-policy"]] = true
		if object.GetKind() != "Role" && object.GetKind() != "ClusterRole" {
			continue
		}
		var role rbacv1.Role
		must.Succeed(t, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &role))
		for _, rule := range role.Rules {
			if !slices.Contains(rule.Resources, "configmaps") {
				continue
			}
			want := rbacv1.PolicyRule{
				APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{name}, Verbs: []string{"get", "update"},
			}
			if diff := cmp.Diff(want, rule); diff != "" {
				t.Errorf("%s %s: %s", object.GetKind(), object.GetName(), diff)
			}
			found["rule"] = true
		}
	}
	for _, want := range []string{"rule", "ConfigMap " + name + "keep", "RoleBinding " + name} {
		if !found[want] {
			t.Errorf("missing: %s", want)
		}
	}
}

// TestLoadSourceEgress expects that the scheduler may connect to the load source in each case in which its configuration may
// name one.
func TestLoadSourceEgress(t *testing.T) {
	t.Parallel()
	const policy = "networkPolicy: {enabled: true, loadSource: [{ports: [{port: 9090}]}]}\n"
	prometheus := "{type: Prometheus, address: 'http://p:9090'}"
	for values, want := range map[string]bool{
		"scheduler: {podUsage: null}":                                             false,
		"scheduler: {podUsage: null, metricProvider: " + prometheus + "}":         true,
		"scheduler: {podUsage: " + prometheus + "}":                               true,
		"scheduler: {podUsage: null, config: 'kind: KubeSchedulerConfiguration'}": true,
	} {
		found := find[networkingv1.NetworkPolicy](t, render(t, policy+values), "NetworkPolicy", "plimsoll-scheduler")
		permitted := slices.ContainsFunc(found.Spec.Egress, func(rule networkingv1.NetworkPolicyEgressRule) bool {
			return slices.ContainsFunc(rule.Ports, func(port networkingv1.NetworkPolicyPort) bool { return port.Port.IntValue() == 9090 })
		})
		if permitted != want {
			t.Errorf("%s: port of the load source permitted: %t, want %t", values, permitted, want)
		}
	}
}

// TestGarbageCollector expects that the collector of Go knows the memory limit, that the scheduler collects less often below it, and that
// extraEnv comes first.
func TestGarbageCollector(t *testing.T) {
	t.Parallel()
	for values, want := range map[string]string{
		"scheduler: {}": "GOMEMLIMIT=3686MiB GOGC=400", // 0.9 x 4 GiB
		"scheduler: {resources: {limits: {memory: 500Mi}}}":                              "GOMEMLIMIT=450MiB GOGC=400",
		"scheduler: {resources: {limits: {memory: 1Ti}}}":                                "GOMEMLIMIT=943718MiB GOGC=400",
		"scheduler: {resources: {limits: {memory: 512M}}}":                               "GOMEMLIMIT=439MiB GOGC=400", // 0.9 x 488.3
		"scheduler: {resources: {limits: {memory: 2G}}}":                                 "GOMEMLIMIT=1717MiB GOGC=400",
		"scheduler: {resources: {limits: null}}":                                         "",
		"scheduler: {extraEnv: [{name: GOGC, value: '100'}]}":                            "GOMEMLIMIT=3686MiB GOGC=100",
		"scheduler: {extraEnv: [{name: GOMEMLIMIT, value: 'off'}, {name: A, value: b}]}": "GOGC=400 GOMEMLIMIT=off A=b",
	} {
		var got []string
		for _, env := range find[appsv1.Deployment](t, render(t, values), "Deployment", "plimsoll-scheduler").Spec.Template.Spec.Containers[0].Env {
			got = append(got, env.Name+"="+env.Value)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %s, want %s", values, got, want)
		}
	}
	for _, env := range find[appsv1.Deployment](t, render(t, ""), "Deployment", "plimsoll-controller").Spec.Template.Spec.Containers[0].Env {
		if env.Name == "GOGC" {
			t.Error("the controller has GOGC")
		}
	}
}

// TestWatcherProbes expects that the probes of the load-watcher use TLS if it serves TLS.
func TestWatcherProbes(t *testing.T) {
	t.Parallel()
	for more, want := range map[string]v1.URIScheme{
		"": v1.URISchemeHTTP, ", extraArgs: [--poll-interval=1m]": v1.URISchemeHTTP,
		", extraArgs: [--tls-private-key-file=/k, --tls-cert-file=/c]": v1.URISchemeHTTPS,
	} {
		found := find[appsv1.Deployment](t, render(t, alone("loadWatcher", more)), "Deployment", "plimsoll-load-watcher")
		container := found.Spec.Template.Spec.Containers[0]
		if live, ready := container.LivenessProbe.HTTPGet.Scheme, container.ReadinessProbe.HTTPGet.Scheme; live != want || ready != want {
			t.Errorf("%s: liveness %s, readiness %s, want %s", more, live, ready, want)
		}
	}
}

// TestShadow expects that the shadow runs the command of the image with a volume that one pod writes at a time, and reads only.
func TestShadow(t *testing.T) {
	t.Parallel()
	for values, volume := range map[string]string{
		alone("shadow", ", candidates: [predicted, low-risk], profile: default"): "plimsoll-shadow",
		alone("shadow", ", persistence: {enabled: false}"):                       "",
		alone("shadow", ", persistence: {existingClaim: mine}"):                  "mine",
	} {
		objects := render(t, values)
		deployment := find[appsv1.Deployment](t, objects, "Deployment", "plimsoll-shadow")
		pod := deployment.Spec.Template.Spec
		args := strings.Join(pod.Containers[0].Args, " ")
		if deployment.Spec.Strategy.Type != appsv1.RecreateDeploymentStrategyType ||
			!strings.HasPrefix(args, "shadow --folder=/var/lib/shadow ") {
			t.Errorf("strategy %s, arguments %s", deployment.Spec.Strategy.Type, args)
		}
		if strings.Contains(values, "low-risk") &&
			!strings.HasSuffix(args, "--candidate=predicted --candidate=low-risk --profile=default") {
			t.Errorf("arguments %s", args)
		}
		claim := ""
		if source := pod.Volumes[0].PersistentVolumeClaim; source != nil {
			claim = source.ClaimName
		}
		if volume == "plimsoll-shadow" && // rollback and uninstall keep the recordings
			find[v1.PersistentVolumeClaim](t, objects, "PersistentVolumeClaim", volume).Annotations["helm.sh/resource-policy"] != "keep" {
			t.Error("the claim is not kept")
		}
		if claim != volume || (volume == "") != (pod.Volumes[0].EmptyDir != nil) {
			t.Errorf("%s: volume %+v", values, pod.Volumes[0])
		}
		role := find[rbacv1.ClusterRole](t, objects, "ClusterRole", "plimsoll-shadow")
		for _, rule := range role.Rules {
			if slices.ContainsFunc(rule.Verbs, func(verb string) bool { return verb != "get" && verb != "list" && verb != "watch" }) {
				t.Errorf("rule %v", rule)
			}
		}
	}
}

// TestPriorityClass expects that the priority class equals the priority class that the controller would create.
func TestPriorityClass(t *testing.T) {
	t.Parallel()
	want := *slack.PriorityClass()
	got := find[schedulingv1.PriorityClass](t, render(t, "controller: {placeholderNamespace: placeholders}"), want.Kind, want.Name)
	got.Labels = nil
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestAgentRights expects that the permissions of the agent equal the rules in
// examples/placement/agent-member-rbac.yaml, and the flag for the quotas that it may list.
func TestAgentRights(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile(filepath.Join(project, "examples", "placement", "agent-member-rbac.yaml"))
	must.Succeed(t, err)
	example, err := program.ObjectsOf(string(raw))
	must.Succeed(t, err)
	objects := render(t, all)
	const name = "plimsoll-agent"
	if args := find[appsv1.Deployment](t, objects, "Deployment", name).Spec.Template.Spec.Containers[0].Args; !slices.Contains(
		args, "--quota-namespaces=shop,lab",
	) {
		t.Errorf("arguments %q", args)
	}
	if diff := cmp.Diff(find[rbacv1.ClusterRole](t, example, "ClusterRole", name).Rules,
		find[rbacv1.ClusterRole](t, objects, "ClusterRole", name).Rules); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(find[rbacv1.Role](t, example, "Role", name).Rules, find[rbacv1.Role](t, objects, "Role", name).Rules); diff != "" {
		t.Error(diff)
	}
}

// TestMonitoring expects an object for each dashboard and alert file with the unchanged content, which
// may contain braces.
func TestMonitoring(t *testing.T) {
	t.Parallel()
	other := *tool
	other.Chart = filepath.Join(t.TempDir(), "plimsoll")
	must.Succeed(t, os.CopyFS(other.Chart, os.DirFS(tool.Chart)))
	const dashboard, alerts = `{"title": "{{instance}} of $node"}`, "groups:\n- name: try\n  rules: [{alert: Try, expr: 'a{b=\"c\"} > 0', annotations: {summary: '{{ $labels.b }}'}}]\n"
	for file, content := range map[string]string{"dashboards/try.json": dashboard, "alerts/try.yaml": alerts} {
		path := filepath.Join(other.Chart, "files", file)
		must.Succeed(t, os.MkdirAll(filepath.Dir(path), 0o700))
		must.Succeed(t, os.WriteFile(path, []byte(content), 0o600))
	}
	objects, err := other.Template(t.Context(),
		valuesFile(t, "dashboards: {enabled: true}\nalerts: {enabled: true, labels: {prometheus: main}}\n"))
	must.Succeed(t, err)
	if text := find[v1.ConfigMap](t, objects, "ConfigMap", "plimsoll-dashboard-try").Data["try.json"]; strings.TrimSpace(
		text,
	) != dashboard {
		t.Errorf("dashboard: %s", text)
	}
	for _, object := range objects {
		if object.GetKind() != "PrometheusRule" || object.GetName() != "plimsoll-try" {
			continue
		}
		groups, _, _ := unstructured.NestedSlice(object.Object, "spec", "groups")
		if len(groups) != 1 || !strings.Contains(fmt.Sprint(groups), "{{ $labels.b }}") || object.GetLabels()["prometheus"] != "main" {
			t.Errorf("rules %v with labels %v", groups, object.GetLabels())
		}
		return
	}
	t.Error("no PrometheusRule was rendered")
}
