package report

import (
	"fmt"

	"github.com/plimsoll-k8s/plimsoll/internal/format"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
)

const (
	// maxReasons is the largest number of reasons shown.
	maxReasons = 8
	// maxReasonLength is the largest length of a reason in characters.
	maxReasonLength = 300
)

// podsColumns are the means over the runs of a profile that podsSection has.
var podsColumns = []struct {
	name  string
	value func(*result.Run) float64
}{
	{"scheduled", func(r *result.Run) float64 { return float64(r.Scheduled) }},
	{"unschedulable", func(r *result.Run) float64 { return float64(r.Unschedulable) }},
	{"not arrived", func(r *result.Run) float64 { return float64(r.NotArrived) }},
	{"pending, mean s", func(r *result.Run) float64 { return r.PendingSeconds.Mean }},
	{"p50 s", func(r *result.Run) float64 { return r.PendingSeconds.P50 }},
	{"p95 s", func(r *result.Run) float64 { return r.PendingSeconds.P95 }},
	{"max s", func(r *result.Run) float64 { return r.PendingSeconds.Max }},
}

// podsSection summarizes the pods of all runs with each profile.
func podsSection(s *result.Scenario) *Section {
	section := &Section{Title: "Pending and unschedulable pods", Head: []string{"mean over runs", "runs"}}
	for _, column := range podsColumns {
		section.Head = append(section.Head, column.name)
	}
	for i := range s.Profiles {
		p := &s.Profiles[i]
		row := []string{p.Name, format.Count(len(p.Runs))}
		if interrupted := p.Interrupted(); interrupted > 0 {
			row[1] += fmt.Sprintf(" (%d interrupted)", interrupted)
		}
		pods := map[string]int{}
		sums := make([]float64, len(podsColumns))
		for j := range p.Runs {
			for text, n := range p.Runs[j].Reasons {
				pods[text] += n
			}
			for k, column := range podsColumns {
				sums[k] += column.value(&p.Runs[j])
			}
		}
		for _, sum := range sums {
			mean := sum / float64(len(p.Runs)) // not a number without runs
			row = append(row, format.Format(mean, min(format.Decimals(mean), 1)))
		}
		section.Rows = append(section.Rows, row)
		texts := result.MostFrequent(pods)
		for _, text := range texts[:min(len(texts), maxReasons)] {
			section.Items = append(section.Items, fmt.Sprintf("Unschedulable with %s, all runs: %s: %s", p.Name,
				format.Things(pods[text], "pod"), shorten(text, maxReasonLength)))
		}
		if more := len(texts) - maxReasons; more > 0 {
			section.Items = append(section.Items, fmt.Sprintf("and with %s %d more reasons", p.Name, more))
		}
	}
	return section
}

// shorten truncates a text to a number of characters.
func shorten(text string, length int) string {
	if runes := []rune(text); len(runes) > length {
		return string(runes[:length-1]) + "…"
	}
	return text
}
