package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/plimsoll-k8s/plimsoll/lab/experiment/scenarios"
)

// levelOfUse has the results at a mean use of the pods, as a multiple of their requests.
type levelOfUse struct {
	use float64
	*experiment
}

// readLevels reads the folders of levels, which are named by their use, and returns them in its order.
func readLevels(from string) (levels []levelOfUse, err error) {
	folders, err := os.ReadDir(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, folder := range folders {
		use, err := strconv.ParseFloat(folder.Name(), 64)
		if err != nil || use <= 0 {
			return nil, fmt.Errorf("%s: invalid name %q: must be a level of use such as 0.45", from, folder.Name())
		}
		e, err := read(filepath.Join(from, folder.Name()), scenarios.Published)
		if err != nil {
			return nil, err
		}
		levels = append(levels, levelOfUse{use, e})
	}
	slices.SortFunc(levels, func(a, b levelOfUse) int { return int(math.Copysign(1, a.use-b.use)) })
	return levels, err
}

// overload returns the overload of a profile, summed over the scenarios.
func (l levelOfUse) overload(profile string) float64 {
	return sum(l.family(scenarios.NoBestEffort), profile, overload)
}

// levelTable writes the overload at each level of use, and how many fewer nodes have the overload of the first profile.
func (e *experiment) levelTable(w io.Writer) error {
	profiles := e.levels[0].profiles
	fmt.Fprintf(w, "| mean use of the requests | %s | fewer nodes with %s |\n|---|%s\n", strings.Join(profiles, " | "),
		strings.Join(profiles[1:], " | with "), strings.Repeat("---:|", 2*len(profiles)-1))
	for _, l := range e.levels {
		fmt.Fprintf(w, "| %.2f |", l.use)
		for _, name := range profiles {
			fmt.Fprintf(w, " %s |", auto(l.overload(name)))
		}
		for _, name := range profiles[1:] {
			text := "-"
			if use := e.useWithOverload(name, l.overload(profiles[0])); use > 0 {
				text = fmt.Sprintf("%.0f %%", 100*(1-l.use/use))
			}
			fmt.Fprintf(w, " %s |", text)
		}
		fmt.Fprintln(w)
	}
	return nil
}

// useWithOverload returns the level of use at which a profile has an overload, interpolated between the logarithms of the overload of the
// levels, or 0 if it is beyond them.
func (e *experiment) useWithOverload(profile string, minutes float64) float64 {
	for i := 1; i < len(e.levels); i++ {
		below, above := e.levels[i-1], e.levels[i]
		from, to := math.Log(max(1, below.overload(profile))), math.Log(max(1, above.overload(profile)))
		if at := math.Log(max(1, minutes)); from <= at && at <= to {
			return below.use + (above.use-below.use)*(at-from)/(to-from)
		}
	}
	return 0
}
