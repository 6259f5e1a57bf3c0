package resources

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/plimsoll-k8s/plimsoll/internal/format"
)

// maxPairs is the maximum length of pairs in bytes.
const maxPairs = 4096

// DecodePairs decodes key=value pairs separated by commas, such as nodes=500,pods=15000, as an object in JSON with these fields, and
// returns the fields. The elements of a list are separated by +, and a fraction may be a percentage. A number must be in the range that
// the tag of its field has, such as range:"0,1".
func DecodePairs(text string, into any) (map[string]any, error) {
	if len(text) > maxPairs {
		return nil, fmt.Errorf("found %d bytes: must be at most %d", len(text), maxPairs)
	}
	var pairs []string
	if strings.TrimSpace(text) != "" {
		pairs = strings.Split(text, ",")
	}
	types, object := fieldsOf(reflect.TypeOf(into)), map[string]any{}
	for _, pair := range pairs {
		key, value, _ := strings.Cut(pair, "=")
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		if key == "" || value == "" || object[key] != nil {
			return nil, fmt.Errorf("invalid value %q: must be key=value pairs separated by commas, each key once", pair)
		}
		object[key] = pairValue(value, types[key])
	}
	asJSON, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	if err := DecodeJSON(asJSON, into); err != nil {
		return nil, err
	}
	return object, checkRanges(reflect.ValueOf(into), object)
}

// pairValue returns the value in JSON of a text for a field of a type. It is the text itself if it has another type.
func pairValue(text string, field reflect.Type) any {
	kind := reflect.String
	if field != nil {
		kind = field.Kind()
	}
	switch kind {
	case reflect.Slice:
		return strings.Split(text, "+")
	case reflect.Int, reflect.Int64:
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return n
		}
	case reflect.Float64:
		digits, isPercent := strings.CutSuffix(text, "%")
		n, err := strconv.ParseFloat(digits, 64)
		if isPercent {
			n /= 100
		}
		if err == nil && format.IsFinite(n) {
			return n
		}
	default:
	}
	return text
}

// checkRanges returns an error for the first number of a struct outside of the range of its field.
func checkRanges(object reflect.Value, set map[string]any) error {
	for field, value := range reflect.Indirect(object).Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		allowed := field.Tag.Get("range")
		var low, high float64
		switch _, err := fmt.Sscanf(allowed, "%g,%g", &low, &high); {
		case field.Anonymous:
			if err := checkRanges(value, set); err != nil {
				return err
			}
		case set[name] == nil || err != nil: // has no range
		default:
			if n := value.Convert(reflect.TypeFor[float64]()).Float(); n < low || n > high {
				return format.InvalidValue(name, value.Interface(), "from "+strings.Replace(allowed, ",", " to ", 1))
			}
		}
	}
	return nil
}
