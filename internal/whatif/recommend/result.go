package recommend

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/format"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/engine"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/scaling"
)

// APIVersion and Kind identify the document.
const (
	APIVersion = "recommend.plimsoll.dev/v1"
	Kind       = "Recommendation"
)

// Result is the document.
type Result struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Command    string `json:"command,omitempty"`
	Source     string `json:"source"`
	// Goals states the goals in words. WaitPercent is the percentage of the pods whose wait
	// counts, 0 if waits are not judged.
	Goals       string  `json:"goals"`
	WaitPercent float64 `json:"waitPercent"`
	// Saving states what is saved, as a number. CostUnit is what costs are: cost if nodes have prices, node hours or CPU hours.
	Saving   string `json:"saving"`
	CostUnit string `json:"costUnit"`
	// Verdict has one sentence: what to change, and the cost, overload, kills and waits before and after.
	Verdict result.Verdict `json:"verdict"`
	// Reached is set if the goals are reached on the parts to fit, and Confirmed if they are reached in sum on the parts to confirm.
	Reached   bool `json:"reached"`
	Confirmed bool `json:"confirmed"`
	// Missed are the goals that are missed on the parts to fit, or else on those to confirm.
	Missed []string `json:"missed,omitempty"`
	// Fit and Confirm are the parts of the recording.
	Fit     Span `json:"fit"`
	Confirm Span `json:"confirm"`
	// PartsReached is the number of parts of Confirm in which the goals are reached.
	PartsReached int `json:"partsReached"`
	// Confirmation has the configuration in force, the recommended one, cheaper ones that miss the goals there, and the levers alone,
	// on the parts to confirm.
	Confirmation []Row `json:"confirmation"`
	// Frontier has the configurations for which no cheaper one has neither more overload nor a longer wait, on the parts to fit.
	Frontier  []Row `json:"frontier"`
	Simulated int   `json:"simulations"`
	// Profile is the name of the recommended profile. Requests and Policy are empty if they are kept.
	Profile  string                       `json:"profile"`
	Requests []recording.WorkloadRequests `json:"requests,omitempty"`
	Policy   *v1alpha1.ResourceSlack      `json:"policy,omitempty"`
	Kept     []keptWorkloads              `json:"workloadsThatKeepTheirRequests,omitempty"`
	// Nodes says which nodes at the end of the recording can go with the recommended requests, and what keeps the others. It is nil with
	// an autoscaler and for an answer that is not confirmed.
	Nodes   *scaling.NodesExplanation `json:"nodes,omitempty"`
	Assumed []string                  `json:"assumed"`

	// Autoscaler has the simulated nodes, with the measured time until an idle node is removed.
	Autoscaler scaling.Spec `json:"-"`

	// uses are the workloads, and constraints what acts on their requests.
	uses        map[resources.Workload]*workloadUse
	constraints *constraints
	// FirstLook is set if all usage is generated around one reading, so that there is nothing to apply.
	FirstLook bool `json:"firstLook,omitempty"`

	// profile is the recommended profile, and profileIsKept is set if it is in force.
	profile       engine.NamedConfig
	profileIsKept bool
}

// Span is a number of consecutive parts of the recording.
type Span struct {
	From  time.Time `json:"from"`
	To    time.Time `json:"to"`
	Parts int       `json:"parts"`
}

// Row is a configuration with its figures.
type Row struct {
	Name string `json:"name"`
	// Mark is set for the configuration in force, the recommended one and others with a role.
	Mark string `json:"mark,omitempty"`
	// Cost, Overload and Saturation of CPU in node minutes, and Killed pods are per day.
	Cost       float64 `json:"costPerDay"`
	Overload   float64 `json:"overloadMinutesPerDay"`
	Saturation float64 `json:"cpuSaturationMinutesPerDay"`
	Killed     float64 `json:"killedPerDay"`
	// WaitSeconds is the percentile of the wait.
	WaitSeconds float64 `json:"waitSeconds"`
	// NodesPeak is the highest number of nodes.
	NodesPeak int `json:"nodesPeak"`
	// CostDifference is the difference of the cost per day from the configuration in force, paired by part.
	CostDifference *result.Difference `json:"costDifference,omitempty"`
}

