package main

import "fmt"

// node is the dashboard of the nodes as seen by the scheduler. All replicas report the same values, so
// queries use the maximum.
var node = dashboard{
	name: "node", title: "Plimsoll / Nodes",
	description: "Overcommitment of the nodes: limits of their pods, and risk computed by the scheduler.",
	jobs:        "plimsoll_scheduler_node_limit_ratio_count",
	panels: []panel{
		{
			title: "Nodes", kind: stat, unit: "none", description: "Number of nodes known to the scheduler.",
			queries: []query{{`max(plimsoll_scheduler_node_limit_ratio_count{job=~"$job", resource="cpu"})`, "nodes"}},
		},
		{
			title:       "Nodes with memory limits above allocatable",
			kind:        stat,
			unit:        "percentunit",
			max:         1,
			description: "Fraction of the nodes on which the sum of pod memory limits exceeds the allocatable memory. Pods are killed if all use their limits.",
			queries:     []query{{over("memory", "1"), "share"}},
			limits:      []limit{{0.25, "orange"}, {0.5, "red"}},
		},
		{
			title:       "Nodes with CPU limits above allocatable",
			kind:        stat,
			unit:        "percentunit",
			max:         1,
			description: "Fraction of the nodes on which the sum of pod CPU limits exceeds the allocatable CPU. Pods are throttled if all use their limits.",
			queries:     []query{{over("cpu", "1"), "share"}},
			limits:      []limit{{0.5, "orange"}, {0.8, "red"}},
		},
		{
			title:       "Load degraded",
			kind:        stat,
			unit:        "none",
			description: "Number of load sources without fresh load. Nodes are then scored without measured load.",
			queries:     []query{{`sum(max by (source) (plimsoll_load_degraded{job=~"$job"}))`, "sources"}},
			limits:      []limit{{1, "red"}},
		},
		{
			title: "Memory limits relative to allocatable", unit: "percentunit",
			description: "Percentiles over nodes of the sum of pod memory limits relative to the allocatable memory.",
			queries:     quantiles("memory"), limits: []limit{{1, "orange"}, {1.5, "red"}},
		},
		{
			title: "CPU limits relative to allocatable", unit: "percentunit",
			description: "Percentiles over nodes of the sum of pod CPU limits relative to the allocatable CPU.",
			queries:     quantiles("cpu"), limits: []limit{{1, "orange"}, {2, "red"}},
		},
		{
			title: "Nodes by memory limits relative to allocatable", kind: heatmap, unit: "percentunit",
			description: "Number of nodes by limit ratio over time. A single dark band indicates an evenly loaded cluster.",
			queries:     []query{{`max by (le) (plimsoll_scheduler_node_limit_ratio_bucket{job=~"$job", resource="memory"})`, "{{le}}"}},
		},
		{
			title: "Risk of the nodes", unit: "percentunit", max: 1,
			description: "Percentiles over nodes of the risk computed by LowRiskOverCommitment, from 0 to 1, by profile.",
			queries: []query{
				{
					`histogram_quantile(0.5, max by (profile, le) (plimsoll_scheduler_node_risk_ratio_bucket{job=~"$job"}))`,
					"{{profile}} p50",
				},
				{
					`histogram_quantile(0.9, max by (profile, le) (plimsoll_scheduler_node_risk_ratio_bucket{job=~"$job"}))`,
					"{{profile}} p90",
				},
			},
			limits: []limit{{0.5, "orange"}, {0.8, "red"}},
		},
		{
			title:       "Nodes with a pod without limits",
			unit:        "none",
			description: "Number of nodes with at least one pod without a limit. Limit ratios understate the possible usage of these nodes.",
			queries:     []query{{`max by (resource) (plimsoll_scheduler_nodes_unbounded{job=~"$job"})`, "{{resource}}"}},
		},
		{
			title:       "Prediction error: CPU",
			unit:        "percentunit",
			negative:    true,
			description: "Percentiles over nodes of the measured minus the predicted CPU, as a fraction of the allocatable amount. Only with PredictedUtilization.",
			queries:     predictionErrors("cpu"),
		},
		{
			title:       "Prediction error: memory",
			unit:        "percentunit",
			negative:    true,
			description: "Percentiles over nodes of the measured minus the predicted memory, as a fraction of the allocatable amount. Only with PredictedUtilization.",
			queries:     predictionErrors("memory"),
		},
		{
			title:       "Workloads with a known usage",
			unit:        "none",
			description: "Number of workloads whose usage is known from the usage of their pods, and those that did not fit when the history was saved.",
			queries: []query{
				{`max(plimsoll_prediction_workloads{job=~"$job"})`, "known"},
				{`max(plimsoll_prediction_history_dropped_workloads{job=~"$job"})`, "not saved"},
			},
		},
		{
			title:       "Age of the history",
			unit:        "s",
			description: "Age of the newest usage in the history of the workloads, and time since the history was saved.",
			queries: []query{
				{`max(plimsoll_prediction_history_age_seconds{job=~"$job"})`, "usage"},
				{`time() - max(plimsoll_prediction_history_saved_timestamp_seconds{job=~"$job"})`, "saved"},
			},
		},
		{
			title: "Pending pods", unit: "none",
			description: "Number of pods in the queues of the scheduler.",
			queries:     []query{{`sum by (queue) (scheduler_pending_pods{job=~"$job"})`, "{{queue}}"}},
		},
		{
			title:       "Scheduling attempts",
			unit:        "ops",
			description: "Scheduling attempts by result.",
			queries: []query{
				{`sum by (result) (rate(scheduler_schedule_attempts_total{job=~"$job"}[$__rate_interval]))`, "{{result}}"},
			},
		},
		{
			title:       "Duration of scheduling attempts, p99",
			unit:        "s",
			description: "99th percentile of the time from the queue to the binding of a pod.",
			queries: []query{
				{
					`histogram_quantile(0.99, sum by (le, profile) (rate(scheduler_scheduling_attempt_duration_seconds_bucket{job=~"$job"}[$__rate_interval])))`,
					"{{profile}}",
				},
			},
		},
	},
}

