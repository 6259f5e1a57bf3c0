package slack

import "slices"

// widest returns the shapes that no other shape has at least as much of
// everything as, from the one with the most CPU to the one with the least. What
// fits a node of the pool fits one of these.
func widest(shapes map[Amounts]int) []Amounts {
	all := make([]Amounts, 0, len(shapes))
	for shape := range shapes {
		all = append(all, shape)
	}
	slices.SortFunc(all, func(a, b Amounts) int {
		switch {
		case b.less(a):
			return -1
		case a.less(b):
			return 1
		}
		return 0
	})
	// With two resources, one pass over the sorted shapes finds them: CPU falls,
	// so that a shape adds something only if it has more memory than all before.
	out := all[:0]
	memory := int64(-1)
	for _, shape := range all {
		if shape[Memory] > memory {
			out = append(out, shape)
			memory = shape[Memory]
		}
	}
	return slices.Clip(out)
}

// fitsOne reports whether the amounts fit one of the shapes, in all resources
// together.
func fitsOne(a Amounts, shapes []Amounts) bool {
	return slices.ContainsFunc(shapes, a.FitsIn)
}