// assume adds a sentence to the assumptions.
func (r *Result) assume(text string, args ...any) {
	r.Assumed = append(r.Assumed, fmt.Sprintf(text, args...))
}

// newResult returns a result without figures. Times are in seconds of the recording.
func newResult(o *Options, r *recording.Recording, start, fitEnd, end int64) *Result {
	at := func(second int64) time.Time { return r.About.From.Add(time.Duration(second) * time.Second) }
	out := &Result{
		APIVersion: APIVersion, Kind: Kind, Source: "recording: " + o.Source.Recording, Fit: Span{From: at(start), To: at(fitEnd)},
		Confirm: Span{From: at(fitEnd), To: at(end)}, uses: map[resources.Workload]*workloadUse{},
	}
	for _, missing := range r.About.Missing {
		out.assume("missing in the recording: %s: %s", missing.What, missing.Why)
	}
	return out
}

// text states the goals.
func (g *Goals) text() string {
	overload, killed := "nodes are not overloaded for longer than in force", "not more pods are killed"
	if g.Overload != nil {
		overload = fmt.Sprintf("nodes are overloaded for at most %s node minutes a day", format.Plain(*g.Overload))
	}
	if g.Killed != nil {
		killed = fmt.Sprintf("at most %s pods are killed a day", format.Plain(*g.Killed))
	}
	if g.Overload == nil || g.Killed == nil {
		killed += fmt.Sprintf(" (%g %% more counts as equal)", 100*tolerance)
	}
	var goals []string
	if !g.NoUsage {
		goals = append(goals, overload, killed)
	}
	if !g.NoWait {
		goals = append(goals, fmt.Sprintf("%g %% of the pods wait at most %s for a node", g.Percent, g.Wait))
		if !g.HasWait {
			goals = append(goals, "or not longer than in force")
		}
	}
	return strings.Join(goals, ", ")
}

// row returns the figures of a candidate on parts.
func (s *search) row(c *candidate, parts []int) Row {
	f := sum(partsOf(c, parts))
	row := Row{
		Name: c.name(), Mark: c.mark, Cost: f.cost / f.days, Overload: f.overload / f.days, Saturation: f.saturation / f.days,
		Killed: f.killed / f.days, WaitSeconds: s.goals.wait(f).Seconds(), NodesPeak: f.nodesPeak,
	}
	if c != s.inForce {
		costs := func(c *candidate) (values []float64) {
			for _, p := range partsOf(c, parts) {
				values = append(values, p.cost/p.days)
			}
			return values
		}
		row.CostDifference = result.PairedDifference(costs(s.inForce), costs(c))
	}
	return row
}

// maxTries is how many of the cheapest candidates are tried on the parts to confirm until one meets the goals there: the cheapest one may
// be within the goals on the parts to fit by chance. On real usage (Bitbrains), the third was the first to meet them.
const maxTries = 3

// firstConfirmed returns the first of the cheapest candidates that meets the goals on the parts to confirm, and the cheaper ones, which
// miss them; or best and all that were tried if none meets them. Nothing is tried if best does not reach the goals on the parts to fit.
func (s *search) firstConfirmed(best *candidate, reached bool, parts []int) (confirmed *candidate, failed []*candidate, err error) {
	for next := best; reached && len(failed) < maxTries; {
		if next == nil || next == s.inForce { // none is left among those that were raced
			if len(failed) == 0 || len(s.untried) == 0 {
				break
			}
			_, err = s.racePairs()
		} else if err = s.simulate([]*candidate{s.inForce, next}, parts...); err == nil {
			if s.meets(next, parts, true) {
				next, err = s.fewestChanges(next, parts)
				return next, failed, err
			}
			failed = append(failed, next)
		}
		if err != nil {
			return nil, nil, err
		}
		next = s.cheapest(slices.DeleteFunc(s.complete(), func(c *candidate) bool { return slices.Contains(failed, c) }), s.order)
	}
	return best, failed, nil
}

