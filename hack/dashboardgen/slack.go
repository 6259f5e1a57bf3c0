package main

import "fmt"

// slack is what the policies of resource slack want and have. Only the leader
// among the controllers tells.
var slack = dashboard{
	name: "slack", title: "Plimsoll / Slack",
	description: "Spare room: what the policies want, what there is of it, and what the controller does about it.",
	jobs:        "plimsoll_slack_feasible",
	choices:     []choice{{"policy", "plimsoll_slack_feasible"}},
	panels: []panel{
		{
			title: "CPU to spare over target", kind: stat, unit: "percentunit", description: "What the pool has beside its pods over what is wanted. Under 100 % the next pods may have to wait for a node.",
			queries: []query{{spare("cpu"), "{{policy}}"}},
		},
		{
			title: "Memory to spare over target", kind: stat, unit: "percentunit", description: "What the pool has beside its pods over what is wanted. Under 100 % the next pods may have to wait for a node.",
			queries: []query{{spare("memory"), "{{policy}}"}},
		},
		{
			title: "Policies that cannot be held", kind: stat, unit: "none", description: "What they want does not fit into placeholders: see the conditions of the ResourceSlack.",
			queries: []query{{`count(max by (policy) (plimsoll_slack_feasible{job=~"$job", policy=~"$policy"}) == 0) or vector(0)`, "policies"}},
			limits:  []limit{{1, "red"}},
		},
		{
			title: "Placeholders without room", kind: stat, unit: "none", description: "Placeholders that wait for nodes: an autoscaler should be at work.",
			queries: []query{{`sum(max by (policy, of) (plimsoll_slack_placeholders{job=~"$job", policy=~"$policy"})) - sum(max by (policy) (plimsoll_slack_placeholders_placed{job=~"$job", policy=~"$policy"}))`, "placeholders"}},
			limits:  []limit{{1, "orange"}},
		},
		{
			title: "CPU", unit: "cores", description: "Wanted (target), held in placeholders (total), and to spare (available), by policy.",
			queries: amounts("cpu"),
		},
		{
			title: "Memory", unit: "bytes", description: "Wanted (target), held in placeholders (total), and to spare (available), by policy.",
			queries: amounts("memory"),
		},
		{
			title: "Placeholders", unit: "none", description: "Placeholders that are wanted: for the biggest pod (head), for the rate, and like the pods of workloads (mirror); and those that there is room for now.",
			queries: []query{
				{`max by (policy, of) (plimsoll_slack_placeholders{job=~"$job", policy=~"$policy"})`, "{{policy}} {{of}}"},
				{`max by (policy) (plimsoll_slack_placeholders_placed{job=~"$job", policy=~"$policy"})`, "{{policy}} placed"},
			},
		},
		{
			title: "Writes", unit: "ops", description: "Objects written and deleted. At rest there are none; each change of a template makes an autoscaler drop its buffer for a moment.",
			queries: []query{{`sum by (kind, verb) (rate(plimsoll_slack_writes_total{job=~"$job"}[$__rate_interval]))`, "{{verb}} {{kind}}"}},
		},
		{
			title: "Time of a plan", unit: "s", description: "99 in 100 plans take no longer, without reading and writing.",
			queries: []query{{`histogram_quantile(0.99, sum by (le) (rate(plimsoll_slack_plan_duration_seconds_bucket{job=~"$job"}[$__rate_interval])))`, "plan"}},
		},
		{
			title: "Failures and queue", unit: "none", description: "Policies waiting to be planned, and plans that failed in a minute.",
			queries: []query{
				{`sum(workqueue_depth{job=~"$job", name="slack"})`, "waiting"},
				{`60 * sum(rate(controller_runtime_reconcile_errors_total{job=~"$job", controller="slack"}[$__rate_interval]))`, "failures a minute"},
			},
		},
	},
}

func spare(resource string) string {
	return fmt.Sprintf(`max by (policy) (plimsoll_slack_resource{job=~"$job", policy=~"$policy", amount="available", resource=%[1]q}) / (max by (policy) (plimsoll_slack_resource{job=~"$job", policy=~"$policy", amount="target", resource=%[1]q}) > 0)`, resource)
}

func amounts(resource string) []query {
	return []query{{fmt.Sprintf(`max by (policy, amount) (plimsoll_slack_resource{job=~"$job", policy=~"$policy", amount=~"target|total|available", resource=%q})`, resource), "{{policy}} {{amount}}"}}
}
