package slack

import "slices"

// maximalShapes returns the shapes that no other shape exceeds in all resources, by descending CPU.
// Amounts that fit any shape fit one of these.
func maximalShapes(shapes map[Amounts]int) []Amounts {
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
	// CPU does not increase from one shape to the next: a shape is maximal if it has more memory than
	// all shapes before it.
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

// fitsAny reports whether one of the shapes has enough of all resources.
func fitsAny(a Amounts, shapes []Amounts) bool {
	return slices.ContainsFunc(shapes, a.FitsIn)
}
