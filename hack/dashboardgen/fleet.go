package main

// fleet is the dashboard of the placement controller of a hub and of the agents.
var fleet = dashboard{
	name: "fleet", title: "Plimsoll / Fleet",
	description: "Placement of workloads on clusters: latency of decisions, writes, and reports of the agents.",
	jobs:        `{__name__=~"plimsoll_placement_latency_seconds_count|plimsoll_agent_last_report_timestamp_seconds"}`,
	panels: []panel{
		{
			title:       "Agents without reports",
			kind:        stat,
			unit:        "none",
			description: "Number of agents without a successful report for 5 minutes. Their scores expire.",
			queries: []query{
				{
					`count(time() - max by (job, namespace) (plimsoll_agent_last_report_timestamp_seconds{job=~"$job"}) > 300) or vector(0)`,
					"agents",
				},
			},
			limits: []limit{{1, "red"}},
		},
		{
			title: "Queued placements", kind: stat, unit: "none", description: "Number of placements in the queue of the controller.",
			queries: []query{{`sum(workqueue_depth{job=~"$job", name="placement"})`, "placements"}},
			limits:  []limit{{100, "orange"}, {1000, "red"}},
		},
		{
			title:       "Failures per minute",
			kind:        stat,
			unit:        "none",
			description: "Failed reconciliations of placements per minute.",
			queries: []query{
				{
					`60 * sum(rate(controller_runtime_reconcile_errors_total{job=~"$job", controller="placement"}[$__rate_interval]))`,
					"failures",
				},
			},
			limits: []limit{{1, "orange"}, {10, "red"}},
		},
		{
			title:       "Decision latency, p99",
			kind:        stat,
			unit:        "s",
			description: "99th percentile of the time from a change to the updated PlacementDecisions over the last hour.",
			queries: []query{
				{`histogram_quantile(0.99, sum by (le) (rate(plimsoll_placement_latency_seconds_bucket{job=~"$job"}[1h])))`, "p99"},
			},
			limits: []limit{{5, "orange"}, {30, "red"}},
		},
		{
			title: "Decision latency", unit: "s", description: "Time from the receipt of a change to the write of the resulting decisions.",
			queries: []query{
				{
					`histogram_quantile(0.5, sum by (le) (rate(plimsoll_placement_latency_seconds_bucket{job=~"$job"}[$__rate_interval])))`,
					"p50",
				},
				{
					`histogram_quantile(0.99, sum by (le) (rate(plimsoll_placement_latency_seconds_bucket{job=~"$job"}[$__rate_interval])))`,
					"p99",
				},
			},
		},
		{
			title:       "Decision duration, p99",
			unit:        "s",
			description: "99th percentile of the duration of decisions, without reading and writing objects.",
			queries: []query{
				{
					`histogram_quantile(0.99, sum by (le) (rate(plimsoll_placement_decision_duration_seconds_bucket{job=~"$job"}[$__rate_interval])))`,
					"decision",
				},
			},
		},
		{
			title:       "Writes",
			unit:        "ops",
			description: "Writes of PlacementDecisions and of the status of placements, by verb. Heartbeats of clusters cause no writes.",
			queries:     []query{{`sum by (verb) (rate(plimsoll_placement_writes_total{job=~"$job"}[$__rate_interval]))`, "{{verb}}"}},
		},
		{
			title:       "Time in the queue, p99",
			unit:        "s",
			description: "99th percentile of the time that placements wait in the queue.",
			queries: []query{
				{
					`histogram_quantile(0.99, sum by (le) (rate(workqueue_queue_duration_seconds_bucket{job=~"$job", name="placement"}[$__rate_interval])))`,
					"waiting",
				},
			},
		},
		{
			title:       "Agents: age of the last report",
			unit:        "s",
			description: "Time since the last successful report. Standby replicas do not report.",
			queries: []query{
				{
					`time() - (max by (job, namespace) (plimsoll_agent_last_report_timestamp_seconds{job=~"$job"}) > 0)`,
					"{{namespace}} {{job}}",
				},
			},
			limits: []limit{{300, "red"}},
		},
		{
			title:       "Agents: failed reports",
			unit:        "ops",
			description: "Failed reports by reason. For remedies, see docs/troubleshooting.md.",
			queries:     []query{{`sum by (reason) (rate(plimsoll_agent_failures_total{job=~"$job"}[$__rate_interval]))`, "{{reason}}"}},
		},
		{
			title:       "Agents: scores",
			unit:        "none",
			description: "Scores that agents report for their clusters, from -100 to 100.",
			negative:    true,
			queries:     []query{{`max by (job, namespace, score) (plimsoll_agent_score{job=~"$job"})`, "{{namespace}} {{score}}"}},
		},
	},
}
