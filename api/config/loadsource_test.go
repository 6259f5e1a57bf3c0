package config

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/plimsoll-k8s/plimsoll/api/metricprovider"
)

func TestValidatePodUsage(t *testing.T) {
	const supported = `: supported values: "Prometheus", "KubernetesMetricsServer"`
	for name, tc := range map[string]struct {
		config metricprovider.Config
		want   string
	}{
		"none":           {metricprovider.Config{}, ""},
		"metrics-server": {metricprovider.Config{Type: "KubernetesMetricsServer"}, ""},
		"Prometheus":     {metricprovider.Config{Type: "Prometheus", Address: "http://p:9090"}, ""},
		"Prometheus, no address": {
			metricprovider.Config{Type: "Prometheus"},
			`podUsage.address: Invalid value: "": must be a URL like http://prometheus.monitoring:9090`,
		},
		"SignalFx": {metricprovider.Config{Type: "SignalFx"}, `podUsage.type: Unsupported value: "SignalFx"` + supported},
		"Service":  {metricprovider.Config{Type: "Service"}, `podUsage.type: Unsupported value: "Service"` + supported},
		"no type":  {metricprovider.Config{Token: "a"}, `podUsage.type: Unsupported value: ""` + supported},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if err := validateProvider(field.NewPath("podUsage"), tc.config, metricprovider.PodTypes).ToAggregate(); err != nil {
				got = err.Error()
			}
			if got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
}
