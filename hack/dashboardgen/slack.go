package main

import "fmt"

// slack is the dashboard of the policies of resource slack. Only the leader of the controllers reports.
var slack = dashboard{
	name: "slack", title: "Plimsoll / Slack",
	description: "Spare capacity: target and available amounts of the policies, and actions of the controller.",
	jobs:        "plimsoll_slack_feasible",
	choices:     []choice{{"policy", "plimsoll_slack_feasible"}},
	panels: []panel{
		{
			title:       "Available CPU relative to target",
			kind:        stat,
			unit:        "percentunit",
			description: "Free capacity of the pool relative to the target. Below 100 %, new pods may have to wait for a node.",
			queries:     []query{{spare("cpu"), "{{policy}}"}},
		},
		{
			title:       "Available memory relative to target",
			kind:        stat,
			unit:        "percentunit",
			description: "Free capacity of the pool relative to the target. Below 100 %, new pods may have to wait for a node.",
			queries:     []query{{spare("memory"), "{{policy}}"}},
		},
		{
			title:       "Infeasible policies",
			kind:        stat,
			unit:        "none",
			description: "Number of policies whose slack placeholders cannot hold. See the conditions of the ResourceSlack.",
			queries: []query{
				{`count(max by (policy) (plimsoll_slack_feasible{job=~"$job", policy=~"$policy"}) == 0) or vector(0)`, "policies"},
			},
			limits: []limit{{1, "red"}},
		},
		{
			title:       "Unplaced placeholders",
			kind:        stat,
			unit:        "none",
			description: "Number of placeholders that do not fit the nodes of the pool. An autoscaler should add nodes.",
			queries: []query{
				{
					`sum(max by (policy, of) (plimsoll_slack_placeholders{job=~"$job", policy=~"$policy"})) - sum(max by (policy) (plimsoll_slack_placeholders_placed{job=~"$job", policy=~"$policy"}))`,
					"placeholders",
				},
			},
			limits: []limit{{1, "orange"}},
		},
		{
			title: "CPU", unit: "cores", description: "Target, total requests of placeholders, and available capacity, by policy.",
			queries: amounts("cpu"),
		},
		{
			title: "Memory", unit: "bytes", description: "Target, total requests of placeholders, and available capacity, by policy.",
			queries: amounts("memory"),
		},
		{
			title:       "Placeholders",
			unit:        "none",
			description: "Number of placeholders for the biggest pod (head), for the rate (rate), and mirroring workloads (mirror), and the number that fits now (placed).",
			queries: []query{
				{`max by (policy, of) (plimsoll_slack_placeholders{job=~"$job", policy=~"$policy"})`, "{{policy}} {{of}}"},
				{`max by (policy) (plimsoll_slack_placeholders_placed{job=~"$job", policy=~"$policy"})`, "{{policy}} placed"},
			},
		},
		{
			title:       "Writes",
			unit:        "ops",
			description: "Objects applied and deleted. There are none in a steady state. A change of a template makes an autoscaler briefly drop its buffer.",
			queries: []query{
				{`sum by (kind, verb) (rate(plimsoll_slack_writes_total{job=~"$job"}[$__rate_interval]))`, "{{verb}} {{kind}}"},
			},
		},
		{
			title:       "Plan duration, p99",
			unit:        "s",
			description: "99th percentile of the duration of planning, without reading and writing objects.",
			queries: []query{
				{
					`histogram_quantile(0.99, sum by (le) (rate(plimsoll_slack_plan_duration_seconds_bucket{job=~"$job"}[$__rate_interval])))`,
					"plan",
				},
			},
		},
		{
			title: "Failures and queue", unit: "none", description: "Number of queued policies, and failed reconciliations per minute.",
			queries: []query{
				{`sum(workqueue_depth{job=~"$job", name="slack"})`, "queued"},
				{
					`60 * sum(rate(controller_runtime_reconcile_errors_total{job=~"$job", controller="slack"}[$__rate_interval]))`,
					"failures per minute",
				},
			},
		},
	},
}

// spare returns the query for the available amount relative to the target.
func spare(resource string) string {
	return fmt.Sprintf(
		`max by (policy) (plimsoll_slack_resource{job=~"$job", policy=~"$policy", amount="available", resource=%[1]q}) / (max by (policy) (plimsoll_slack_resource{job=~"$job", policy=~"$policy", amount="target", resource=%[1]q}) > 0)`,
		resource,
	)
}

// amounts returns the query for the amounts of a resource by policy.
func amounts(resource string) []query {
	return []query{
		{
			fmt.Sprintf(
				`max by (policy, amount) (plimsoll_slack_resource{job=~"$job", policy=~"$policy", amount=~"target|total|available", resource=%q})`,
				resource,
			),
			"{{policy}} {{amount}}",
		},
	}
}
