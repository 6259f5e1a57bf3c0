package main

import "fmt"

// node is what the scheduler knows of its nodes. Its replicas tell the same, so
// that the highest of each figure is it.
var node = dashboard{
	name: "node", title: "Plimsoll / Nodes",
	description: "How deep the nodes are loaded: by the limits of their pods, and by the risk that the scheduler sees.",
	jobs:        "plimsoll_scheduler_node_limit_ratio_count",
	panels: []panel{
		{
			title: "Nodes", kind: stat, unit: "none", description: "Nodes that the scheduler knows.",
			queries: []query{{`max(plimsoll_scheduler_node_limit_ratio_count{job=~"$job", resource="cpu"})`, "nodes"}},
		},
		{
			title: "Nodes with more memory limits than memory", kind: stat, unit: "percentunit", most: 1,
			description: "Share of the nodes on which the limits of the pods come to more than is allocatable. If all pods use what they may, pods are killed there.",
			queries:     []query{{over("memory", "1"), "share"}},
			limits:      []limit{{0.25, "orange"}, {0.5, "red"}},
		},
		{
			title: "Nodes with more CPU limits than CPU", kind: stat, unit: "percentunit", most: 1,
			description: "Share of the nodes on which the limits of the pods come to more than is allocatable. If all pods use what they may, they get less CPU than their limits say.",
			queries:     []query{{over("cpu", "1"), "share"}},
			limits:      []limit{{0.5, "orange"}, {0.8, "red"}},
		},
		{
			title: "Load degraded", kind: stat, unit: "none", description: "Sources of load without anything fresh. Nodes are then judged by limits only.",
			queries: []query{{`sum(max by (source) (plimsoll_load_degraded{job=~"$job"}))`, "sources"}},
			limits:  []limit{{1, "red"}},
		},
		{
			title: "Memory limits over allocatable", unit: "percentunit",
			description: "Sum of the memory limits of a node's pods over what is allocatable: half of the nodes, nine in ten, and all but one in a hundred are under these lines.",
			queries:     quantiles("memory"), limits: []limit{{1, "orange"}, {1.5, "red"}},
		},
		{
			title: "CPU limits over allocatable", unit: "percentunit",
			description: "Sum of the CPU limits of a node's pods over what is allocatable: half of the nodes, nine in ten, and all but one in a hundred are under these lines.",
			queries:     quantiles("cpu"), limits: []limit{{1, "orange"}, {2, "red"}},
		},
		{
			title: "Nodes by memory limits over allocatable", kind: heatmap, unit: "percentunit",
			description: "How many nodes are how deep, over time. One dark band is a cluster that is loaded evenly.",
			queries:     []query{{`max by (le) (plimsoll_scheduler_node_limit_ratio_bucket{job=~"$job", resource="memory"})`, "{{le}}"}},
		},
		{
			title: "Risk of the nodes", unit: "percentunit", most: 1,
			description: "Risk that LowRiskOverCommitment sees, by profile: half of the nodes and nine in ten are under these lines. 0 is none, 1 is certain.",
			queries: []query{
				{`histogram_quantile(0.5, max by (profile, le) (plimsoll_scheduler_node_risk_ratio_bucket{job=~"$job"}))`, "{{profile}} half"},
				{`histogram_quantile(0.9, max by (profile, le) (plimsoll_scheduler_node_risk_ratio_bucket{job=~"$job"}))`, "{{profile}} nine in ten"},
			},
			limits: []limit{{0.5, "orange"}, {0.8, "red"}},
		},
		{
			title: "Nodes with a pod without limit", unit: "none",
			description: "Nodes with at least one pod that may use all there is. Their limits over allocatable say less than they seem to.",
			queries:     []query{{`max by (resource) (plimsoll_scheduler_nodes_unbounded{job=~"$job"})`, "{{resource}}"}},
		},
		{
			title: "Pods waiting", unit: "none",
			description: "Pods in the scheduler's queues. Those that are unschedulable find no node; slack makes them wait for less time.",
			queries:     []query{{`sum by (queue) (scheduler_pending_pods{job=~"$job"})`, "{{queue}}"}},
		},
		{
			title: "Scheduling attempts", unit: "ops",
			description: "Attempts to place a pod, by what came of them.",
			queries:     []query{{`sum by (result) (rate(scheduler_schedule_attempts_total{job=~"$job"}[$__rate_interval]))`, "{{result}}"}},
		},
		{
			title: "Time of a scheduling attempt", unit: "s",
			description: "From when a pod is taken from the queue to when it is bound: 99 in 100 take no longer.",
			queries:     []query{{`histogram_quantile(0.99, sum by (le, profile) (rate(scheduler_scheduling_attempt_duration_seconds_bucket{job=~"$job"}[$__rate_interval])))`, "{{profile}}"}},
		},
	},
}

// over returns the share of the nodes whose limits are over a multiple of what
// they have. Prometheus 3 writes a bound of 1 as 1.0.
func over(resource, bound string) string {
	return fmt.Sprintf(`1 - max(plimsoll_scheduler_node_limit_ratio_bucket{job=~"$job", resource=%q, le=~"%[2]s|%[2]s.0"}) / max(plimsoll_scheduler_node_limit_ratio_count{job=~"$job", resource=%[1]q})`, resource, bound)
}

func quantiles(resource string) (queries []query) {
	for _, q := range []struct{ of, legend string }{{"0.5", "half"}, {"0.9", "nine in ten"}, {"0.99", "99 in 100"}} {
		queries = append(queries, query{
			fmt.Sprintf(`histogram_quantile(%s, max by (le) (plimsoll_scheduler_node_limit_ratio_bucket{job=~"$job", resource=%q}))`, q.of, resource), q.legend,
		})
	}
	return queries
}
