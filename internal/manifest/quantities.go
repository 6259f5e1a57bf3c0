package manifest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// isSuspicious reports whether a document may have a number with many digits or with an exponent of
// several digits. Most documents have none, so that they are decoded only once.
func isSuspicious(document []byte) bool {
	digits := 0
	for i, c := range document {
		switch {
		case c >= '0' && c <= '9' || c == '.':
			if digits++; digits > maxDigits {
				return true
			}
			continue
		case c == '!': // a tag of YAML, such as !!binary
			return true
		case c == '\\':
			if i+1 < len(document) && strings.IndexByte("uUx\n\r", document[i+1]) >= 0 {
				return true
			}
		case (c == 'e' || c == 'E') && digits > 0 && startsWithExponent(document[i+1:]):
			return true
		}
		digits = 0
	}
	return false
}

// maxDigits is the number of digits of a number that is not suspicious.
const maxDigits = 60

// startsWithExponent reports whether a text starts with an optional sign and two digits, and
// ends the value after its digits.
func startsWithExponent(text []byte) bool {
	text = bytes.TrimLeft(text[:min(len(text), 64)], "+-")
	rest := bytes.TrimLeft(text, "0123456789")
	return len(text)-len(rest) > 1 && (len(rest) == 0 || bytes.IndexByte([]byte("\"' \t\r\n,]}#"), rest[0]) >= 0)
}

// quantityFields are the names of the fields that contain quantities, directly or in
// lists of resources.
var quantityFields = []string{
	"requests", "limits", "capacity", "allocatable", "allocatedResources", "overhead", "hard", "used",
	"sizeLimit", "maximumVolumeSize", "divisor", "base", "target", "total", "available",
}

// CheckQuantities returns an error if a document has a quantity that cannot be decoded in
// a short time, see facts.CheckQuantity. It must be called before the document is decoded. The error
// names the object and the field.
func CheckQuantities(document []byte) error {
	if !isSuspicious(document) {
		return nil
	}
	object, err := decodeAny(document)
	if err != nil {
		return err
	}
	field, err := badQuantity(object, "", false)
	if err == nil {
		return nil
	}
	if head, ok := object.(map[string]any); ok {
		if metadata, ok := head["metadata"].(map[string]any); ok && metadata["name"] != nil {
			field = fmt.Sprintf("%v %v: %s", head["kind"], metadata["name"], field)
		}
	}
	return fmt.Errorf("%s: invalid quantity: %w", field, err)
}

// decodeAny decodes a document. It keeps the text of numbers in JSON, from which quantities are decoded;
// numbers in YAML are converted first.
func decodeAny(document []byte) (object any, err error) {
	if json.Valid(document) {
		decoder := json.NewDecoder(bytes.NewReader(document))
		decoder.UseNumber()
		err = decoder.Decode(&object)
		return object, err
	}
	err = yaml.Unmarshal(document, &object)
	return object, err
}

// badQuantity returns the path of the first quantity out of bounds, in the order of the fields,
// and its error. inside is set below a field that contains quantities.
func badQuantity(value any, path string, inside bool) (string, error) {
	switch value := value.(type) {
	case map[string]any:
		for _, key := range sortedKeys(value) {
			below := strings.TrimPrefix(path+"."+key, ".")
			if field, err := badQuantity(value[key], below, inside || slices.Contains(quantityFields, key)); err != nil {
				return field, err
			}
		}
	case []any:
		for i, item := range value {
			if field, err := badQuantity(item, fmt.Sprintf("%s[%d]", path, i), inside); err != nil {
				return field, err
			}
		}
	case string:
		if text := strings.TrimSpace(value); inside && strings.IndexAny(text, "+-.0123456789") == 0 {
			return path, resources.CheckQuantity(text)
		}
	case json.Number:
		if inside {
			return path, resources.CheckQuantity(value.String())
		}
	case float64:
		if inside {
			return path, resources.CheckQuantity(strconv.FormatFloat(value, 'e', -1, 64))
		}
	}
	return path, nil
}

// sortedKeys returns the keys of a map in order.
func sortedKeys(m map[string]any) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