// over returns the fraction of the nodes whose limits exceed a multiple of their allocatable resources.
// Prometheus 3 formats a bound of 1 as 1.0.
func over(resource, bound string) string {
	return fmt.Sprintf(
		`1 - max(plimsoll_scheduler_node_limit_ratio_bucket{job=~"$job", resource=%q, le=~"%[2]s|%[2]s.0"}) / max(plimsoll_scheduler_node_limit_ratio_count{job=~"$job", resource=%[1]q})`,
		resource,
		bound,
	)
}

// quantiles returns queries for percentiles of the limit ratio over nodes.
func quantiles(resource string) (queries []query) {
	for _, q := range []struct{ quantile, legend string }{{"0.5", "p50"}, {"0.9", "p90"}, {"0.99", "p99"}} {
		queries = append(queries, query{
			fmt.Sprintf(
				`histogram_quantile(%s, max by (le) (plimsoll_scheduler_node_limit_ratio_bucket{job=~"$job", resource=%q}))`,
				q.quantile,
				resource,
			),
			q.legend,
		})
	}
	return queries
}

// predictionErrors returns queries for percentiles of the error of predictions over nodes. All replicas predict the same.
func predictionErrors(resource string) (queries []query) {
	for _, q := range []struct{ quantile, legend string }{{"0.1", "p10"}, {"0.5", "p50"}, {"0.9", "p90"}} {
		queries = append(queries, query{
			fmt.Sprintf(
				`histogram_quantile(%s, sum by (le) (rate(plimsoll_prediction_error_ratio_bucket{job=~"$job", resource=%q}[$__rate_interval])))`,
				q.quantile,
				resource,
			),
			q.legend,
		})
	}
	return queries
}
