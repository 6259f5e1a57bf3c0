package config

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
	configv1 "k8s.io/kube-scheduler/config/v1"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"
	internalconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"

	"github.com/plimsoll-k8s/plimsoll/api/metricprovider"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// configFile writes a KubeSchedulerConfiguration and returns its path. head contains the fields before
// the profiles, plugins the rest of the only profile.
func configFile(t *testing.T, version, head, plugins string) string {
	t.Helper()
	text := "apiVersion: kubescheduler.config.k8s.io/" + version + "\nkind: KubeSchedulerConfiguration\n" + head
	if plugins != "" {
		text += "profiles:\n- schedulerName: test\n" + plugins
	}
	return writeConfig(t, text)
}

func writeConfig(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	must.Succeed(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// loadBoth reads a file with Load and with kube-scheduler, and compares the results.
func loadBoth(t *testing.T, path string) *internalconfig.KubeSchedulerConfiguration {
	t.Helper()
	cfg, err := Load(path)
	must.Succeed(t, err)
	theirs, err := options.LoadConfigFromFile(klog.Background(), path)
	if err != nil {
		t.Fatalf("kube-scheduler cannot read it: %v", err)
	}
	if diff := cmp.Diff(theirs, cfg); diff != "" {
		t.Errorf("kube-scheduler reads a different configuration: %s", diff)
	}
	return cfg
}

// argsOf returns the arguments of a plugin in the only profile.
func argsOf(t *testing.T, cfg *internalconfig.KubeSchedulerConfiguration, plugin string) runtime.Object {
	t.Helper()
	if len(cfg.Profiles) != 1 {
		t.Fatalf("%d profiles, want 1", len(cfg.Profiles))
	}
	configs := cfg.Profiles[0].PluginConfig
	i := slices.IndexFunc(configs, func(c internalconfig.PluginConfig) bool { return c.Name == plugin })
	if i < 0 {
		t.Fatalf("no arguments of %s", plugin)
	}
	return configs[i].Args
}

// everyPlugin has the arguments of all plugins and of one in-tree plugin. %s is replaced by apiVersion
// and kind, which are optional.
const everyPlugin = `  pluginConfig:
  - name: NodeResourcesAllocatable
    args: {%s mode: Most, resources: [{name: cpu, weight: 2}, {name: nvidia.com/gpu}]}
  - name: NodeResourcesLimits
    args: {defaultLimits: {cpu: 500m}}
  - name: LowRiskOverCommitment
    args:
      riskLimitWeights: {cpu: 0}
      metricProvider: {type: File, address: /var/load.json}
      pollInterval: 1m
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated}}
`

func TestLoad(t *testing.T) {
	const addresses = "healthzBindAddress: 0.0.0.0:10251\nmetricsBindAddress: 0.0.0.0:10251\n"
	const versioned = "apiVersion: kubescheduler.config.k8s.io/%s, kind: NodeResourcesAllocatableArgs,"
	for name, tc := range map[string]struct{ version, head, args string }{
		"v1":                         {"v1", "", ""},
		"v1, versioned arguments":    {"v1", "", fmt.Sprintf(versioned, "v1")},
		"v1, v1beta3 arguments":      {"v1", "", fmt.Sprintf(versioned, "v1beta3")},
		"v1beta3":                    {"v1beta3", "", ""},
		"v1beta3, v1beta3 arguments": {"v1beta3", "", fmt.Sprintf(versioned, "v1beta3")},
		"v1beta2, with addresses":    {"v1beta2", addresses, ""},
		"v1beta2, v1beta3 arguments": {"v1beta2", addresses, fmt.Sprintf(versioned, "v1beta3")},
		"v1beta2, v1 arguments":      {"v1beta2", addresses, fmt.Sprintf(versioned, "v1")},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := loadBoth(t, configFile(t, tc.version, tc.head+"parallelism: 7\n", fmt.Sprintf(everyPlugin, tc.args)))
			if want := "kubescheduler.config.k8s.io/" + tc.version; cfg.APIVersion != want || cfg.Parallelism != 7 {
				t.Errorf("version %s, parallelism %d, want %s, 7", cfg.APIVersion, cfg.Parallelism, want)
			}
			want := map[string]runtime.Object{
				"NodeResourcesAllocatable": &NodeResourcesAllocatableArgs{
					Mode: Most, Resources: []ResourceWeight{{"cpu", new(int64(2))}, {"nvidia.com/gpu", new(int64(1))}},
				},
				"NodeResourcesLimits": &NodeResourcesLimitsArgs{
					Resources:     []ResourceWeight{{"cpu", new(int64(1))}, {"memory", new(int64(1))}},
					DefaultLimits: map[string]resource.Quantity{"cpu": resource.MustParse("500m")},
				},
				"LowRiskOverCommitment": &LowRiskOverCommitmentArgs{
					SmoothingWindowSize: new(int64(5)), RiskLimitWeight: new(0.5), RiskLimitWeights: map[string]float64{"cpu": 0},
					MetricProvider: metricprovider.Config{Type: "File", Address: "/var/load.json"},
					PollInterval:   seconds(60), MaxLoadAge: seconds(300), CountRecentPods: new(true),
				},
				"NodeResourcesFit": &internalconfig.NodeResourcesFitArgs{ScoringStrategy: &internalconfig.ScoringStrategy{
					Type: internalconfig.MostAllocated, Resources: []internalconfig.ResourceSpec{
						{Name: "cpu", Weight: 1}, {Name: "memory", Weight: 1},
					},
				}},
			}
			for plugin, args := range want {
				if diff := cmp.Diff(args, argsOf(t, cfg, plugin)); diff != "" {
					t.Errorf("%s: %s", plugin, diff)
				}
			}
		})
	}
}

