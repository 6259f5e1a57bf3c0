package recording

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/plimsoll-k8s/plimsoll/internal/format"
)

// maxTextLength is the maximum length of a text in bytes.
const maxTextLength = 4096

// invalidValue returns the error of a value in a text, with its key unless the error concerns no single key, and a description of the
// allowed values.
func invalidValue(key, found, allowed string) error {
	if key != "" {
		key += ": "
	}
	return fmt.Errorf("%sinvalid value %q: must be %s", key, found, allowed)
}

// Fields has the keys of a text with their values, the syntax of --generate, --usage and --autoscaler:
//
//	beta:mean=0.4,cv=0.5
//	nodes=500,pods=15000
//
// The caller reads each key with its allowed range, and finally calls Err, which returns the first error: it names the key, the value
// found, and the allowed values. A key that is never read is an error.
type Fields struct {
	keys, values []string
	read         []string
	err          error
}

// cutName splits a text into the name before the first colon and the rest.
func cutName(text string) (name, rest string) {
	name, rest, _ = strings.Cut(text, ":")
	return strings.TrimSpace(name), rest
}

// ParseFields parses key=value pairs separated by commas. An empty text has none. A key must
// not occur twice.
func ParseFields(text string) (*Fields, error) {
	if len(text) > maxTextLength {
		return nil, invalidValue("", text[:32]+"...", fmt.Sprintf("at most %d bytes", maxTextLength))
	}
	f := &Fields{}
	if strings.TrimSpace(text) == "" {
		return f, nil
	}
	for pair := range strings.SplitSeq(text, ",") {
		if err := f.add(pair); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// add adds a pair of a key and its value.
func (f *Fields) add(pair string) error {
	key, value, ok := strings.Cut(pair, "=")
	key, value = strings.TrimSpace(key), strings.TrimSpace(value)
	switch {
	case ok && key != "" && value == "":
		return fmt.Errorf("%s: missing value: must be %s=VALUE", key, key)
	case !ok || key == "":
		return invalidValue("", pair, "key=value pairs separated by commas")
	case slices.Contains(f.keys, key):
		return invalidValue(key, value, "set once")
	}
	f.keys, f.values = append(f.keys, key), append(f.values, value)
	return nil
}

// Text returns the value of a key, or the default.
func (f *Fields) Text(key, defaultValue string) string {
	f.read = append(f.read, key)
	if i := slices.Index(f.keys, key); i >= 0 {
		return f.values[i]
	}
	return defaultValue
}

// Has reports whether the text has a key. It does not count as reading it.
func (f *Fields) Has(key string) bool { return slices.Contains(f.keys, key) }

// Float returns the number of a key, which must be in [low, high], or the default.
func (f *Fields) Float(key string, defaultValue, low, high float64) float64 {
	return f.number(key, defaultValue, low, high, "a number")
}

// Share is Float for a share, which may be in percent: 0.9 or 90%.
func (f *Fields) Share(key string, defaultValue, low, high float64) float64 {
	return f.number(key, defaultValue, low, high, "a share such as 0.9 or 90%,")
}

// number returns the number of a key, in percent if the value ends with %.
func (f *Fields) number(key string, defaultValue, low, high float64, allowed string) float64 {
	text := f.Text(key, "")
	if text == "" {
		return defaultValue
	}
	digits, isPercent := strings.CutSuffix(text, "%")
	value, err := strconv.ParseFloat(digits, 64)
	if isPercent {
		value /= 100
	}
	if err != nil || math.IsNaN(value) || value < low || value > high {
		f.Fail(key, text, fmt.Sprintf("%s from %v to %s", allowed, low, format.Plain(high)))
		return defaultValue
	}
	return value
}

// Int returns the whole number of a key, which must be in [low, high], or the default.
func (f *Fields) Int(key string, defaultValue, low, high int) int {
	text := f.Text(key, "")
	if text == "" {
		return defaultValue
	}
	value, err := strconv.Atoi(text)
	if err != nil || value < low || value > high {
		f.Fail(key, text, fmt.Sprintf("a whole number from %d to %d", low, high))
		return defaultValue
	}
	return value
}

// require records an error if a key is missing.
func (f *Fields) require(key, allowed string) {
	if !f.Has(key) && f.err == nil {
		f.err = fmt.Errorf("%s: missing value: must be %s", key, allowed)
	}
}

// Fail records an error. Only the first one is kept.
func (f *Fields) Fail(key, found, allowed string) {
	if f.err == nil {
		f.err = invalidValue(key, found, allowed)
	}
}

// Err returns the first error: a key that was never read, or an invalid value.
func (f *Fields) Err() error {
	for _, key := range f.keys {
		if !slices.Contains(f.read, key) {
			return fmt.Errorf("unknown key %q: must be one of %s%s", key, strings.Join(f.read, ", "), format.Suggestion(key, f.read))
		}
	}
	return f.err
}
