package format

import (
	"fmt"
	"slices"
	"strings"
)

// Abbreviate joins items with a separator. If there are more than limit, it joins the first items
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

// Shorten returns a text of at most limit bytes. It replaces the end of a longer text by
// an ellipsis.
func Shorten(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit-3], "") + "..."
}
