// Package spec reads the small language in which the flags of the what-if say
// what to generate: a name and then keys with values,
//
//	beta:mean=0.4,cv=0.5
//	nodes=500,pods=15000
//
// It knows no key by itself. Its caller asks for each key with the range that
// is allowed, and in the end for the first thing that was wrong; an error names
// the key, what was found, and what is allowed.
package spec

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// MaxLength is how long a text may be, in bytes.
const MaxLength = 4096

// Error is something wrong in a text.
type Error struct {
	// Key is where, or empty where it is no key in particular.
	Key string
	// Found is what is there, Allowed what may be.
	Found, Allowed string
}

// Error implements error.
func (e *Error) Error() string {
	if e.Key == "" {
		return fmt.Sprintf("found %q, allowed: %s", e.Found, e.Allowed)
	}
	return fmt.Sprintf("%s: found %q, allowed: %s", e.Key, e.Found, e.Allowed)
}

// Fields are the keys of a text with their values. A key that nobody asks for
// is an error.
type Fields struct {
	keys, values []string
	asked        []string
	err          error
}

// Cut splits a text into what is before its first colon and the rest.
func Cut(text string) (name, rest string) {
	name, rest, _ = strings.Cut(text, ":")
	return strings.TrimSpace(name), rest
}

// Parse reads key=value pairs with commas between them. An empty text has none.
// No key may come twice.
func Parse(text string) (*Fields, error) {
	if len(text) > MaxLength {
		return nil, &Error{Found: text[:32] + "...", Allowed: fmt.Sprintf("at most %d bytes", MaxLength)}
	}
	f := &Fields{}
	if strings.TrimSpace(text) == "" {
		return f, nil
	}
	for pair := range strings.SplitSeq(text, ",") {
		key, value, ok := strings.Cut(pair, "=")
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		switch {
		case !ok || key == "" || value == "":
			return nil, &Error{Found: pair, Allowed: "key=value, with commas between the pairs"}
		case slices.Contains(f.keys, key):
			return nil, &Error{Key: key, Found: value, Allowed: "the key once"}
		}
		f.keys, f.values = append(f.keys, key), append(f.values, value)
	}
	return f, nil
}

// Text returns the value of a key, or otherwise what is given.
func (f *Fields) Text(key, otherwise string) string {
	f.asked = append(f.asked, key)
	if i := slices.Index(f.keys, key); i >= 0 {
		return f.values[i]
	}
	return otherwise
}

// Has reports whether the text has a key. It does not count as asking for it.
func (f *Fields) Has(key string) bool { return slices.Contains(f.keys, key) }

// Float returns the number of a key, which must be in [low, high], or otherwise
// what is given.
func (f *Fields) Float(key string, otherwise, low, high float64) float64 {
	text := f.Text(key, "")
	if text == "" {
		return otherwise
	}
	value, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(value) || value < low || value > high {
		f.Fail(key, text, fmt.Sprintf("a number from %v to %v", low, high))
		return otherwise
	}
	return value
}

// Int returns the whole number of a key, which must be in [low, high], or
// otherwise what is given.
func (f *Fields) Int(key string, otherwise, low, high int) int {
	text := f.Text(key, "")
	if text == "" {
		return otherwise
	}
	value, err := strconv.Atoi(text)
	if err != nil || value < low || value > high {
		f.Fail(key, text, fmt.Sprintf("a whole number from %d to %d", low, high))
		return otherwise
	}
	return value
}

// Floats returns the numbers of a key, with plus signs between them, each in
// [low, high] and larger than the one before; or nil.
func (f *Fields) Floats(key string, low, high float64) []float64 {
	text := f.Text(key, "")
	if text == "" {
		return nil
	}
	var values []float64
	for part := range strings.SplitSeq(text, "+") {
		value, err := strconv.ParseFloat(strings.TrimSpace(part), 64)
		if err != nil || math.IsNaN(value) || value < low || value > high || len(values) > 0 && value <= values[len(values)-1] {
			f.Fail(key, text, fmt.Sprintf("numbers from %v to %v in rising order, with + between them", low, high))
			return nil
		}
		values = append(values, value)
	}
	return values
}

// Require notes that a key must be there.
func (f *Fields) Require(key, allowed string) {
	if !f.Has(key) {
		f.Fail(key, "", allowed)
	}
}

// Fail notes that what a key says cannot be. The first thing noted counts.
func (f *Fields) Fail(key, found, allowed string) {
	if f.err == nil {
		f.err = &Error{Key: key, Found: found, Allowed: allowed}
	}
}

// Err returns the first thing that was wrong: a value, or a key that nobody
// asked for.
func (f *Fields) Err() error {
	for i, key := range f.keys {
		if !slices.Contains(f.asked, key) {
			return &Error{Key: key, Found: f.values[i], Allowed: "the keys " + strings.Join(f.asked, ", ")}
		}
	}
	return f.err
}
