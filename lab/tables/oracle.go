package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
	"github.com/plimsoll-k8s/plimsoll/lab/experiment/scenarios"
)

// familyTargets are the targets of the subject: its share of the oracle's gain, and its overload relative to the best other formula.
var familyTargets = []struct {
	family     scenarios.Family
	gain, best float64
}{{scenarios.BestEffort, 0.9, 0.5}, {scenarios.NoBestEffort, 0.6, 0.85}}

// bestOther returns the profile with the lowest sum of a figure over scenarios, other than the baseline, the subject and the oracle;
// "" if none was run.
func (e *experiment) bestOther(of []*scenario, figure result.Definition) (best string) {
	for _, name := range e.profiles[1:] {
		if name == e.subject() || name == scenarios.Oracle {
			continue
		}
		if best == "" || sum(of, name, figure) < sum(of, best, figure) {
			best = name
		}
	}
	return best
}

// gain returns the text of the share of the oracle's gain that a profile reaches: by how much it has less overload than the
// baseline, divided by how much less the oracle has. It is "-" if the oracle gains nothing or was not run.
func (e *experiment) gain(of []*scenario, profile string) string {
	share, ok := e.gainShare(of, profile)
	if !ok {
		return "-"
	}
	return fmt.Sprintf("%.0f %%", math.Round(100*share)+0) // without a minus before 0
}

func (e *experiment) gainShare(of []*scenario, profile string) (share float64, ok bool) {
	if !slices.Contains(e.profiles, scenarios.Oracle) {
		return 0, false
	}
	before := sum(of, e.baseline(), overload)
	possible := before - sum(of, scenarios.Oracle, overload)
	return (before - sum(of, profile, overload)) / possible, possible > 0
}

// oracle returns the overload of the oracle, "-" if it was not run.
func (e *experiment) oracle(of []*scenario) string {
	if !slices.Contains(e.profiles, scenarios.Oracle) {
		return "-"
	}
	return auto(sum(of, scenarios.Oracle, overload))
}

// scenarioTable writes a row for each scenario.
func (e *experiment) scenarioTable(w io.Writer) error {
	verdicts, err := e.verdicts(e.subject(), overload)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "| %s | %s | best other formula | %s | oracle | share of the oracle's gain | %s less %s [95 %% interval] | "+
		"after Holm's correction |\n", overload.Title(), e.baseline(), e.subject(), e.subject(), e.baseline())
	fmt.Fprintln(w, "|---|---:|---:|---:|---:|---:|---:|---|")
	for i := range e.scenarios {
		v, one := &verdicts[i], []*scenario{&e.scenarios[i]}
		fmt.Fprintf(w, "| %s | %s | %s | %s | %s | %s | %s [%s, %s] | %s |\n", e.scenarios[i].Name, auto(v.before), e.other(one),
			auto(v.after), e.oracle(one), e.gain(one, e.subject()),
			signed(v.after-v.before), signed(v.interval.Low), signed(v.interval.High), v.text())
	}
	for _, name := range e.missing {
		fmt.Fprintf(w, "| %s | not run | | | | | | |\n", name)
	}
	return nil
}

// other returns the overload and the name of the best other formula.
func (e *experiment) other(of []*scenario) string {
	best := e.bestOther(of, overload)
	if best == "" {
		return "-"
	}
	return fmt.Sprintf("%s (%s)", auto(sum(of, best, overload)), best)
}

// sumTable writes a row for each family.
func (e *experiment) sumTable(w io.Writer) error {
	fmt.Fprintf(w, "| overload minutes, summed over scenarios | scenarios | %s | best other formula | %s | oracle | %s, relative to %s | "+
		"share of the oracle's gain |\n", e.baseline(), e.subject(), e.subject(), e.baseline())
	fmt.Fprintln(w, "|---|---:|---:|---:|---:|---:|---:|---:|")
	for _, family := range scenarios.Families {
		in := e.family(family)
		if len(in) == 0 {
			continue
		}
		before, own := sum(in, e.baseline(), overload), sum(in, e.subject(), overload)
		fmt.Fprintf(w, "| %s | %d | %s | %s | %s | %s | %s | %s |\n", family, len(in), auto(before), e.other(in), auto(own),
			e.oracle(in), ratio(own, before), e.gain(in, e.subject()))
	}
	return nil
}