// candidatesToConfirm returns the configuration in force, the winner, the candidates that failed before it, each lever of the winner alone,
// and the defaults of the Vertical Pod Autoscaler with its slack, each configuration once and marked.
func (s *search) candidatesToConfirm(best *candidate, mark string, failed []*candidate) (confirmed []*candidate) {
	base := s.inForce
	add := func(c *candidate, mark string) {
		if !slices.ContainsFunc(confirmed, c.isSame) {
			c.mark = mark
			confirmed = append(confirmed, c)
		}
	}
	add(base, "in force")
	add(best, mark)
	for _, c := range failed {
		add(c, "not confirmed")
	}
	add(&candidate{profile: best.profile, requests: base.requests, slack: base.slack}, "profile alone")
	add(&candidate{profile: base.profile, requests: best.requests, slack: base.slack}, "requests alone")
	add(&candidate{profile: base.profile, requests: base.requests, slack: best.slack}, "slack alone")
	for i := range s.rules {
		if s.rules[i].isVPA {
			add(&candidate{profile: base.profile, requests: &s.rules[i], slack: best.slack}, "VPA's requests")
		}
	}
	return confirmed
}

// confirm simulates the winner, the configuration in force, the levers alone and the defaults of the Vertical Pod Autoscaler on the parts
// to confirm, and completes the result.
func (s *search) confirm(r *Result, best *candidate, reached bool) error {
	parts := make([]int, s.parts-s.fit)
	for i := range parts {
		parts[i] = s.fit + i
	}
	mark := map[bool]string{true: "recommended", false: "nearest"}[reached]
	best, failed, err := s.firstConfirmed(best, reached, parts)
	if err != nil {
		return err
	}
	confirmed := s.candidatesToConfirm(best, mark, failed)
	for i, part := range parts {
		s.Report(fmt.Sprintf("part %d of %d to confirm: %s", i+1, len(parts), format.Of(len(confirmed), "configuration")))
		if err := s.simulate(confirmed, part); err != nil {
			return err
		}
	}
	for _, c := range confirmed {
		r.Confirmation = append(r.Confirmation, s.row(c, parts))
	}
	for _, c := range s.frontier() {
		r.Frontier = append(r.Frontier, s.row(c, s.order))
	}
	r.Reached, r.Simulated = reached, s.simulated
	r.Fit.Parts, r.Confirm.Parts = s.fit, len(parts)
	judged := s.order
	if reached {
		judged = parts
	}
	r.Missed = s.misses(sum(partsOf(best, judged)), sum(partsOf(s.inForce, judged)))
	r.Confirmed = reached && len(r.Missed) == 0
	for _, part := range parts {
		if s.meets(best, []int{part}, true) {
			r.PartsReached++
		}
	}
	s.conclude(r, best, parts)
	if r.Confirmed && len(failed) > 0 {
		r.Verdict.Sentence += " Cheaper on the first two thirds, but not confirmed: " + namesOf(failed) + "."
	}
	return nil
}

// namesOf returns the descriptions of candidates.
func namesOf(candidates []*candidate) string {
	names := make([]string, len(candidates))
	for i, c := range candidates {
		names[i] = c.name()
	}
	return strings.Join(names, "; ")
}

