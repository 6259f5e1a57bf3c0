package chaos

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/plimsoll-k8s/plimsoll/test/support/apiproxy"
)

// A schedule is a list of rounds, and a round a list of steps. Its text form has one step per line:
//
//	round
//	fault leader hang 3s
//	kill leader
//	stop leader 20s
//	compact
//	cluster cluster-3 50
//	uncluster cluster-3
//	placement two 3
//	unplacement two
//	delete-decision two
//	break-status two
//	pods 44
//	rate general 20%
//	unrate general
//	delete-object general
//	mirror 3
//	fit fit-1 8
//	unfit fit-1
//	capacity cluster-1 12
//	uncapacity cluster-1 late
//	start 50%
//	kill-later leader 200ms
//
// To shrink a schedule that fails, save the printed lines, delete some and run them with -schedule.
type schedule [][]step

// step is a step of a round.
type step struct {
	verb string
	args []string
}

// String returns the step in one line.
func (s step) String() string { return strings.Join(append([]string{s.verb}, s.args...), " ") }

// String returns the text form.
func (s schedule) String() string {
	var b strings.Builder
	for _, round := range s {
		b.WriteString("round\n")
		for _, step := range round {
			fmt.Fprintln(&b, step)
		}
	}
	return b.String()
}

// The targets of faults, which are resolved when a fault begins.
const (
	leader  = "leader"
	standby = "standby"
)

// stepArgs are the checks of the arguments of each verb.
var stepArgs = map[string][]func(string) bool{
	"fault":           {isTarget, isFault, isDuration},
	"kill":            {isTarget},
	"kill-later":      {isTarget, isDuration},
	"stop":            {isTarget, isDuration},
	"compact":         {},
	"cluster":         {isAny, isNumber},
	"uncluster":       {isAny},
	"placement":       {isAny, isNumber},
	"unplacement":     {isAny},
	"delete-decision": {isAny},
	"break-status":    {isAny},
	"pods":            {isNumber},
	"rate":            {isPolicy, isPercentage},
	"unrate":          {isPolicy},
	"delete-object":   {isPolicy},
	"mirror":          {isNumber},
	"fit":             {isFit, isNumber},
	"unfit":           {isFit},
	"capacity":        {isMember, isNumber},
	"uncapacity":      {isMember, isReport},
	"start":           {isPercentage},
}

func isAny(string) bool           { return true }
func isTarget(text string) bool   { return text == leader || text == standby }
func isFault(text string) bool    { return slices.Contains(apiproxy.Faults, apiproxy.Fault(text)) }
func isPolicy(text string) bool   { return slices.Contains(policyNames, text) }
func isFit(text string) bool      { return slices.Contains(fitNames, text) }
func isMember(text string) bool   { return slices.Contains(memberNames, text) }
func isReport(text string) bool   { return slices.Contains(reportKinds, text) }
func isNumber(text string) bool   { n, err := strconv.Atoi(text); return err == nil && n >= 0 }
func isDuration(text string) bool { d, err := time.ParseDuration(text); return err == nil && d > 0 }
func isPercentage(text string) bool {
	number, found := strings.CutSuffix(text, "%")
	return found && isNumber(number)
}

// parseSchedule reads the text form.
func parseSchedule(r io.Reader) (schedule, error) {
	var out schedule
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		words := strings.Fields(lines.Text())
		switch {
		case len(words) == 0 || strings.HasPrefix(words[0], "#"):
			continue
		case words[0] == "round":
			out = append(out, nil)
			continue
		case len(out) == 0:
			return nil, fmt.Errorf("line %d: %q is before the first round", n, lines.Text())
		}
		checks, known := stepArgs[words[0]]
		args := words[1:]
		isValid := known && len(args) == len(checks)
		for i := 0; isValid && i < len(args); i++ {
			isValid = checks[i](args[i])
		}
		if !isValid {
			return nil, fmt.Errorf("line %d: invalid step %q", n, lines.Text())
		}
		out[len(out)-1] = append(out[len(out)-1], step{words[0], args})
	}
	return out, lines.Err()
}

