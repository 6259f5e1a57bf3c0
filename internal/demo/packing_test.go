package demo

import (
	"fmt"
	"testing"
)

func TestPack(t *testing.T) {
	// Machines of 4 CPUs and 16 GiB; a pod, or a placeholder, of 1 and 2.
	const gib = 1 << 30
	shape, one := room{4000, 16 * gib, 110}, room{1000, 2 * gib, 1}
	full, empty := machine{"full", room{0, 8 * gib, 106}, true}, machine{"empty", shape, false}
	half := machine{"half", room{2000, 12 * gib, 108}, true}
	for name, tc := range map[string]struct {
		machines []machine
		wishes   []room
		want     packing
	}{
		"nothing":                          {nil, nil, packing{}},
		"nobody wants anything":            {[]machine{full, empty}, nil, packing{idle: []string{"empty"}}},
		"no machine yet, 5 of 4 to one":    {nil, times(5, one), packing{more: 2}},
		"room on an empty one":             {[]machine{full, empty}, times(4, one), packing{}},
		"one more than that":               {[]machine{full, empty}, times(5, one), packing{more: 1}},
		"those with pods first":            {[]machine{empty, half}, times(2, one), packing{idle: []string{"empty"}}},
		"then the others":                  {[]machine{empty, half}, times(3, one), packing{}},
		"one of two empty ones":            {[]machine{empty, {"spare", shape, false}}, times(4, one), packing{idle: []string{"spare"}}},
		"memory runs out first":            {nil, times(3, room{100, 10 * gib, 1}), packing{more: 3}},
		"slots run out first":              {[]machine{{"a", room{4000, 16 * gib, 1}, true}}, times(2, one), packing{more: 1}},
		"too large for any":                {[]machine{empty}, []room{{5000, gib, 1}, one}, packing{homeless: 1}},
		"too large to add, but there is":   {[]machine{{"large", room{8000, 16 * gib, 110}, false}}, []room{{5000, gib, 1}}, packing{}},
		"the small ones fill what is left": {nil, []room{{3000, gib, 1}, {3000, gib, 1}, one, one}, packing{more: 2}},
	} {
		before := fmt.Sprint(tc.machines)
		if got := pack(tc.machines, shape, tc.wishes); fmt.Sprint(got) != fmt.Sprint(tc.want) {
			t.Errorf("%s: %+v, want %+v", name, got, tc.want)
		}
		if fmt.Sprint(tc.machines) != before {
			t.Errorf("%s: the machines were changed", name)
		}
	}
}

func times(n int, r room) (all []room) {
	for range n {
		all = append(all, r)
	}
	return all
}
