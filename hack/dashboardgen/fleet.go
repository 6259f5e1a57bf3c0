package main

// fleet is what the placement controller of a hub does, and the agents.
var fleet = dashboard{
	name: "fleet", title: "Plimsoll / Fleet",
	description: "Placement over clusters: how soon changes are followed, what is written, and whether the agents report.",
	jobs:        `{__name__=~"plimsoll_placement_latency_seconds_count|plimsoll_agent_last_report_timestamp_seconds"}`,
	panels: []panel{
		{
			title: "Agents that do not report", kind: stat, unit: "none", description: "Agents whose hub has not known all they would say for 5 minutes. Their scores expire.",
			queries: []query{{`count(time() - max by (job, namespace) (plimsoll_agent_last_report_timestamp_seconds{job=~"$job"}) > 300) or vector(0)`, "agents"}},
			limits:  []limit{{1, "red"}},
		},
		{
			title: "Placements waiting", kind: stat, unit: "none", description: "Placements in the controller's queue.",
			queries: []query{{`sum(workqueue_depth{job=~"$job", name="placement"})`, "placements"}},
			limits:  []limit{{100, "orange"}, {1000, "red"}},
		},
		{
			title: "Failures a minute", kind: stat, unit: "none", description: "Decisions that could not be written, or placements not read, in a minute.",
			queries: []query{{`60 * sum(rate(controller_runtime_reconcile_errors_total{job=~"$job", controller="placement"}[$__rate_interval]))`, "failures"}},
			limits:  []limit{{1, "orange"}, {10, "red"}},
		},
		{
			title: "Changes followed within", kind: stat, unit: "s", description: "99 in 100 changes were in PlacementDecisions within this time, over the last hour.",
			queries: []query{{`histogram_quantile(0.99, sum by (le) (rate(plimsoll_placement_latency_seconds_bucket{job=~"$job"}[1h])))`, "99 in 100"}},
			limits:  []limit{{5, "orange"}, {30, "red"}},
		},
		{
			title: "From a change to its decisions", unit: "s", description: "Time from when the controller heard of a change to when the decisions that came of it were written.",
			queries: []query{
				{`histogram_quantile(0.5, sum by (le) (rate(plimsoll_placement_latency_seconds_bucket{job=~"$job"}[$__rate_interval])))`, "half"},
				{`histogram_quantile(0.99, sum by (le) (rate(plimsoll_placement_latency_seconds_bucket{job=~"$job"}[$__rate_interval])))`, "99 in 100"},
			},
		},
		{
			title: "Time of a decision", unit: "s", description: "99 in 100 decisions take no longer, without reading and writing.",
			queries: []query{{`histogram_quantile(0.99, sum by (le) (rate(plimsoll_placement_decision_duration_seconds_bucket{job=~"$job"}[$__rate_interval])))`, "decision"}},
		},
		{
			title: "Writes", unit: "ops", description: "PlacementDecisions created, updated and deleted, and status of placements. Heartbeats of clusters write nothing.",
			queries: []query{{`sum by (verb) (rate(plimsoll_placement_writes_total{job=~"$job"}[$__rate_interval]))`, "{{verb}}"}},
		},
		{
			title: "Time in the queue", unit: "s", description: "99 in 100 placements wait no longer before they are decided.",
			queries: []query{{`histogram_quantile(0.99, sum by (le) (rate(workqueue_queue_duration_seconds_bucket{job=~"$job", name="placement"}[$__rate_interval])))`, "waiting"}},
		},
		{
			title: "Agents: age of the last report", unit: "s", description: "Since when the hub has not known all that an agent would say. A standby replica says nothing.",
			queries: []query{{`time() - (max by (job, namespace) (plimsoll_agent_last_report_timestamp_seconds{job=~"$job"}) > 0)`, "{{namespace}} {{job}}"}},
			limits:  []limit{{300, "red"}},
		},
		{
			title: "Agents: reports that failed", unit: "ops", description: "By reason; docs/troubleshooting.md says what to do about each.",
			queries: []query{{`sum by (reason) (rate(plimsoll_agent_failures_total{job=~"$job"}[$__rate_interval]))`, "{{reason}}"}},
		},
		{
			title: "Agents: scores", unit: "none", description: "The scores that agents give their clusters, from -100 to 100.", negative: true,
			queries: []query{{`max by (job, namespace, score) (plimsoll_agent_score{job=~"$job"})`, "{{namespace}} {{score}}"}},
		},
	},
}
