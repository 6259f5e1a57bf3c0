package placement

import (
	"errors"
	"fmt"
	"slices"
	"testing"
)

func builtIn(name string, weight int32) Configuration {
	return Configuration{Type: "BuiltIn", BuiltIn: name, Weight: weight}
}

func addOn(resource, score string, weight int32) Configuration {
	return Configuration{Type: "AddOn", Coordinate: &Coordinate{resource, score}, Weight: weight}
}

func TestResolve(t *testing.T) {
	tests := map[string]struct {
		mode   Mode
		listed []Configuration
		want   []string // name x weight
	}{
		"the defaults":    {Additive, nil, []string{"Balance x 1", "Steady x 1"}},
		"nothing":         {Exact, nil, nil},
		"added":           {Additive, []Configuration{builtIn("ResourceRatioCPU", 2)}, []string{"Balance x 1", "Steady x 1", "ResourceRatioCPU x 2"}},
		"exact":           {Exact, []Configuration{builtIn("ResourceRatioCPU", 2)}, []string{"ResourceRatioCPU x 2"}},
		"default changed": {Additive, []Configuration{builtIn("ResourceAllocatableMemory", -10), builtIn("Steady", 3)}, []string{"Balance x 1", "ResourceAllocatableMemory x -10", "Steady x 3"}},
		"default off":     {Additive, []Configuration{builtIn("Balance", 0)}, []string{"Steady x 1"}},
		"no type":         {Exact, []Configuration{{BuiltIn: "Steady", Weight: 10}}, []string{"Steady x 10"}},
		"all kinds": {
			Exact,
			[]Configuration{
				builtIn("Balance", 1), builtIn("Steady", 1), builtIn("ResourceRatioCPU", 1), builtIn("ResourceRatioMemory", 1),
				builtIn("ResourceAllocatableCPU", 1), builtIn("ResourceAllocatableMemory", 1), addOn("plimsoll", "cpu", 1),
			},
			[]string{
				"Balance x 1", "Steady x 1", "ResourceRatioCPU x 1", "ResourceRatioMemory x 1",
				"ResourceAllocatableCPU x 1", "ResourceAllocatableMemory x 1", "AddOn/plimsoll/cpu x 1",
			},
		},
		"two scores of one resource": {
			Exact,
			[]Configuration{addOn("plimsoll", "cpu", 1), addOn("plimsoll", "memory", 2)},
			[]string{"AddOn/plimsoll/cpu x 1", "AddOn/plimsoll/memory x 2"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			resolved, err := Resolve(tc.mode, tc.listed)
			var got []string
			for _, p := range resolved {
				got = append(got, fmt.Sprintf("%s x %d", p.Name(), p.Weight))
			}
			if err != nil || !slices.Equal(got, tc.want) {
				t.Errorf("got %q (error: %v), want %q", got, err, tc.want)
			}
		})
	}
}

func TestResolveErrors(t *testing.T) {
	const allowed = "allowed are Balance, Steady, ResourceRatioCPU, ResourceRatioMemory, ResourceAllocatableCPU, ResourceAllocatableMemory"
	steady := builtIn("Steady", 1)
	tests := map[string]struct {
		listed []Configuration
		want   string
	}{
		"unknown name":    {[]Configuration{steady, builtIn("ResourceRatioCpu", 1)}, `configurations[1].scoreCoordinate.builtIn: unknown prioritizer "ResourceRatioCpu": ` + allowed},
		"not a built-in":  {[]Configuration{builtIn("AddOn", 1)}, `configurations[0].scoreCoordinate.builtIn: unknown prioritizer "AddOn": ` + allowed},
		"no name":         {[]Configuration{{Weight: 1}}, "configurations[0].scoreCoordinate.builtIn: a name is required: " + allowed},
		"unknown type":    {[]Configuration{{Type: "Addon"}}, `configurations[0].scoreCoordinate.type: unknown type "Addon": allowed are BuiltIn, AddOn`},
		"too heavy":       {[]Configuration{steady, builtIn("Balance", 11)}, "configurations[1].weight: 11 is not in [-10, 10]"},
		"too negative":    {[]Configuration{addOn("a", "b", -11)}, "configurations[0].weight: -11 is not in [-10, 10]"},
		"twice":           {[]Configuration{steady, builtIn("Balance", 1), builtIn("Steady", 0)}, "configurations[2].scoreCoordinate.builtIn: Steady is listed already, as configurations[0]"},
		"add-on twice":    {[]Configuration{addOn("a", "b", 1), addOn("a", "b", 2)}, "configurations[1].scoreCoordinate.addOn: AddOn/a/b is listed already, as configurations[0]"},
		"no add-on":       {[]Configuration{{Type: "AddOn"}}, "configurations[0].scoreCoordinate.addOn: required with type AddOn"},
		"no resourceName": {[]Configuration{addOn("", "b", 1)}, "configurations[0].scoreCoordinate.addOn.resourceName: required with type AddOn"},
		"no scoreName":    {[]Configuration{addOn("a", "", 1)}, "configurations[0].scoreCoordinate.addOn.scoreName: required with type AddOn"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			resolved, err := Resolve(Additive, tc.listed)
			if _, typed := errors.AsType[*ConfigurationError](err); !typed || err.Error() != tc.want || resolved != nil {
				t.Errorf("got %v and error\n%v\nwant\n%s", resolved, err, tc.want)
			}
		})
	}
}

func TestParseMode(t *testing.T) {
	for name, want := range map[string]Mode{"": Additive, "Additive": Additive, "Exact": Exact} {
		if got, err := ParseMode(name); got != want || err != nil {
			t.Errorf("mode %q is %v (error: %v), want %v", name, got, err, want)
		}
	}
	_, err := ParseMode("exact")
	if want := `mode: unknown mode "exact": allowed are Additive, Exact`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
