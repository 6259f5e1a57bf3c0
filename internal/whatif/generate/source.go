// Package generate generates what an input lacks: clusters, as recordings that are marked as generated, and the limits and the usage of
// pods. A Source gives the complete input of a run.
package generate

import (
	"cmp"
	"fmt"

	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
)

// Source specifies the input of runs, which is read or generated.
type Source struct {
	recording.Source
	// Generate is a specification in the syntax of ParseGenerated, empty for an input that is read.
	Generate string `json:"generate,omitempty"`
	// Limits are generated for the pods of generated clusters, DefaultLimits if it is zero.
	Limits Limits `json:"limits,omitzero"`
	// Usage is generated for pods whose usage is not known: a text for ParseUsage, Beta if it is empty.
	Usage string `json:"usage,omitempty"`
}

// UsageSpec returns the specification of generated usage. Errors name the flag.
func (s Source) UsageSpec() (UsageSpec, error) {
	spec, err := ParseUsage(cmp.Or(s.Usage, Beta))
	if err != nil {
		return spec, fmt.Errorf("--usage: %w", err)
	}
	return spec, nil
}

// Input reads or generates the input, and generates the usage that it lacks. Generated data depends on the seed. Errors name the flag or
// the file, and the line.
func (s Source) Input(seed uint64) (in recording.Input, err error) {
	spec, err := s.UsageSpec()
	if err != nil {
		return in, err
	}
	if s.Generate == "" {
		in, err = s.Source.Input()
	} else {
		in, err = s.generated(seed)
	}
	if err != nil {
		return recording.Input{}, err
	}
	if err := AddUsage(&in, spec, seed); err != nil {
		return recording.Input{}, fmt.Errorf("--usage: %w", err)
	}
	return in, nil
}

// generated returns the input of the generated cluster.
func (s Source) generated(seed uint64) (in recording.Input, err error) {
	r, err := s.cluster(seed)
	if err != nil {
		return in, err
	}
	part, err := r.Part(0, 0)
	if err != nil {
		return in, err
	}
	in = part.Input(s.Source)
	in.Name = "generated: " + s.Generate
	in.SetRequests(s.Requests)
	return in, nil
}

// cluster returns the recording of the generated cluster.
func (s Source) cluster(seed uint64) (*recording.Recording, error) {
	spec, err := ParseGenerated(s.Generate)
	if err != nil {
		return nil, fmt.Errorf("--generate: %w", err)
	}
	return spec.Recording(seed, cmp.Or(s.Limits, DefaultLimits), s.Tail), nil
}