// conclude sets the verdict, what to apply, and the assumptions.
func (s *search) conclude(r *Result, best *candidate, parts []int) {
	cost, before := s.row(best, parts), s.row(s.inForce, parts)
	answer, use := result.AnswerOf(result.Definition{}, cost.CostDifference, before.Cost), best
	if d := cost.CostDifference; r.Confirmed && answer != result.Better && (d == nil || d.Less < len(parts)) { // a change must pay
		use = s.inForce
	}
	r.Profile, r.profile, r.profileIsKept = use.profile.Name, use.profile, use.profile.Name == s.Current.Name
	r.Requests = use.requests.table
	r.Kept = append(r.Kept, use.requests.kept...)
	if use.slack.name != s.inForce.slack.name {
		r.Policy = use.slack.policy
	}
	if r.CostUnit = "cost"; s.CountsNodes {
		r.CostUnit = s.hours()
	}
	r.Saving = r.savingText(use == s.inForce, before.Cost, cost.Cost)
	v := &r.Verdict
	v.Candidate = best.name()
	effect := s.effect(&before, &cost)
	switch {
	case best == s.inForce && r.Reached:
		v.Answer = result.Equal
		v.Sentence = "Keep what is in force: of the configurations tried, none that meets the goals is clearly cheaper."
	case best == s.inForce:
		v.Answer = result.CannotTell
		v.Sentence = fmt.Sprintf("Keep what is in force: no configuration meets the goals, and none comes nearer: %s.%s",
			strings.Join(r.Missed, "; "), s.shortWait())
	case !r.Reached:
		v.Answer = result.CannotTell
		v.Sentence = fmt.Sprintf("No configuration meets the goals. The nearest is %s, which misses on the first two thirds: %s. "+
			"On the last third: %s", v.Candidate, strings.Join(r.Missed, "; "), effect)
	case !r.Confirmed:
		v.Answer = result.CannotTell
		v.Sentence = fmt.Sprintf("Not confirmed: %s meets the goals on the first two thirds, but misses on the last third: %s. %s",
			v.Candidate, strings.Join(r.Missed, "; "), effect)
	case use != best:
		v.Answer = answer
		v.Sentence = fmt.Sprintf("Keep what is in force: the cheapest that meets the goals, %s, is not cheaper in each part. %s",
			v.Candidate, effect)
	default: // cheaper in each part
		v.Answer = result.Better
		v.Sentence = fmt.Sprintf("Use %s. %s", v.Candidate, effect)
	}
	v.Sentence += s.fewestText(use, parts) + r.belowP99Text()
	if best != s.inForce {
		v.Sentence += confirmedText(r, len(parts))
	}
	r.assume("each part begins with %s that do not count, in which the pods that run are scheduled again",
		time.Duration(s.settle)*time.Second)
	r.assume("pods use what they used in the recording: with lower requests they could be throttled where they were not, and with higher " +
		"requests use more")
	for i := range r.Kept {
		r.assume("%s", r.Kept[i].summary())
	}
	r.assumePatches()
}

// fewestText states which share of the saving with the requests of all workloads the requests of the fewest have, if there are fewer.
func (s *search) fewestText(use *candidate, parts []int) string {
	if use.whole == nil || len(use.requests.table) == 0 {
		return ""
	}
	before := s.row(s.inForce, parts).Cost
	whole := before - s.row(use.whole, parts).Cost
	if whole <= 0 {
		return ""
	}
	return fmt.Sprintf(" %s make %.0f %% of what the requests of all would save.",
		format.Part(len(use.requests.table), len(use.whole.requests.table), "workload"),
		min(100, 100*(before-s.row(use, parts).Cost)/whole))
}

// belowP99Text counts the patches with less memory than p99 of the use, which they state.
func (r *Result) belowP99Text() string {
	count := 0
	for i := range r.Requests {
		if u := r.useOf(&r.Requests[i]); u != nil && u.isBelowP99(&r.Requests[i]) {
			count++
		}
	}
	if count == 0 {
		return ""
	}
	return fmt.Sprintf(" %s, marked in their patches, request less memory than p99 of their use.",
		format.Part(count, len(r.Requests), "workload"))
}

// confirmedText states in how many of the parts to confirm the goals are reached.
func confirmedText(r *Result, parts int) string {
	reached := "goals reached"
	if r.Confirmed && r.PartsReached < parts {
		reached = "the goals are reached over the whole third, but alone"
	}
	return fmt.Sprintf(" Simulated on the last third of the recording, which the search has not seen; %s in %d of %s.",
		reached, r.PartsReached, format.Of(parts, "part"))
}