// The arguments of the plugins of kubernetes-sigs/scheduler-plugins are accepted, with all of their fields. Arguments of
// plugins that Plimsoll does not have are left to the scheduler.
func TestLoadSchedulerPlugins(t *testing.T) {
	for _, version := range []string{"v1", "v1beta3", "v1beta2"} {
		t.Run(version, func(t *testing.T) {
			cfg := loadBoth(t, configFile(t, version, "leaderElection: {leaderElect: false}\n", `  plugins:
    score:
      disabled: [{name: NodeResourcesBalancedAllocation}]
      enabled: [{name: LowRiskOverCommitment}, {name: NodeResourcesAllocatable, weight: 3}]
  pluginConfig:
  - name: Coscheduling
    args: {permitWaitingTimeSeconds: 60}
  - name: NodeResourcesAllocatable
    args: {mode: Least, resources: [{name: cpu, weight: 1048576}, {name: memory, weight: 1}]}
  - name: LowRiskOverCommitment
    args:
      smoothingWindowSize: 15
      riskLimitWeights: {cpu: 1, memory: 0}
      metricProvider: {type: Prometheus, address: "https://prometheus:9090", token: secret, insecureSkipVerify: true}
`))
			want := &LowRiskOverCommitmentArgs{
				SmoothingWindowSize: new(int64(15)), RiskLimitWeight: new(0.5), RiskLimitWeights: map[string]float64{"cpu": 1, "memory": 0},
				MetricProvider: metricprovider.Config{
					Type: "Prometheus", Address: "https://prometheus:9090", Token: "secret", InsecureSkipVerify: true,
				},
				PollInterval: seconds(30), MaxLoadAge: seconds(300), CountRecentPods: new(true),
			}
			if diff := cmp.Diff(runtime.Object(want), argsOf(t, cfg, "LowRiskOverCommitment")); diff != "" {
				t.Error(diff)
			}
			if other, ok := argsOf(t, cfg, "Coscheduling").(*runtime.Unknown); !ok {
				t.Errorf("arguments of another plugin: %v", other)
			}
		})
	}
}

// An enabled plugin without arguments gets the defaults.
func TestLoadDefaults(t *testing.T) {
	for _, version := range []string{"v1", "v1beta3", "v1beta2"} {
		t.Run(version, func(t *testing.T) {
			path := configFile(t, version, "",
				"  plugins: {score: {enabled: [{name: NodeResourcesAllocatable}]}}\n  pluginConfig: [{name: LowRiskOverCommitment}]\n")
			cfg := loadBoth(t, path)
			allocatable, risk := &NodeResourcesAllocatableArgs{}, &LowRiskOverCommitmentArgs{}
			allocatable.Default()
			risk.Default()
			if diff := cmp.Diff(runtime.Object(allocatable), argsOf(t, cfg, "NodeResourcesAllocatable")); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(runtime.Object(risk), argsOf(t, cfg, "LowRiskOverCommitment")); diff != "" {
				t.Error(diff)
			}
			if cfg.Parallelism != 16 || !cfg.LeaderElection.LeaderElect || len(cfg.Profiles[0].Plugins.MultiPoint.Enabled) == 0 {
				t.Errorf("the defaults of the scheduler are missing: %+v", cfg)
			}
		})
	}
}

