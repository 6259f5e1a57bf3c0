package main

import (
	"fmt"
	"strings"

	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
	"github.com/plimsoll-k8s/plimsoll/lab/experiment/scenarios"
)

// line returns the overload, the memory overruns and the unschedulable pods of each profile, as means over the seeds.
func line(name string, r *result.Result) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s (%d pods; overload minutes / memory overruns / unschedulable)", name, r.Source.Pods)
	for i := range r.Scenario.Profiles {
		p := &r.Scenario.Profiles[i]
		fmt.Fprintf(&b, "\n  %-20s %8.1f / %8.1f / %5.1f", p.Name, p.Figures["overloadMinutes"].Mean, p.Figures["memoryOverruns"].Mean,
			p.Figures["unschedulable"].Mean)
	}
	return b.String() + "\n "
}

// printSums prints the overload of each profile summed over each family, relative to the first profile.
func printSums(chosen []scenarios.Scenario, results map[string]*result.Result) {
	for _, family := range scenarios.Families {
		var order []string
		sums, count := map[string]float64{}, 0
		for i := range chosen {
			r := results[chosen[i].Name]
			if !chosen[i].Is(family) {
				continue
			}
			count++
			order = r.Profiles
			for _, p := range r.Scenario.Profiles {
				sums[p.Name] += p.Figures["overloadMinutes"].Mean
			}
		}
		if count == 0 {
			continue
		}
		fmt.Printf("%s, %d scenarios, overload minutes:\n", family, count)
		for _, name := range order {
			fmt.Printf("  %-20s %9.1f  %5.2f\n", name, sums[name], sums[name]/max(sums[order[0]], 1e-9))
		}
	}
}
