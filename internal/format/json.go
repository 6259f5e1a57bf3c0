package format

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// jsonToken matches the first word or character of a text.
var jsonToken = regexp.MustCompile(`^(?:[\pL\pN_]+|(?s:.))`)

// ExplainJSON returns the first error of a document in JSON with its place and what to do, nil if there is none.
func ExplainJSON(document []byte) error {
	syntax, isSyntax := errors.AsType[*json.SyntaxError](json.Unmarshal(document, new(json.RawMessage)))
	switch {
	case len(bytes.TrimSpace(document)) == 0:
		return errors.New("found nothing")
	case !isSyntax:
		return nil
	case strings.HasPrefix(syntax.Error(), "unexpected end"):
		return errors.New("ends too early: a closing quote or bracket is missing")
	}
	before, text := document[:syntax.Offset-1], syntax.Error()
	found, last := string(jsonToken.Find(document[len(before):])), " "+string(bytes.TrimSpace(before))
	problem := "is not expected here"
	switch {
	case strings.Contains(text, "in string literal"):
		problem = "the text has no closing quote"
	case last[len(last)-1] == ',' && strings.Contains("]},", found):
		problem = "remove the comma before it"
	case found == "#" || found == "/":
		problem = "JSON has no comments"
	case strings.Contains(text, "after object key:"), strings.Contains(text, "after array element"):
		problem = "a comma is missing before it"
	case strings.Contains(text, "after object key"):
		problem = "a colon is missing before it"
	case strings.Contains(text, "after top-level"):
		problem = "must be one value"
	case slices.Contains([]string{"true", "false", "null", "none"}, strings.ToLower(found)):
		problem = "must be true, false or null"
	case strings.Contains("'“”‘’", found), len(found) > 1, found[0]|0x20 >= 'a' && found[0]|0x20 <= 'z':
		problem = "texts must be in double quotes"
	}
	line, column := bytes.Count(before, []byte("\n"))+1, len(before)-bytes.LastIndexByte(before, '\n')
	return fmt.Errorf("line %d, column %d: found %q: %s", line, column, found, problem)
}
