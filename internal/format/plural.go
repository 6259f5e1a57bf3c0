package format

import (
	"fmt"
	"slices"
	"strings"
)

// integer are the types of numbers of things.
type integer interface {
	~int | ~int32 | ~int64 | ~uint64
}

// Of returns a number and a noun in the form that the number requires: "1 node", "0 nodes", "2 policies". The noun is a
// regular singular.
func Of[N integer](n N, noun string) string {
	return fmt.Sprintf("%d %s", n, Noun(n, noun))
}

// Noun returns a noun in the form that a number requires, without the number.
func Noun[N integer](n N, noun string) string { return Form(n, noun, regular(noun)) }

// Part returns a part of a number of things: "0 of 1 node", "1 of 2 nodes".
func Part[N integer](n, all N, noun string) string { return fmt.Sprintf("%d of %s", n, Of(all, noun)) }

// Are returns a number and a noun as the subject of a sentence: "1 node is", "2 nodes are".
func Are[N integer](n N, noun string) string { return Of(n, noun) + " " + Form(n, "is", "are") }

// PartAre returns a part of a number of things as the subject of a sentence: "0 of 1 node is", "2 of 3 nodes are".
func PartAre[N integer](n, all N, noun string) string {
	if all == 1 {
		return Part(n, all, noun) + " is"
	}
	return Part(n, all, noun) + " " + Form(n, "is", "are")
}

// Form returns the singular form of a word if n is 1, otherwise the plural: Form(n, "is", "are").
func Form[N integer](n N, one, others string) string {
	if n == 1 {
		return one
	}
	return others
}

// regular returns the plural of a regular noun.
func regular(noun string) string {
	if stem, ok := strings.CutSuffix(noun, "y"); ok && !strings.HasSuffix(stem, "a") && !strings.HasSuffix(stem, "e") {
		return stem + "ies"
	}
	return noun + "s"
}

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