// generator generates a random schedule.
type generator struct{ random *rand.Rand }

// generate returns a schedule of n rounds for a seed.
func generate(seed uint64, n int) schedule {
	g := generator{rand.New(rand.NewPCG(seed, 0))}
	var out schedule
	for range n {
		out = append(out, g.round())
	}
	return out
}

func (g generator) target() string { return pick(g.random, leader, leader, standby) }

func (g generator) seconds(from, to int) string {
	return fmt.Sprint(from+g.random.IntN(to-from+1), "s")
}

// round returns up to two faults, at most one replica that is killed or stopped, and changes. Sometimes two placements are decided within
// a second, and the leader is killed before or after it has written the decisions.
func (g generator) round() (steps []step) {
	add := func(verb string, args ...string) { steps = append(steps, step{verb, args}) }
	for range g.random.IntN(3) {
		duration := g.seconds(1, 6)
		if g.random.IntN(6) == 0 {
			duration = g.seconds(11, 18) // longer than a leader tries to renew its lease
		}
		add("fault", g.target(), string(pick(g.random, apiproxy.Faults...)), duration)
	}
	switch g.random.IntN(8) {
	case 0, 1:
		add("kill", g.target())
	case 2:
		add("stop", g.target(), g.seconds(18, 22)) // longer than the lease
	case 3, 4, 5:
		replicas := fmt.Sprint(4 + g.random.IntN(5))
		add("fault", leader, string(pick(g.random, apiproxy.Hang, apiproxy.Drop, apiproxy.Reject500)), "2s")
		add("fit", fitNames[g.random.IntN(2)], replicas)
		add("fit", fitNames[2+g.random.IntN(2)], replicas)
		add("kill-later", leader, fmt.Sprint(50+g.random.IntN(600), "ms"))
	}
	if g.random.IntN(4) == 0 {
		add("compact")
	}
	for range 2 + g.random.IntN(6) {
		verb, args := g.change()
		add(verb, args...)
	}
	return steps
}

// change returns a random change of the world.
func (g generator) change() (verb string, args []string) {
	cluster, placement := pick(g.random, clusterNames...), pick(g.random, placementNames...)
	policy := pick(g.random, policyNames...)
	if g.random.IntN(2) == 0 {
		return g.fitChange()
	}
	switch g.random.IntN(14) {
	case 0, 1, 2:
		return "cluster", []string{cluster, fmt.Sprint(1 + g.random.IntN(100))}
	case 3:
		return "uncluster", []string{cluster}
	case 4, 5:
		return "placement", []string{placement, fmt.Sprint(g.random.IntN(5))}
	case 6:
		return "unplacement", []string{placement}
	case 7:
		return "delete-decision", []string{placement}
	case 12:
		return "break-status", []string{placement}
	case 13:
		return "mirror", []string{fmt.Sprint(g.random.IntN(6))}
	case 8:
		return "pods", []string{fmt.Sprint(20 + g.random.IntN(40))}
	case 9:
		return "rate", []string{policy, fmt.Sprint(10*(1+g.random.IntN(5)), "%")}
	case 10:
		return "unrate", []string{policy}
	default:
		return "delete-object", []string{policy}
	}
}

// fitChange returns a random change of the placements with workloads and of the clusters for them.
func (g generator) fitChange() (verb string, args []string) {
	name, cluster := pick(g.random, fitNames...), pick(g.random, memberNames...)
	switch g.random.IntN(10) {
	case 0, 1, 2:
		return "fit", []string{name, fmt.Sprint(1 + g.random.IntN(10))}
	case 3:
		return "unfit", []string{name}
	case 4, 5, 6:
		return "capacity", []string{cluster, fmt.Sprint(4 + g.random.IntN(16))}
	case 7:
		return "uncapacity", []string{cluster, pick(g.random, reportKinds...)}
	default:
		return "start", []string{fmt.Sprint(10*g.random.IntN(11), "%")}
	}
}

// pick returns a random element.
func pick[T any](random *rand.Rand, list ...T) T { return list[random.IntN(len(list))] }
