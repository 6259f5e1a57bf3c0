package format

import "testing"

func TestExplainJSON(t *testing.T) {
	for document, want := range map[string]string{
		`{"a": [1, "b"]}`:  "<nil>",
		" ":                "found nothing",
		`{"a": [1`:         "ends too early: a closing quote or bracket is missing",
		"{\"a\": 1,\n}":    `line 2, column 1: found "}": remove the comma before it`,
		`{"a": 1,, "b"}`:   `line 1, column 9: found ",": remove the comma before it`,
		`{"a": AVG}`:       `line 1, column 7: found "AVG": texts must be in double quotes`,
		`{"a": True}`:      `line 1, column 7: found "True": must be true, false or null`,
		`{a: 1}`:           `line 1, column 2: found "a": texts must be in double quotes`,
		`{'a': 1}`:         `line 1, column 2: found "'": texts must be in double quotes`,
		`{“a”: 1}`:         `line 1, column 2: found "“": texts must be in double quotes`,
		"# a\nb: 1":        `line 1, column 1: found "#": JSON has no comments`,
		`{"a": 1 "b": 2}`:  `line 1, column 9: found "\"": a comma is missing before it`,
		`{"a" 1}`:          `line 1, column 6: found "1": a colon is missing before it`,
		"{\"a\": \"b\n\"}": `line 1, column 9: found "\n": the text has no closing quote`,
		`{} {}`:            `line 1, column 4: found "{": must be one value`,
		`{"a": +1}`:        `line 1, column 7: found "+": is not expected here`,
		"\xff":             `line 1, column 1: found "\xff": is not expected here`,
	} {
		got := "<nil>"
		if err := ExplainJSON([]byte(document)); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %s, want %s", document, got, want)
		}
	}
}
