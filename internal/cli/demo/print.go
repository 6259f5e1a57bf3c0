package demo

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/plimsoll-k8s/plimsoll/internal/cli/base"
	"github.com/plimsoll-k8s/plimsoll/internal/demo"
	"github.com/plimsoll-k8s/plimsoll/internal/demo/fleet"
	"github.com/plimsoll-k8s/plimsoll/internal/demo/node"
	"github.com/plimsoll-k8s/plimsoll/internal/demo/slack"
)

// printRow prints the name of a scenario and its result, wrapped beside the name.
func printRow(out io.Writer, name, text string) {
	fmt.Fprintln(out, base.Wrap(fmt.Sprintf("%-18s ", name), text, base.DefaultWidth))
}

// summary returns the results of a scenario in one sentence.
func summary(name string, results []demo.Result) string {
	if err := demo.Check(results); err != nil {
		return err.Error()
	}
	switch name {
	case slack.Scenario:
		return summarizeSlack(results)
	case fleet.Scenario:
		return summarizeFleet(results)
	}
	s, _ := node.Find(name)
	return fmt.Sprintf("%s (%s)", s.Shows, summarizePods(results))
}

// summarizePods returns the pods that Plimsoll places on another node than the default profile.
func summarizePods(results []demo.Result) string {
	byDefault, moves := map[string]string{}, []string{}
	pods := map[string][]string{} // by move
	for _, r := range results {
		if r.Profile == demo.DefaultProfile {
			byDefault[r.Pod] = r.Node
			continue
		}
		if byDefault[r.Pod] == r.Node {
			continue
		}
		move := byDefault[r.Pod] + " -> " + r.Node
		if pods[move] == nil {
			moves = append(moves, move)
		}
		pods[move] = append(pods[move], r.Pod)
	}
	for i, move := range moves {
		moves[i] = strings.Join(pods[move], ", ") + ": " + move
	}
	if len(moves) == 0 {
		return "the same nodes"
	}
	return strings.Join(moves, "; ")
}

// summarizeSlack returns how long the pods of the burst waited.
func summarizeSlack(results []demo.Result) string {
	slowest := map[string]float64{}
	for _, r := range results {
		slowest[r.Profile] = max(slowest[r.Profile], r.Seconds)
	}
	return fmt.Sprintf("pods of a burst wait up to %.2f s %s, up to %.2f s %s",
		slowest[slack.WithoutSlack], slack.WithoutSlack, slowest[slack.WithSlack], slack.WithSlack)
}

// summarizeFleet returns the number of decisions, and the time of the slowest decision.
func summarizeFleet(results []demo.Result) string {
	slowest := slices.MaxFunc(results, func(a, b demo.Result) int { return int(1000 * (a.Fleet.Seconds - b.Fleet.Seconds)) })
	return fmt.Sprintf(
		"placements follow the resources of clusters, stay, or go where workloads fit, as configured (%d decisions, the slowest after %.2f s)",
		len(results),
		slowest.Fleet.Seconds,
	)
}