// gainTable writes the share of the oracle's gain of all profiles.
func (e *experiment) gainTable(w io.Writer) error {
	fmt.Fprintf(w, "| share of the oracle's gain | %s |\n|---|%s\n", strings.Join(e.profiles[1:], " | "),
		strings.Repeat("---:|", len(e.profiles)-1))
	for _, family := range scenarios.Families {
		in := e.family(family)
		if len(in) == 0 {
			continue
		}
		fmt.Fprintf(w, "| %s |", family)
		for _, name := range e.profiles[1:] {
			fmt.Fprintf(w, " %s |", e.gain(in, name))
		}
		fmt.Fprintln(w)
	}
	return nil
}

// lossTable writes the scenarios in which the subject has more overload than the baseline or the best other formula.
func (e *experiment) lossTable(w io.Writer) error {
	fmt.Fprintf(w, "| overload, node minutes, where %s has more | %s | than %s | than the best other formula |\n|---|---:|---:|---:|\n",
		e.subject(), e.subject(), e.baseline())
	losses := 0
	for i := range e.scenarios {
		one := []*scenario{&e.scenarios[i]}
		own, baseline, other := sum(one, e.subject(), overload), "", ""
		if before := sum(one, e.baseline(), overload); own > before {
			baseline = auto(before)
		}
		if best := e.bestOther(one, overload); best != "" && own > sum(one, best, overload) {
			other = e.other(one)
		}
		if baseline+other != "" {
			losses++
			fmt.Fprintf(w, "| %s | %s | %s | %s |\n", e.scenarios[i].Name, auto(own), baseline, other)
		}
	}
	fmt.Fprintf(w, "\n%d of %d scenarios.\n", losses, len(e.scenarios))
	return nil
}

// targetTable writes the targets of the subject and whether they are met.
func (e *experiment) targetTable(w io.Writer) error {
	row := func(name, value string, met bool) {
		fmt.Fprintf(w, "| %s | %s | %s |\n", name, value, map[bool]string{false: "no", true: "yes"}[met])
	}
	fmt.Fprintf(w, "| target of %s | value | met |\n|---|---:|---|\n", e.subject())
	for _, figure := range testedFigures {
		verdicts, err := e.verdicts(e.subject(), figure)
		if err != nil {
			return err
		}
		worse := 0
		for i := range verdicts {
			if verdicts[i].worse < level {
				worse++
			}
		}
		name := fmt.Sprintf("%s: worse than %s in no scenario, at 95 %% after Holm's correction", figure.Title(), e.baseline())
		if !e.testable() {
			fmt.Fprintf(w, "| %s | %d of %d | too few seeds, %d |\n", name, worse, len(verdicts), len(e.seeds))
			continue
		}
		row(name, fmt.Sprintf("%d of %d", worse, len(verdicts)), worse == 0)
	}
	for _, target := range familyTargets {
		in := e.family(target.family)
		share, ok := e.gainShare(in, e.subject())
		row(fmt.Sprintf("share of the oracle's gain, %s: at least %.0f %%", target.family, 100*target.gain), e.gain(in, e.subject()),
			ok && share >= target.gain)
		if best := e.bestOther(in, overload); best != "" {
			own, other := sum(in, e.subject(), overload), sum(in, best, overload)
			row(fmt.Sprintf("overload, %s: at most %v times the best other formula, %s", target.family, target.best, best),
				ratio(own, other), own <= target.best*other)
		}
	}
	return nil
}
