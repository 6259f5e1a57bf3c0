package slack

import "slices"

// maximalShapes returns the shapes that no other shape exceeds in all resources, by descending CPU.
// amounts that fit any shape fit one of these.
func maximalShapes(shapes map[amounts]int) []amounts {
	all := make([]amounts, 0, len(shapes))
	for shape := range shapes {
		all = append(all, shape)
	}
	slices.SortFunc(all, func(a, b amounts) int {
		switch {
		case b.less(a):
			return -1
		case a.less(b):
			return 1
		}
		return 0
	})
	// cpuIndex does not increase from one shape to the next: a shape is maximal if it has more memory than
	// all shapes before it.
	out := all[:0]
	memory := int64(-1)
	for _, shape := range all {
		if shape[memoryIndex] > memory {
			out = append(out, shape)
			memory = shape[memoryIndex]
		}
	}
	return slices.Clip(out)
}

// fitsAny reports whether one of the shapes has enough of all resources.
func fitsAny(a amounts, shapes []amounts) bool {
	return slices.ContainsFunc(shapes, a.FitsIn)
}
