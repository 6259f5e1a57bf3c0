package config

import (
	"math"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/plimsoll-k8s/plimsoll/api/metricprovider"
)

const (
	allowedNames   = "must be cpu, memory, ephemeral-storage, hugepages-SIZE or an extended resource such as nvidia.com/gpu"
	allowedWeights = "must be in [1, 2147483647]"
)

// checkArgs sets the defaults and compares the error of the validation; "" is none.
func checkArgs[T any, P pluginArgs[T]](t *testing.T, args T, want string) {
	t.Helper()
	P(&args).Default()
	err := P(&args).Validate()
	if got := errorText(err); got != want {
		t.Errorf("error:\n%s\nwant:\n%s", got, want)
	}
}

func TestValidateNodeResourcesAllocatableArgs(t *testing.T) {
	weighted := func(name string, weight int64) NodeResourcesAllocatableArgs {
		return NodeResourcesAllocatableArgs{Resources: []ResourceWeight{{name, &weight}}}
	}
	for name, tc := range map[string]struct {
		args NodeResourcesAllocatableArgs
		want string
	}{
		"no fields": {NodeResourcesAllocatableArgs{}, ""},
		"most":      {NodeResourcesAllocatableArgs{Mode: Most}, ""},
		"another mode": {
			NodeResourcesAllocatableArgs{Mode: "Leest"}, `mode: Unsupported value: "Leest": supported values: "Least", "Most"`,
		},
		"smallest weight":     {weighted("cpu", 1), ""},
		"largest weight":      {weighted("cpu", math.MaxInt32), ""},
		"weight 0":            {weighted("cpu", 0), "resources[0].weight: Invalid value: 0: " + allowedWeights},
		"weight too large":    {weighted("cpu", math.MaxInt32+1), "resources[0].weight: Invalid value: 2147483648: " + allowedWeights},
		"huge pages":          {weighted("hugepages-2Mi", 1), ""},
		"a device":            {weighted("nvidia.com/gpu", 1), ""},
		"no name":             {weighted("", 1), `resources[0].name: Invalid value: "": ` + allowedNames},
		"misspelled name":     {weighted("memroy", 1), `resources[0].name: Invalid value: "memroy": ` + allowedNames},
		"pods":                {weighted("pods", 1), `resources[0].name: Invalid value: "pods": ` + allowedNames},
		"huge pages, no size": {weighted("hugepages-", 1), `resources[0].name: Invalid value: "hugepages-": ` + allowedNames},
		"kubernetes.io":       {weighted("kubernetes.io/gpu", 1), `resources[0].name: Invalid value: "kubernetes.io/gpu": ` + allowedNames},
		"within kubernetes.io": {
			weighted("requests.kubernetes.io/gpu", 1),
			`resources[0].name: Invalid value: "requests.kubernetes.io/gpu": ` + allowedNames,
		},
		"invalid character": {weighted("nvidia.com/gpu!", 1), `resources[0].name: Invalid value: "nvidia.com/gpu!": ` + allowedNames},
		"a resource twice": {
			NodeResourcesAllocatableArgs{Resources: []ResourceWeight{{Name: "cpu"}, {Name: "memory"}, {Name: "cpu"}}},
			`resources[2].name: Duplicate value: "cpu"`,
		},
		"several errors": {
			NodeResourcesAllocatableArgs{Mode: "Both", Resources: []ResourceWeight{{Name: "cpu"}, {Name: "disk", Weight: new(int64(0))}}},
			`[resources[1].name: Invalid value: "disk": ` + allowedNames + `, resources[1].weight: Invalid value: 0: ` + allowedWeights +
				`, mode: Unsupported value: "Both": supported values: "Least", "Most"]`,
		},
	} {
		t.Run(name, func(t *testing.T) { checkArgs(t, tc.args, tc.want) })
	}
}

