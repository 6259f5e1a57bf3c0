package slack

import (
	"fmt"
	"testing"
)

func TestPack(t *testing.T) {
	// Machines of 4 CPUs and 16 GiB, pods of 1 CPU and 2 GiB.
	const gib = 1 << 30
	shape, one := amounts{4000, 16 * gib, 110}, amounts{1000, 2 * gib, 1}
	full, empty := machine{"full", amounts{0, 8 * gib, 106}, true}, machine{"empty", shape, false}
	half := machine{"half", amounts{2000, 12 * gib, 108}, true}
	for name, tc := range map[string]struct {
		machines []machine
		requests []amounts
		want     packing
	}{
		"nothing":                       {nil, nil, packing{}},
		"no requests":                   {[]machine{full, empty}, nil, packing{idle: []string{"empty"}}},
		"no machines, 4 of 5 fit one":   {nil, times(5, one), packing{added: 2}},
		"all fit an empty machine":      {[]machine{full, empty}, times(4, one), packing{}},
		"one does not fit":              {[]machine{full, empty}, times(5, one), packing{added: 1}},
		"machines with pods first":      {[]machine{empty, half}, times(2, one), packing{idle: []string{"empty"}}},
		"then machines without pods":    {[]machine{empty, half}, times(3, one), packing{}},
		"one of two empty machines":     {[]machine{empty, {"spare", shape, false}}, times(4, one), packing{idle: []string{"spare"}}},
		"memory is exhausted first":     {nil, times(3, amounts{100, 10 * gib, 1}), packing{added: 3}},
		"pod slots are exhausted first": {[]machine{{"a", amounts{4000, 16 * gib, 1}, true}}, times(2, one), packing{added: 1}},
		"fits no machine":               {[]machine{empty}, []amounts{{5000, gib, 1}, one}, packing{unschedulable: 1}},
		"fits only an existing machine": {[]machine{{"large", amounts{8000, 16 * gib, 110}, false}}, []amounts{{5000, gib, 1}}, packing{}},
		"small pods fill the gaps":      {nil, []amounts{{3000, gib, 1}, {3000, gib, 1}, one, one}, packing{added: 2}},
	} {
		before := fmt.Sprint(tc.machines)
		if got := pack(tc.machines, shape, tc.requests); fmt.Sprint(got) != fmt.Sprint(tc.want) {
			t.Errorf("%s: %+v, want %+v", name, got, tc.want)
		}
		if fmt.Sprint(tc.machines) != before {
			t.Errorf("%s: the machines were changed", name)
		}
	}
}

// times returns n equal requests.
func times(n int, a amounts) (all []amounts) {
	for range n {
		all = append(all, a)
	}
	return all
}
