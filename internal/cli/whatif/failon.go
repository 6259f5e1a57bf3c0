package whatif

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/plimsoll-k8s/plimsoll/internal/format"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
)

// condition is a condition of --fail-on: FIGURE>NUMBER or FIGURE<NUMBER. It applies to the mean over the seeds, or after
// "difference." to the difference from the baseline: if the difference has a confidence interval, the complete interval must be
// beyond the number.
type condition struct {
	text       string
	figure     string
	difference bool
	below      bool
	number     float64
}

func parseCondition(text string) (condition, error) {
	operator := strings.IndexAny(text, "<>")
	if operator < 0 {
		const allowed = "a figure, > or <, and a number, such as 'overloadMinutes>10'"
		return condition{}, fmt.Errorf("invalid condition %.60q: must be %s", text, allowed)
	}
	c := condition{text: text, below: text[operator] == '<'}
	var err error
	c.figure, c.difference = strings.CutPrefix(strings.TrimSpace(text[:operator]), "difference.")
	if strings.ContainsAny(text[:operator]+text[operator+1:], "<>=") {
		return c, fmt.Errorf("invalid condition %.60q: must have > or <, without =", text)
	}
	if _, found := result.FigureByName(c.figure); !found {
		var names []string
		for _, d := range result.Figures {
			names = append(names, d.Name)
		}
		return c, fmt.Errorf("unknown figure %.60q: must be one of %s%s", c.figure, strings.Join(names, ", "),
			format.Suggestion(c.figure, names))
	}
	c.number, err = strconv.ParseFloat(strings.TrimSpace(text[operator+1:]), 64)
	if err != nil || math.IsNaN(c.number) || math.IsInf(c.number, 0) {
		return c, fmt.Errorf("invalid condition %.60q: must have a finite number after %c", text, text[operator])
	}
	return c, nil
}

// evaluate returns the first profile with which the condition is true. The baseline counts only if it is the only profile.
func (c condition) evaluate(s *result.Scenario) (profile string, isTrue bool, err error) {
	profiles := s.Profiles
	if len(profiles) > 1 {
		profiles = profiles[1:]
	} else if c.difference {
		return "", false, fmt.Errorf("difference.%s: requires a second profile", c.figure)
	}
	for i := range profiles {
		figure, found := profiles[i].Figures[c.figure]
		if !found {
			d, _ := result.FigureByName(c.figure)
			return "", false, fmt.Errorf("found no %s with the profile %s: requires %s", c.figure, profiles[i].Name,
				requirements[d.Requires])
		}
		value := figure.Mean
		if d := figure.Difference; c.difference {
			if value = d.Mean; d.Interval != nil && c.below {
				value = d.Interval.High
			} else if d.Interval != nil {
				value = d.Interval.Low
			}
		}
		if value > c.number && !c.below || value < c.number && c.below {
			return profiles[i].Name, true, nil
		}
	}
	return "", false, nil
}