func TestLoadErrors(t *testing.T) {
	plugin := func(name, args string) string {
		return "  pluginConfig:\n  - name: " + name + "\n    args: {" + args + "}\n"
	}
	const where = "decoding .profiles[0].pluginConfig[0]: "
	for name, tc := range map[string]struct {
		version, head, plugins string
		// want is a part of the error.
		want string
	}{
		"an unknown field": {
			"v1", "", plugin("NodeResourcesAllocatable", "modus: Most"), where + `strict decoding error: decoding args for plugin ` +
				`NodeResourcesAllocatable: strict decoding error: unknown field "modus"`,
		},
		"an address that v1 does not have": {"v1", "healthzBindAddress: x\n", "", `unknown field "healthzBindAddress"`},
		"a field of another type": {
			"v1", "", plugin("LowRiskOverCommitment", "smoothingWindowSize: five"), where + "decoding args for plugin LowRiskOverCommitment: " +
				"json: cannot unmarshal string into Go struct field LowRiskOverCommitmentArgs.smoothingWindowSize of type int64",
		},
		"arguments of a plugin of kube-scheduler": {
			"v1", "", plugin("NodeResourcesFit", "scoringStrategy: {type: RequestedToCapacityRatio, requestedToCapacityRatio: {}}"),
			"profiles[0].pluginConfig[0].args of NodeResourcesFit: scoringStrategy.requestedToCapacityRatio.shape: " +
				"Required value: at least one point must be specified",
		},
		"arguments of another plugin": {
			"v1", "", plugin("NodeResourcesLimits", "apiVersion: kubescheduler.config.k8s.io/v1, kind: LowRiskOverCommitmentArgs"),
			where + "args for plugin NodeResourcesLimits were not of type NodeResourcesLimitsArgs.kubescheduler.config.k8s.io, got " +
				"LowRiskOverCommitmentArgs.kubescheduler.config.k8s.io",
		},
		"a plugin listed twice": {
			"v1", "", "  plugins: {score: {enabled: [{name: NodeResourcesLimits}, {name: NodeResourcesLimits}]}}\n",
			"profiles[0].plugins.score.enabled: found NodeResourcesLimits twice",
		},
		"a profile listed twice": {"v1", "", "- schedulerName: test\n", `profiles[1].schedulerName: found "test" twice`},
		"a target of another mode": {
			"v1", "", plugin("PredictedUtilization", "target: 0.7"),
			"profiles[0].pluginConfig[0].args of PredictedUtilization: target: Forbidden: must only be set with mode Pack",
		},
		"two documents": {
			"v1", "", "---\nkind: KubeSchedulerConfiguration\n", "found 2 documents: must be one KubeSchedulerConfiguration",
		},
		"invalid arguments, in v1beta2": {
			"v1beta2", "", "  pluginConfig: [{name: NodeResourcesLimits}, {name: NodeResourcesAllocatable, args: {mode: Leest}}]\n",
			`profiles[0].pluginConfig[1].args of NodeResourcesAllocatable: mode: Unsupported value: "Leest": supported ` +
				`values: "Least", "Most"`,
		},
		"invalid scheduler fields": {
			"v1", "parallelism: -1\npodInitialBackoffSeconds: 5\npodMaxBackoffSeconds: 1\n", "",
			"[parallelism: Invalid value: -1: should be an integer value greater than zero, podMaxBackoffSeconds: Invalid value: 1: " +
				"must be greater than or equal to PodInitialBackoffSeconds]",
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := configFile(t, tc.version, tc.head, tc.plugins)
			if _, err := Load(path); !strings.HasPrefix(errorText(err), path+": ") || !strings.Contains(errorText(err), tc.want) {
				t.Errorf("error:\n%v\nwant:\n%s: %s", err, path, tc.want)
			}
		})
	}
}

func TestLoadOtherFiles(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"arguments only": {
			"apiVersion: kubescheduler.config.k8s.io/v1\nkind: NodeResourcesLimitsArgs\n",
			`found kind "NodeResourcesLimitsArgs" of apiVersion "kubescheduler.config.k8s.io/v1": must be KubeSchedulerConfiguration of kube`,
		},
		"another kind": {"apiVersion: v1\nkind: Pod\n", `found kind "Pod" of apiVersion "v1": must be KubeSchedulerConfiguration of kube`},
		"no version":   {"kind: KubeSchedulerConfiguration\n", "kind, apiVersion: required: must be KubeSchedulerConfiguration and kubesch"},
		"empty":        {"", "found 0 documents: must be one KubeSchedulerConfiguration"},
		"too large":    {strings.Repeat("#", MaxFileBytes+1), "exceeds the limit of 4 MiB"},
		"not yaml":     {"a: b: c", "yaml: "},
	} {
		t.Run(name, func(t *testing.T) {
			path := writeConfig(t, tc.text)
			if _, err := Load(path); !strings.HasPrefix(errorText(err), path+": ") || !strings.Contains(errorText(err), tc.want) {
				t.Errorf("error:\n%v\nwant:\n%s: ...%s...", err, path, tc.want)
			}
		})
	}
	missing := filepath.Join(t.TempDir(), "config.yaml")
	if _, err := Load(missing); errorText(err) != "open "+missing+": no such file or directory" {
		t.Errorf("missing file: error %v", err)
	}
}