// shortWait names the configuration with the fewest misses, and then the lowest cost, that reaches the goal of waits, with what it misses.
func (s *search) shortWait() string {
	base := sum(partsOf(s.inForce, s.order))
	text, fewest, lowest := "", math.MaxInt, 0.0
	for _, c := range s.complete() {
		f := sum(partsOf(c, s.order))
		missed := s.misses(f, base)
		if s.goals.isReached(f, base) && (len(missed) < fewest || len(missed) == fewest && f.cost < lowest) {
			text, fewest, lowest = fmt.Sprintf(" %s reaches the wait, for %s in place of %s a day, but misses: %s.", c.name(),
				format.Plain(f.cost/f.days), format.Plain(base.cost/base.days), strings.Join(missed, "; ")), len(missed), f.cost
		}
	}
	return text
}

// hours returns what a cost is without prices.
func (s *search) hours() string {
	if s.countsCPUs {
		return "CPU hours of nodes"
	}
	return "node hours"
}

// savingText states a saving.
func (r *Result) savingText(isKept bool, before, after float64) string {
	if isKept {
		return "Saves nothing: keep what is in force."
	}
	head, verb, share := "", "saves", 100*(1-after/max(before, 1e-9))
	if !r.Confirmed {
		head, verb = "Not confirmed: ", "would save"
	}
	if share < 0 {
		verb, share = strings.Replace(verb, "save", "cost", 1), -share
	}
	text := fmt.Sprintf(
		"%s%s %.0f %%: %s %s in place of %s a day.",
		head,
		verb,
		share,
		r.CostUnit,
		format.Plain(after),
		format.Plain(before),
	)
	return strings.ToUpper(text[:1]) + text[1:]
}

// effect states the figures before and after.
func (s *search) effect(before, after *Row) string {
	text := "Cost"
	switch less := before.NodesPeak - after.NodesPeak; {
	case s.CountsNodes && less > 0 && !s.countsCPUs:
		text = fmt.Sprintf("%d of %s %s not needed. Node hours", less, format.Of(before.NodesPeak, "node"), format.Form(less, "is", "are"))
	case s.CountsNodes:
		text = strings.ToUpper(s.hours()[:1]) + s.hours()[1:]
	}
	text += fmt.Sprintf(" %s in place of %s a day", format.Plain(after.Cost), format.Plain(before.Cost))
	if d := after.CostDifference; d != nil && before.Cost > 0 {
		text += " (" + s.costChange(d, before.Cost) + ")"
	}
	change := func(figure, unit string, before, after float64) string {
		switch {
		case before == 0 && after == 0:
			return "no " + figure + " with either"
		case after == before:
			return fmt.Sprintf("%s %s%s with either", figure, format.Plain(after), unit)
		}
		return fmt.Sprintf("%s %s in place of %s%s", figure, format.Plain(after), format.Plain(before), unit)
	}
	if !s.goals.NoUsage {
		text = fmt.Sprintf("%s, %s, %s", text, change("overload", " node minutes a day", before.Overload, after.Overload),
			change("pods killed", " a day", before.Killed, after.Killed))
	}
	switch {
	case s.goals.NoWait:
	case before.WaitSeconds+after.WaitSeconds == 0:
		text += fmt.Sprintf(", p%g of waits 0 s with either", s.goals.Percent)
	default:
		text += fmt.Sprintf(", p%g of waits %.0f s in place of %.0f s", s.goals.Percent, after.WaitSeconds, before.WaitSeconds)
	}
	return text + "."
}

// costChange states a difference of costs as a percentage of the cost before.
func (s *search) costChange(d *result.Difference, before float64) string {
	word, share := "less", -100*d.Mean/before
	if share < 0 {
		word, share = "more", -share
	}
	if share < 0.5 {
		return "about the same"
	}
	text := fmt.Sprintf("%.0f %% %s", share, word)
	switch {
	case d.Interval == nil:
	case d.Less > 0 && d.Equal+d.More == 0 && (d.Constant() || !d.Interval.ExcludesZero):
		text += " in all parts"
	case !d.Interval.ExcludesZero:
		text += ", which can be chance"
	default:
		low, high := 100*math.Abs(d.Interval.Low)/before, 100*math.Abs(d.Interval.High)/before
		text += fmt.Sprintf(", interval %.0f to %.0f %%", min(low, high), max(low, high))
	}
	return text
}
