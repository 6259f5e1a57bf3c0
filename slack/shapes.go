package slack

import (
	"slices"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// maximalShapes returns the shapes that no other shape exceeds in all resources, by descending CPU.
// Amounts that fit any shape fit one of these.
func maximalShapes(shapes map[resources.Amounts]int) []resources.Amounts {
	all := make([]resources.Amounts, 0, len(shapes))
	for shape := range shapes {
		all = append(all, shape)
	}
	slices.SortFunc(all, func(a, b resources.Amounts) int {
		switch {
		case b.Less(a):
			return -1
		case a.Less(b):
			return 1
		}
		return 0
	})
	// CPU does not increase from one shape to the next: a shape is maximal if it has more memory than
	// all shapes before it.
	out := all[:0]
	memory := int64(-1)
	for _, shape := range all {
		if shape[resources.Memory] > memory {
			out = append(out, shape)
			memory = shape[resources.Memory]
		}
	}
	return slices.Clip(out)
}

// fitsAny reports whether one of the shapes has enough of all resources.
func fitsAny(a resources.Amounts, shapes []resources.Amounts) bool {
	return slices.ContainsFunc(shapes, a.FitsIn)
}
