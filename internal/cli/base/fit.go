package base

import (
	"slices"

	"github.com/jedib0t/go-pretty/v6/text"
)

// The widths of what go-pretty draws beside the cells, and the width to which a column of words is wrapped before
// columns are continued below.
const (
	borderWidth     = 1
	columnBorder    = 3
	comfortableSize = 14
)

// column is a column of a block: its index in the table, and its width, 0 for any width.
type column struct{ index, width int }

// blocks divides the columns so that each part fits a width, 0 for any. Each part begins with the first column.
func (t *Table) blocks(width int) [][]column {
	natural, minimum := t.sizes()
	var groups [][]int
	for i := range natural {
		switch {
		case natural[i] == 0 && t.hideEmpty:
		case len(groups) > 0 && t.attached[i+1]:
			groups[len(groups)-1] = append(groups[len(groups)-1], i)
		default:
			groups = append(groups, []int{i})
		}
	}
	total := func(indexes []int) int {
		sum := borderWidth
		for _, i := range indexes {
			sum += minimum[i] + columnBorder
		}
		return sum
	}
	parts := [][]int{groups[0]}
	for _, group := range groups[1:] {
		last := &parts[len(parts)-1]
		grown := slices.Concat(*last, group)
		if width == 0 || total(grown) <= width || len(*last) == len(groups[0]) {
			*last = grown
			continue
		}
		parts = append(parts, slices.Concat(groups[0], group))
	}
	blocks := make([][]column, 0, len(parts))
	for _, part := range parts {
		blocks = append(blocks, fitColumns(part, natural, minimum, width))
	}
	return blocks
}

// sizes returns the width of each column without wrapping, and the smallest one that it is wrapped to.
func (t *Table) sizes() (natural, minimum []int) {
	columns := len(t.header)
	for _, row := range t.rows {
		columns = max(columns, len(row))
	}
	natural, minimum = make([]int, columns), make([]int, columns)
	content := make([]bool, columns)
	for r, row := range append([]tableRow{t.header}, t.rows...) {
		for i, cell := range row {
			content[i] = content[i] || r > 0 && cell.Text != ""
			natural[i] = max(natural[i], text.LongestLineLen(cell.Text))
			minimum[i] = max(minimum[i], longestToken(cell.Text))
		}
	}
	for i := range natural {
		if !content[i] && t.hideEmpty {
			natural[i] = 0
		}
		minimum[i] = max(minimum[i], min(natural[i], comfortableSize))
	}
	return natural, minimum
}

// fitColumns returns the widths of columns whose sum with the borders is at most width: the widest columns are
// narrowed first, to their minimum if possible.
func fitColumns(indexes, natural, minimum []int, width int) []column {
	available := width - borderWidth - columnBorder*len(indexes)
	sizeAt := func(level, i int, lower []int) int { return max(1, min(natural[i], max(level, lower[i]))) }
	sum := func(level int, lower []int) (sum int) {
		for _, i := range indexes {
			sum += sizeAt(level, i, lower)
		}
		return sum
	}
	lower := minimum
	if width > 0 && sum(0, lower) > available {
		lower = make([]int, len(natural)) // words are broken
	}
	level := 1
	for width > 0 && level < width && sum(level+1, lower) <= available {
		level++
	}
	columns := make([]column, 0, len(indexes))
	for _, i := range indexes {
		c := column{index: i}
		if width > 0 {
			c.width = sizeAt(level, i, lower)
		}
		columns = append(columns, c)
	}
	return columns
}