// A configuration of any version is written as v1 (--write-config-to) and can be read again.
func TestEncode(t *testing.T) {
	info, ok := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), runtime.ContentTypeYAML)
	if !ok {
		t.Fatal("no YAML")
	}
	encoder := scheme.Codecs.EncoderForVersion(info.Serializer, configv1.SchemeGroupVersion)
	for _, version := range []string{"v1", "v1beta3", "v1beta2"} {
		t.Run(version, func(t *testing.T) {
			cfg := loadBoth(t, configFile(t, version, "", fmt.Sprintf(everyPlugin, "")))
			text, err := runtime.Encode(encoder, cfg)
			must.Succeed(t, err)
			const want = `  - args:
      apiVersion: kubescheduler.config.k8s.io/v1
      kind: NodeResourcesAllocatableArgs
      mode: Most
      resources:
      - name: cpu
        weight: 2
      - name: nvidia.com/gpu
        weight: 1
    name: NodeResourcesAllocatable
`
			if !strings.HasPrefix(string(text), "apiVersion: kubescheduler.config.k8s.io/v1\n") || !strings.Contains(string(text), want) {
				t.Errorf("written:\n%s\nwant it to contain:\n%s", text, want)
			}
			again := loadBoth(t, writeConfig(t, string(text)))
			cfg.TypeMeta, again.TypeMeta = metav1.TypeMeta{}, metav1.TypeMeta{}
			if diff := cmp.Diff(cfg, again); diff != "" {
				t.Errorf("differs when read again: %s", diff)
			}
		})
	}
}

func TestWarnings(t *testing.T) {
	legacy := func(version string) string {
		return strings.Join(Warnings(&internalconfig.KubeSchedulerConfiguration{TypeMeta: metav1.TypeMeta{APIVersion: version}}, nil), "; ")
	}
	for _, version := range []string{"v1beta2", "v1beta3"} {
		version = "kubescheduler.config.k8s.io/" + version
		want := "scheduler configuration: apiVersion " + version + " is not served by Kubernetes and is read as " +
			"kubescheduler.config.k8s.io/v1: " +
			"change apiVersion, and remove healthzBindAddress and metricsBindAddress, which have no effect"
		if got := legacy(version); got != want {
			t.Errorf("%s: %q, want %q", version, got, want)
		}
	}
	for _, version := range []string{"kubescheduler.config.k8s.io/v1", "kubescheduler.config.k8s.io/v1beta1", "v1beta2", ""} {
		if got := legacy(version); got != "" {
			t.Errorf("%s: %q, want nothing", version, got)
		}
	}
	cfg := loadBoth(t, configFile(t, "v1", "", "  plugins:\n    multiPoint: {enabled: [{name: NodeResourcesLimits, weight: -5}]}\n"+
		"    score: {disabled: [{name: NodeResourceFit}, {name: NodeResourcesFit}, {name: NodeResourcesLimits}, {name: '*'}]}\n"+
		"  pluginConfig: [{name: LowRiskOverCommitment, args: {}}]\n"))
	want := []string{
		"profile test: the weight of NodeResourcesLimits is -5: must be at least 0, or the plugin prefers the worst node",
		"profiles[0].plugins.score.disabled[0]: plugin NodeResourceFit is not enabled: nothing is disabled; did you mean NodeResourcesFit?",
		"profiles[0].pluginConfig[0]: plugin LowRiskOverCommitment is not enabled: its arguments have no effect",
	}
	if diff := cmp.Diff(want, Warnings(cfg, nil)); diff != "" {
		t.Error(diff)
	}
}

// FuzzDecode decodes configurations of any text: an error names the file, and a configuration has a profile.
func FuzzDecode(f *testing.F) {
	const head = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
	for _, text := range []string{
		head, head + "profiles:\n- pluginConfig:\n  - name: PredictedUtilization\n    args: {historyWeight: 1e999, pollInterval: -1s}\n",
		head + "parallelism: -1", "kind: Secret", "{", head + "profiles: [&a [*a]]",
		strings.Replace(head, "v1\n", "v1beta3\n", 1) + "profiles:\n- pluginConfig: [{name: NodeResourcesAllocatable, args: {mode: Most}}]\n",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		cfg, err := Decode("FILE", raw)
		if err == nil && len(cfg.Profiles) == 0 || err != nil && !strings.HasPrefix(err.Error(), "FILE: ") {
			t.Errorf("%v, error %v", cfg, err)
		}
	})
}
