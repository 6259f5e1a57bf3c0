package resources

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/plimsoll-k8s/plimsoll/internal/format"
)

// ToJSON returns a document in YAML or JSON as JSON. Errors name the line and what is wrong with it.
func ToJSON(document []byte) ([]byte, error) {
	if len(bytes.TrimSpace(document)) == 0 {
		return nil, errors.New("found an empty file: must be YAML or JSON")
	}
	asJSON, err := yaml.YAMLToJSONStrict(document)
	if number, ok := errors.AsType[*json.UnsupportedValueError](err); ok {
		return nil, fmt.Errorf("found the number %s: numbers must be finite", number.Str)
	}
	return asJSON, explainYAML(err, document)
}

// ExplainYAML returns an error of the YAML decoder with its line and what is wrong, for a document that is not at hand.
func ExplainYAML(err error) error { return explainYAML(err, nil) }

var (
	// yamlError matches the first problem in an error of the YAML decoder, and its line.
	yamlError = regexp.MustCompile(`(?s)^(?:error converting YAML to JSON: )?yaml: (?:unmarshal errors:\s+)?(?:line (\d+): )?([^\n]*)`)
	// openQuote matches the beginning of a quoted value.
	openQuote = regexp.MustCompile(`(?:^\s*|[:,\[{-]\s*)(["'])`)
)

// problems are the problems that the YAML decoder reports, what is wrong in a file, and the number that it gives to the first line.
var problems = []struct {
	reported, meaning string
	first             int
}{
	{"did not find expected key", "wrong indentation: the fields of an object must begin in the same column", 0},
	{"did not find expected '-'", "wrong indentation: the items of a list must begin with - in the same column", 0},
	{"did not find expected ','", "a comma or bracket is missing, or the file is cut off", 0},
	{"did not find expected node", "a value or a closing bracket is missing", 0},
	{"could not find expected ':'", "must be FIELD: VALUE", 1},
	{"mapping values are not allowed", "wrong indentation, or a value with a colon: put such a value in quotes", 1},
	{"block sequence entries", "a list must begin on a line of its own, with - before each item", 1},
	{"found unexpected", "a quote is not closed", 1},
	{"found unknown escape", `found \ between double quotes: use single quotes`, 1},
	{"found ", "found a tab or a special character: indent with spaces, put values in quotes", 1},
	{"did not find expected alphabetic", "a value with * or & must be in quotes", 1},
	{"unknown anchor", "a value with * must be in quotes", 1},
	{`key "apiVersion" already set`, "found twice: objects must be separated by a line with ---", 1},
	{`key "`, "found twice: must be set once in an object", 1},
}

// explainYAML is ExplainYAML for a document, whose line is part of the error.
func explainYAML(err error, document []byte) error {
	match := yamlError.FindStringSubmatch(fmt.Sprint(err))
	if match == nil {
		return err
	}
	number, _ := strconv.Atoi(match[1]) // 0 if the decoder has none
	text := match[2]
	for i := 0; i < len(problems) && text == match[2]; i++ {
		if strings.HasPrefix(text, problems[i].reported) {
			text, number = problems[i].meaning, number+1-problems[i].first
			if key, _, ok := strings.Cut(
				strings.TrimPrefix(match[2], `key "`),
				`" already set`,
			); ok &&
				strings.HasPrefix(text, "found twice") {
				text = fmt.Sprintf("found %q twice", key) + strings.TrimPrefix(text, "found twice")
			}
		}
	}
	lines := strings.Split(string(bytes.TrimRight(document, "\n ")), "\n")
	if number = max(number, 1); document == nil {
		return fmt.Errorf("line %d: %s", number, text)
	}
	number = min(number, len(lines))
	for i, line := range lines[:number] {
		line = strings.ReplaceAll(line, `\"`, "")
		quote := openQuote.FindStringSubmatchIndex(line)
		isOpen := quote != nil && strings.Count(line[quote[2]:], line[quote[2]:quote[3]])%2 == 1
		if isOpen && (i+3 >= number || text == "a quote is not closed") {
			number, text = i+1, "a quote is not closed"
			break
		}
	}
	return fmt.Errorf("line %d, %q: %s", number, format.Shorten(strings.TrimSpace(lines[number-1]), maxValue), text)
}

// forPeople matches what kubectl prints for people: tables, descriptions and errors.
var forPeople = regexp.MustCompile(
	`^(?:(?:NAMESPACE|NAME|LAST SEEN) +[A-Z]|Name: {3}|error:|Error|No resources found|The connection to|Unable to connect)[^\n]*`)

// takers are the flags that take files with objects of a kind.
var takers = map[string]string{
	"KubeSchedulerConfiguration": "--profile", "ResourceSlack": "--slack or --policy", "Recommendation": "--requests",
	"Node": "--filename", "Pod": "--filename", "List": "--filename", "WhatIf": "plimsoll merge",
}

// WrongKind returns the error about a file with an object of a type that is not allowed, with the flag that takes it.
func WrongKind(found metav1.TypeMeta, allowed string) error {
	text := fmt.Sprintf("found kind %q of apiVersion %q: must be %s", found.Kind, found.APIVersion, allowed)
	if taker := takers[found.Kind]; taker != "" && !strings.HasPrefix(allowed, found.Kind) {
		text += "; " + taker + " takes such a file"
	}
	return errors.New(text)
}