func TestValidateNodeResourcesLimitsArgs(t *testing.T) {
	byDefault := func(name, quantity string) NodeResourcesLimitsArgs {
		return NodeResourcesLimitsArgs{DefaultLimits: map[string]resource.Quantity{name: resource.MustParse(quantity)}}
	}
	for name, tc := range map[string]struct {
		args NodeResourcesLimitsArgs
		want string
	}{
		"no fields": {NodeResourcesLimitsArgs{}, ""},
		"cpu":       {byDefault("cpu", "500m"), ""},
		"a device": {
			byDefault("nvidia.com/gpu", "1"),
			`defaultLimits: Unsupported value: "nvidia.com/gpu": supported values: "cpu", "memory", "ephemeral-storage"`,
		},
		"zero":     {byDefault("memory", "0"), `defaultLimits[memory]: Invalid value: "0": must be greater than 0`},
		"negative": {byDefault("memory", "-1Gi"), `defaultLimits[memory]: Invalid value: "-1Gi": must be greater than 0`},
		"a resource twice": {
			NodeResourcesLimitsArgs{Resources: []ResourceWeight{{Name: "cpu"}, {Name: "cpu"}}},
			`resources[1].name: Duplicate value: "cpu"`,
		},
	} {
		t.Run(name, func(t *testing.T) { checkArgs(t, tc.args, tc.want) })
	}
}

