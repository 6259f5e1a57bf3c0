package facts

import (
	"fmt"
	"slices"
	"strings"
)

// Abbreviate joins items with a separator. If there are more than limit, it joins the first ones
// and appends how many more there are.
func Abbreviate(items []string, limit int, separator string) string {
	if len(items) <= limit {
		return strings.Join(items, separator)
	}
	more := fmt.Sprintf("and %d more", len(items)-limit)
	if separator == ", " {
		return strings.Join(items[:limit], separator) + " " + more
	}
	return strings.Join(append(slices.Clone(items[:limit]), more), separator)
}
