package placement

import "fmt"

// Mode says what becomes of the default prioritizers.
type Mode uint8

const (
	// Additive keeps those that are not listed, with their weight.
	Additive Mode = iota
	// Exact drops them.
	Exact
)

// ParseMode reads the name of a mode; "" is Additive.
func ParseMode(name string) (Mode, error) {
	switch name {
	case "", "Additive":
		return Additive, nil
	case "Exact":
		return Exact, nil
	}
	return 0, &ConfigurationError{Index: -1, Field: "mode", Problem: fmt.Sprintf("unknown mode %q: allowed are Additive, Exact", name)}
}

// The weights that users may give.
const (
	minWeight = -10
	maxWeight = 10
	// defaultWeight is that of Balance and Steady in mode Additive.
	defaultWeight = 1
)

// Configuration is a prioritizer as a user lists it.
type Configuration struct {
	// Type is "BuiltIn" or "AddOn"; "" is BuiltIn.
	Type string
	// BuiltIn is the name, for the former; Coordinate is for the latter, nil where
	// it is not given. What is not of the type is not looked at.
	BuiltIn    string
	Coordinate *Coordinate
	// Weight in [-10, 10]; 0 disables the prioritizer.
	Weight int32
}

// ConfigurationError is a mistake in a prioritizer policy. It names no path:
// put "spec.prioritizerPolicy." and the place before it.
type ConfigurationError struct {
	// Index of the configuration, -1 if the mistake is not in one of them.
	Index int
	// Field within it, as in "scoreCoordinate.builtIn".
	Field string
	// Problem says what is wrong and what is allowed.
	Problem string
}

// Error returns the place and the problem, as in
// "configurations[1].weight: 11 is not in [-10, 10]".
func (e *ConfigurationError) Error() string {
	if e.Index < 0 {
		return e.Field + ": " + e.Problem
	}
	return fmt.Sprintf("configurations[%d].%s: %s", e.Index, e.Field, e.Problem)
}

// Resolve returns the prioritizers that a policy asks for: in mode Additive the
// defaults that it does not list, Balance and Steady with weight 1; then those
// that it lists, in their order, without those of weight 0. The scores of AddOns
// are left to fill in. The error is a *ConfigurationError that tells the first
// mistake.
func Resolve(mode Mode, listed []Configuration) ([]Prioritizer, error) {
	all := make([]Prioritizer, 0, len(listed)+2)
	for i, configuration := range listed {
		p, err := configuration.prioritizer(i)
		if err != nil {
			return nil, err
		}
		if first := indexOf(all, p); first >= 0 {
			return nil, &ConfigurationError{
				i, p.field(),
				fmt.Sprintf("%s is listed already, as configurations[%d]", p.Name(), first),
			}
		}
		all = append(all, p)
	}
	var enabled []Prioritizer
	if mode == Additive {
		for _, kind := range []Kind{Balance, Steady} {
			if p := (Prioritizer{Kind: kind, Weight: defaultWeight}); indexOf(all, p) < 0 {
				enabled = append(enabled, p)
			}
		}
	}
	for _, p := range all {
		if p.Weight != 0 {
			enabled = append(enabled, p)
		}
	}
	return enabled, nil
}

// prioritizer returns what the configuration at this index of a list means.
func (c *Configuration) prioritizer(index int) (Prioritizer, error) {
	fail := func(field, format string, args ...any) (Prioritizer, error) {
		return Prioritizer{}, &ConfigurationError{index, field, fmt.Sprintf(format, args...)}
	}
	p := Prioritizer{Weight: c.Weight}
	switch c.Type {
	case "", "BuiltIn":
		kind, known := BuiltIn(c.BuiltIn)
		switch {
		case c.BuiltIn == "":
			return fail("scoreCoordinate.builtIn", "a name is required: allowed are %s", allowedBuiltIns())
		case !known:
			return fail("scoreCoordinate.builtIn", "unknown prioritizer %q: allowed are %s", c.BuiltIn, allowedBuiltIns())
		}
		p.Kind = kind
	case "AddOn":
		switch {
		case c.Coordinate == nil:
			return fail("scoreCoordinate.addOn", "required with type AddOn")
		case c.Coordinate.ResourceName == "":
			return fail("scoreCoordinate.addOn.resourceName", "required with type AddOn")
		case c.Coordinate.ScoreName == "":
			return fail("scoreCoordinate.addOn.scoreName", "required with type AddOn")
		}
		p.Kind, p.Coordinate = AddOn, *c.Coordinate
	default:
		return fail("scoreCoordinate.type", "unknown type %q: allowed are BuiltIn, AddOn", c.Type)
	}
	if c.Weight < minWeight || c.Weight > maxWeight {
		return fail("weight", "%d is not in [%d, %d]", c.Weight, minWeight, maxWeight)
	}
	return p, nil
}

// field is where a configuration says which prioritizer it means.
func (p *Prioritizer) field() string {
	if p.Kind == AddOn {
		return "scoreCoordinate.addOn"
	}
	return "scoreCoordinate.builtIn"
}

// indexOf returns where the prioritizer is, with whatever weight, or -1.
func indexOf(all []Prioritizer, p Prioritizer) int {
	for i := range all {
		if all[i].Kind == p.Kind && all[i].Coordinate == p.Coordinate {
			return i
		}
	}
	return -1
}
