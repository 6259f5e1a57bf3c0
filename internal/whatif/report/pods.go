package report

import (
	"fmt"

	"github.com/plimsoll-k8s/plimsoll/internal/format"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
)

// podsRow summarizes the pods of all runs with a profile.
type podsRow struct {
	Profile                  string
	Scheduled, Unschedulable string
	NotArrived               string
	Mean, P50, P95, Max      string
	Runs, Interrupted        string
	Reasons                  []reason
	// MoreReasons is the number of reasons that are not shown.
	MoreReasons int
}

// reason is why a number of pods were unschedulable.
type reason struct{ Pods, Text string }

const (
	// maxReasons is the largest number of reasons shown.
	maxReasons = 8
	// maxReasonLength is the largest length of a reason in characters.
	maxReasonLength = 300
)

// newPodsRow returns the summary of a profile.
func newPodsRow(p *result.Profile) podsRow {
	mean := func(of func(*result.Run) float64) string {
		if len(p.Runs) == 0 {
			return format.None
		}
		var sum float64
		for i := range p.Runs {
			sum += of(&p.Runs[i])
		}
		mean := sum / float64(len(p.Runs))
		return format.Format(mean, min(format.Decimals(mean), 1))
	}
	row := podsRow{
		Profile: p.Name, Runs: format.Count(len(p.Runs)),
		Scheduled:     mean(func(r *result.Run) float64 { return float64(r.Scheduled) }),
		Unschedulable: mean(func(r *result.Run) float64 { return float64(r.Unschedulable) }),
		NotArrived:    mean(func(r *result.Run) float64 { return float64(r.NotArrived) }),
		Mean:          mean(func(r *result.Run) float64 { return r.PendingSeconds.Mean }),
		P50:           mean(func(r *result.Run) float64 { return r.PendingSeconds.P50 }),
		P95:           mean(func(r *result.Run) float64 { return r.PendingSeconds.P95 }),
		Max:           mean(func(r *result.Run) float64 { return r.PendingSeconds.Max }),
	}
	pods := map[string]int{}
	for i := range p.Runs {
		for text, n := range p.Runs[i].Reasons {
			pods[text] += n
		}
	}
	if interrupted := p.Interrupted(); interrupted > 0 {
		row.Interrupted = fmt.Sprintf("%d interrupted", interrupted)
	}
	texts := result.MostFrequent(pods)
	for _, text := range texts[:min(len(texts), maxReasons)] {
		row.Reasons = append(row.Reasons, reason{format.Things(pods[text], "pod"), shorten(text, maxReasonLength)})
	}
	row.MoreReasons = len(texts) - len(row.Reasons)
	return row
}

// shorten truncates a text to a number of characters.
func shorten(text string, length int) string {
	if runes := []rune(text); len(runes) > length {
		return string(runes[:length-1]) + "…"
	}
	return text
}