func TestValidateLowRiskOverCommitmentArgs(t *testing.T) {
	type args = LowRiskOverCommitmentArgs
	duration := func(d time.Duration) *metav1.Duration { return &metav1.Duration{Duration: d} }
	weights := func(name string, weight float64) args {
		return args{RiskLimitWeights: map[string]float64{name: weight}}
	}
	const (
		wantURL  = ": must be a URL like http://load-watcher.kube-system:2020"
		wantType = `: supported values: "Prometheus", "KubernetesMetricsServer", "SignalFx", "Service", "File"`
	)
	file := metricprovider.Config{Type: "File", Address: "/var/load.json"}
	for name, tc := range map[string]struct {
		args args
		want string
	}{
		"no fields":         {args{}, ""},
		"window 1":          {args{SmoothingWindowSize: new(int64(1))}, ""},
		"window 0":          {args{SmoothingWindowSize: new(int64(0))}, "smoothingWindowSize: Invalid value: 0: must be at least 1"},
		"limit weight 1":    {args{RiskLimitWeight: new(1.0)}, ""},
		"a negative weight": {args{RiskLimitWeight: new(-0.1)}, "riskLimitWeight: Invalid value: -0.1: must be in [0, 1]"},
		"a weight over one": {args{RiskLimitWeight: new(1.1)}, "riskLimitWeight: Invalid value: 1.1: must be in [0, 1]"},
		"weight NaN":        {args{RiskLimitWeight: new(math.NaN())}, "riskLimitWeight: Invalid value: NaN: must be in [0, 1]"},
		"a weight for cpu":  {weights("cpu", 0.3), ""},
		"weight for another resource": {
			weights("nvidia.com/gpu", 0.3),
			`riskLimitWeights: Unsupported value: "nvidia.com/gpu": supported values: "cpu", "memory"`,
		},
		"weight for memory over one": {weights("memory", 2), "riskLimitWeights[memory]: Invalid value: 2: must be in [0, 1]"},
		"poll interval too short": {
			args{PollInterval: duration(99 * time.Millisecond)}, `pollInterval: Invalid value: "99ms": must be at least 100ms`,
		},
		"shortest poll interval": {args{PollInterval: duration(100 * time.Millisecond)}, ""},
		"maximum age too short": {
			args{MaxLoadAge: duration(999 * time.Millisecond)}, `maxLoadAge: Invalid value: "999ms": must be at least 1s`,
		},
		"maximum age below poll interval": {
			args{MaxLoadAge: duration(time.Minute), PollInterval: duration(2 * time.Minute)},
			`maxLoadAge: Invalid value: "1m0s": must be at least pollInterval (2m0s)`,
		},
		"a service":            {args{WatcherAddress: "https://load-watcher:2020/"}, ""},
		"a service, no scheme": {args{WatcherAddress: "load-watcher:2020"}, `watcherAddress: Invalid value: "load-watcher:2020"` + wantURL},
		"a file":               {args{MetricProvider: file}, ""},
		"a file, relative": {
			args{MetricProvider: metricprovider.Config{Type: "File", Address: "load.json"}},
			`metricProvider.address: Invalid value: "load.json": must be the absolute path of a file`,
		},
		"Prometheus": {args{MetricProvider: metricprovider.Config{Type: "Prometheus", Address: "http://prometheus:9090"}}, ""},
		"Prometheus, no scheme": {
			args{MetricProvider: metricprovider.Config{Type: "Prometheus", Address: "p:9090"}},
			`metricProvider.address: Invalid value: "p:9090": must be a URL like http://prometheus.monitoring:9090`,
		},
		"SignalFx, no address": {
			args{MetricProvider: metricprovider.Config{Type: "SignalFx"}},
			`metricProvider.address: Invalid value: "": must be a URL like https://api.us1.signalfx.com`,
		},
		"provider of type Service": {
			args{MetricProvider: metricprovider.Config{Type: "Service", Address: "load-watcher"}},
			`metricProvider.address: Invalid value: "load-watcher"` + wantURL,
		},
		"metrics-server": {args{MetricProvider: metricprovider.Config{Type: "KubernetesMetricsServer"}}, ""},
		"a provider without a type": {
			args{MetricProvider: metricprovider.Config{InsecureSkipVerify: true}},
			`metricProvider.type: Unsupported value: ""` + wantType,
		},
		"a service and a provider": {
			args{WatcherAddress: "http://load-watcher:2020", MetricProvider: file},
			"metricProvider: Forbidden: must not be set together with watcherAddress",
		},
		"two tokens": {
			args{MetricProvider: metricprovider.Config{Type: "File", Address: "/var/load.json", Token: "a", TokenFile: "/var/token"}},
			"metricProvider.token: Forbidden: must not be set together with tokenFile",
		},
		"several errors": {
			args{SmoothingWindowSize: new(int64(0)), RiskLimitWeights: map[string]float64{"memory": -1, "disk": 7}},
			`[smoothingWindowSize: Invalid value: 0: must be at least 1, riskLimitWeights: Unsupported value: "disk": supported ` +
				`values: "cpu", "memory", ` +
				`riskLimitWeights[disk]: Invalid value: 7: must be in [0, 1], riskLimitWeights[memory]: Invalid value: ` +
				`-1: must be in [0, 1]]`,
		},
	} {
		t.Run(name, func(t *testing.T) { checkArgs(t, tc.args, tc.want) })
	}
}

func TestValidatePodUsage(t *testing.T) {
	const supported = `: supported values: "Prometheus", "KubernetesMetricsServer"`
	for name, tc := range map[string]struct {
		config metricprovider.Config
		want   string
	}{
		"none":           {metricprovider.Config{}, ""},
		"metrics-server": {metricprovider.Config{Type: "KubernetesMetricsServer"}, ""},
		"Prometheus, no address": {
			metricprovider.Config{Type: "Prometheus"},
			`podUsage.address: Invalid value: "": must be a URL like http://prometheus.monitoring:9090`,
		},
		"SignalFx": {metricprovider.Config{Type: "SignalFx"}, `podUsage.type: Unsupported value: "SignalFx"` + supported},
		"no type":  {metricprovider.Config{Token: "a"}, `podUsage.type: Unsupported value: ""` + supported},
	} {
		err := validateProvider(field.NewPath("podUsage"), tc.config, metricprovider.PodTypes).ToAggregate()
		if got := errorText(err); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}
