package format

import (
	"fmt"
	"strings"
)

// InvalidValue returns the error of a value that is not allowed.
func InvalidValue(name string, value any, allowed string) error {
	if text, ok := value.(string); ok {
		value = fmt.Sprintf("%q", text)
	}
	return fmt.Errorf("%s: invalid value %v: must be %s", name, value, allowed)
}

// Suggestion returns the end of an error about an unknown name: "; did you mean NAME?" with the most similar known name, or with a
// name that it begins, "" if no name is similar. A name that differs in half of its letters is similar only if it begins with the same.
func Suggestion(name string, known []string) string {
	hint, least := "", min((len(name)+2)/3, 3)+1
	for _, other := range known {
		edits := distance(strings.ToLower(name), strings.ToLower(other))
		if len(name) > 2 && strings.HasPrefix(other, name) {
			edits = min(edits, 1)
		}
		if edits < least && (len(name) != 1 || edits == 0) &&
			(2*edits < len(name) || strings.EqualFold(name[:1], other[:min(1, len(other))])) {
			hint, least = "; did you mean "+other+"?", edits
		}
	}
	return hint
}

// distance returns the number of bytes to insert, delete or replace in order to turn a into b (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			edits := diagonal
			if a[i] != b[j] {
				edits = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], edits
		}
	}
	return row[len(b)]
}
