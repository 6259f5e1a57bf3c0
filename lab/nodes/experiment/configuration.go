package main

import (
	"fmt"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"

	"github.com/plimsoll-k8s/plimsoll/lab/experiment/baselines"
)

// chartValues are the Helm values of the release whose rights the scheduler has.
const chartValues = `
scheduler:
  profiles: [{schedulerName: plimsoll-scheduler, use: predicted}]
  metricProvider: {type: KubernetesMetricsServer}
controller: {enabled: false}
`

// pollInterval and loadWindow are the intervals of the profiles (30 s and 15 min), shortened as the recorded usage is.
const (
	pollInterval = "2s"
	loadWindow   = "60s"
)

// schedulerConfiguration returns the configuration of a scheduler with the default profile, the published ones and Crane's
// formula (lab/experiment/profiles), which read the metrics-server.
func (e *experiment) schedulerConfiguration() (string, error) {
	profiles := []any{map[string]any{"schedulerName": "default-scheduler"}}
	for _, name := range []string{"predicted", "low-risk", "packed"} {
		raw, err := os.ReadFile(filepath.Join(e.project, "examples", "profiles", name+".yaml"))
		if err != nil {
			return "", err
		}
		var file struct {
			Profiles []struct {
				SchedulerName string `json:"schedulerName"`
				Plugins       any    `json:"plugins"`
				PluginConfig  []struct {
					Name string         `json:"name"`
					Args map[string]any `json:"args"`
				} `json:"pluginConfig"`
			} `json:"profiles"`
		}
		if err := yaml.Unmarshal(raw, &file); err != nil {
			return "", fmt.Errorf("%s: %w", name, err)
		}
		for _, c := range file.Profiles[0].PluginConfig {
			if _, ok := c.Args["watcherAddress"]; !ok {
				continue
			}
			delete(c.Args, "watcherAddress")
			c.Args["pollInterval"] = pollInterval
			if c.Args["podUsage"] == nil {
				c.Args["metricProvider"] = map[string]any{"type": "KubernetesMetricsServer", "window": loadWindow}
			}
		}
		profiles = append(profiles, file.Profiles[0])
	}
	profiles = append(profiles, map[string]any{
		"schedulerName": craneArm,
		"plugins":       map[string]any{"score": map[string]any{"enabled": []any{map[string]any{"name": baselines.Dynamic, "weight": 3}}}},
	})
	text, err := yaml.Marshal(map[string]any{
		"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
		"leaderElection":   map[string]any{"leaderElect": false},
		"clientConnection": map[string]any{"kubeconfig": "KUBECONFIG", "qps": 1000, "burst": 2000},
		"profiles":         profiles,
	})
	return string(text), err
}
