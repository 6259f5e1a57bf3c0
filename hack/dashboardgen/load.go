package main

// load is the dashboard of reading load in all components and of requests to load-watcher.
var load = dashboard{
	name: "load", title: "Plimsoll / Load",
	description: "Load of the nodes: age, failed reads, and requests to load-watcher.",
	jobs:        "plimsoll_load_degraded",
	panels: []panel{
		{
			title: "Sources without fresh load", kind: stat, unit: "none", description: "Number of readers without fresh load.",
			queries: []query{{`sum(plimsoll_load_degraded{job=~"$job"})`, "sources"}},
			limits:  []limit{{1, "red"}},
		},
		{
			title:       "Age relative to maximum age",
			kind:        stat,
			unit:        "percentunit",
			description: "Age of the oldest reading relative to the maximum age, at which it is no longer used.",
			queries:     []query{{`max(plimsoll_load_age_seconds{job=~"$job"} / plimsoll_load_max_age_seconds{job=~"$job"})`, "age"}},
			limits:      []limit{{0.5, "orange"}, {1, "red"}},
		},
		{
			title: "Nodes with fresh load", kind: stat, unit: "none", description: "Minimum over all readers.",
			queries: []query{{`min(plimsoll_load_nodes{job=~"$job"})`, "nodes"}},
		},
		{
			title:       "Nodes with stale load",
			kind:        stat,
			unit:        "none",
			description: "Number of nodes for which a source has only old values, because they no longer report to it.",
			queries:     []query{{`max(plimsoll_load_nodes_stale{job=~"$job"})`, "nodes"}},
			limits:      []limit{{1, "orange"}},
		},
		{
			title: "Age of the load", unit: "s", description: "Age of the newest reading by reader and source, and the maximum age.",
			queries: []query{
				{`max by (job, source) (plimsoll_load_age_seconds{job=~"$job"})`, "{{job}} {{source}}"},
				{`max by (job, source) (plimsoll_load_max_age_seconds{job=~"$job"})`, "{{job}} maximum"},
			},
		},
		{
			title: "Nodes", unit: "none", description: "Number of nodes with fresh load.",
			queries: []query{{`min by (job, source) (plimsoll_load_nodes{job=~"$job"})`, "{{job}} {{source}}"}},
		},
		{
			title: "Reads", unit: "ops", description: "Successful and failed reads.",
			queries: []query{
				{`sum by (job) (rate(plimsoll_load_reads_total{job=~"$job"}[$__rate_interval]))`, "{{job}} succeeded"},
				{`sum by (job, reason) (rate(plimsoll_load_read_failures_total{job=~"$job"}[$__rate_interval]))`, "{{job}} {{reason}}"},
			},
		},
		{
			title: "Read duration", unit: "s", description: "Percentiles of the duration of reads. The timeout is 10 s.",
			queries: []query{
				{
					`histogram_quantile(0.5, sum by (le) (rate(plimsoll_load_read_duration_seconds_bucket{job=~"$job"}[$__rate_interval])))`,
					"p50",
				},
				{
					`histogram_quantile(0.99, sum by (le) (rate(plimsoll_load_read_duration_seconds_bucket{job=~"$job"}[$__rate_interval])))`,
					"p99",
				},
			},
			limits: []limit{{10, "red"}},
		},
		{
			title:       "Rejected data",
			unit:        "ops",
			description: "Readings without a series, and values that were ignored because they are invalid or belong to no node.",
			queries: []query{
				{`sum by (series) (rate(plimsoll_load_series_lost_total{job=~"$job"}[$__rate_interval]))`, "{{series}}"},
				{`sum(rate(plimsoll_load_values_rejected_total{job=~"$job"}[$__rate_interval]))`, "values rejected"},
			},
		},
		{
			title:       "Usage of pods: age",
			unit:        "s",
			description: "Age of the newest reading of the usage of pods by source, and the maximum age. Only if a profile reads it.",
			queries: []query{
				{`max by (job, source) (plimsoll_pod_usage_age_seconds{job=~"$job"})`, "{{job}} {{source}}"},
				{`max by (job, source) (plimsoll_pod_usage_max_age_seconds{job=~"$job"})`, "{{job}} maximum"},
			},
		},
		{
			title: "Usage of pods: pods", unit: "none", description: "Pods with fresh usage, and pods that were ignored per reading.",
			queries: []query{
				{`min by (job, source) (plimsoll_pod_usage_pods{job=~"$job"})`, "{{job}} {{source}}"},
				{
					`sum by (job) (rate(plimsoll_pod_usage_rejected_total{job=~"$job"}[$__rate_interval])) / sum by (job) (rate(plimsoll_pod_usage_reads_total{job=~"$job"}[$__rate_interval]))`,
					"{{job}} ignored",
				},
			},
		},
		{
			title: "Usage of pods: reads", unit: "ops", description: "Successful and failed reads of the usage of pods.",
			queries: []query{
				{`sum by (job) (rate(plimsoll_pod_usage_reads_total{job=~"$job"}[$__rate_interval]))`, "{{job}} succeeded"},
				{
					`sum by (job, reason) (rate(plimsoll_pod_usage_read_failures_total{job=~"$job"}[$__rate_interval]))`,
					"{{job}} {{reason}}",
				},
			},
		},
		{
			title:       "Usage of pods: read duration, p99",
			unit:        "s",
			description: "99th percentile of the duration of reads of the usage of pods. The timeout is 10 s.",
			queries: []query{
				{
					`histogram_quantile(0.99, sum by (le) (rate(plimsoll_pod_usage_read_duration_seconds_bucket{job=~"$job"}[$__rate_interval])))`,
					"p99",
				},
			},
			limits: []limit{{10, "red"}},
		},
		{
			title:       "load-watcher: requests",
			unit:        "reqps",
			description: "Requests by handler and HTTP status. 503: no fresh load. 401: missing or invalid token.",
			queries: []query{
				{
					`sum by (handler, code) (rate(plimsoll_load_watcher_requests_total{job=~"$job"}[$__rate_interval]))`,
					"{{handler}} {{code}}",
				},
			},
		},
		{
			title:       "load-watcher: request duration, p99",
			unit:        "s",
			description: "99th percentile of the duration of requests.",
			queries: []query{
				{
					`histogram_quantile(0.99, sum by (le, handler) (rate(plimsoll_load_watcher_request_duration_seconds_bucket{job=~"$job"}[$__rate_interval])))`,
					"{{handler}}",
				},
			},
		},
	},
}
