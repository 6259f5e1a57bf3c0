package doccheck

import (
	"fmt"

	"github.com/spf13/cobra"
)

// Taken is what a program makes of the command lines that are written of it.
type Taken struct {
	// Pages and Examples are how many there are in the pages and in its own help.
	Pages, Examples int
	// Wrong are the lines that it does not take, and why.
	Wrong []error
}

// TakenBy has a program, which is made anew for each, take every command line of its
// name in the pages of a project and in its own help, as Check does.
func TakenBy(project, name string, program func() *cobra.Command) (Taken, error) {
	lines, err := Of(project, name)
	if err != nil {
		return Taken{}, err
	}
	examples, err := Examples(name+" --help", program())
	if err != nil {
		return Taken{}, err
	}
	taken := Taken{Pages: len(lines), Examples: len(examples)}
	for _, line := range append(lines, examples...) {
		if _, err := line.Check(program()); err != nil {
			taken.Wrong = append(taken.Wrong, fmt.Errorf("%s: %w", line, err))
		}
	}
	return taken, nil
}
