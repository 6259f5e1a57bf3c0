package main

// load is how reading load goes, wherever it is read, and how load-watcher is
// asked for it.
var load = dashboard{
	name: "load", title: "Plimsoll / Load",
	description: "The load that nodes are judged by: how fresh it is, what cannot be read, and who asks for it.",
	jobs:        "plimsoll_load_degraded",
	panels: []panel{
		{
			title: "Sources without fresh load", kind: stat, unit: "none", description: "Readers that have nothing fresh to show.",
			queries: []query{{`sum(plimsoll_load_degraded{job=~"$job"})`, "sources"}},
			limits:  []limit{{1, "red"}},
		},
		{
			title: "Age over allowed age", kind: stat, unit: "percentunit", description: "The oldest reading in use. At 100 % it is used no longer.",
			queries: []query{{`max(plimsoll_load_age_seconds{job=~"$job"} / plimsoll_load_max_age_seconds{job=~"$job"})`, "age"}},
			limits:  []limit{{0.5, "orange"}, {1, "red"}},
		},
		{
			title: "Nodes with fresh load", kind: stat, unit: "none", description: "Of the reader that knows fewest.",
			queries: []query{{`min(plimsoll_load_nodes{job=~"$job"})`, "nodes"}},
		},
		{
			title: "Nodes with old load only", kind: stat, unit: "none", description: "Nodes that a source knows, but of which it has only old values: they no longer report to it.",
			queries: []query{{`max(plimsoll_load_nodes_stale{job=~"$job"})`, "nodes"}},
			limits:  []limit{{1, "orange"}},
		},
		{
			title: "Age of the load", unit: "s", description: "Age of the newest reading by reader and source, and the age from which on it is not used.",
			queries: []query{
				{`max by (job, source) (plimsoll_load_age_seconds{job=~"$job"})`, "{{job}} {{source}}"},
				{`max by (job, source) (plimsoll_load_max_age_seconds{job=~"$job"})`, "{{job}} at most"},
			},
		},
		{
			title: "Nodes", unit: "none", description: "Nodes whose load is known and fresh.",
			queries: []query{{`min by (job, source) (plimsoll_load_nodes{job=~"$job"})`, "{{job}} {{source}}"}},
		},
		{
			title: "Reads", unit: "ops", description: "Readings taken over, and reads that brought nothing.",
			queries: []query{
				{`sum by (job) (rate(plimsoll_load_reads_total{job=~"$job"}[$__rate_interval]))`, "{{job}} taken over"},
				{`sum by (job, reason) (rate(plimsoll_load_read_failures_total{job=~"$job"}[$__rate_interval]))`, "{{job}} {{reason}}"},
			},
		},
		{
			title: "Time of a read", unit: "s", description: "Half of the reads and 99 in 100 take no longer. A read that takes 10 s is given up.",
			queries: []query{
				{`histogram_quantile(0.5, sum by (le) (rate(plimsoll_load_read_duration_seconds_bucket{job=~"$job"}[$__rate_interval])))`, "half"},
				{`histogram_quantile(0.99, sum by (le) (rate(plimsoll_load_read_duration_seconds_bucket{job=~"$job"}[$__rate_interval])))`, "99 in 100"},
			},
			limits: []limit{{10, "red"}},
		},
		{
			title: "What was lost", unit: "ops", description: "Series that a reading came without, and values that were left out because they make no sense or belong to no node.",
			queries: []query{
				{`sum by (series) (rate(plimsoll_load_series_lost_total{job=~"$job"}[$__rate_interval]))`, "{{series}}"},
				{`sum(rate(plimsoll_load_values_rejected_total{job=~"$job"}[$__rate_interval]))`, "values rejected"},
			},
		},
		{
			title: "load-watcher: requests", unit: "reqps", description: "What is asked for, by HTTP status. 503 is that there is no fresh load, 401 that no token was shown.",
			queries: []query{{`sum by (handler, code) (rate(plimsoll_load_watcher_requests_total{job=~"$job"}[$__rate_interval]))`, "{{handler}} {{code}}"}},
		},
		{
			title: "load-watcher: time of an answer", unit: "s", description: "99 in 100 answers take no longer.",
			queries: []query{{`histogram_quantile(0.99, sum by (le, handler) (rate(plimsoll_load_watcher_request_duration_seconds_bucket{job=~"$job"}[$__rate_interval])))`, "{{handler}}"}},
		},
	},
}
