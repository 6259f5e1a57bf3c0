package resources

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
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
		case c == '\\' && i+1 < len(document) && document[i+1] == 'u':
			return true
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
	return len(text)-len(rest) > 1 && (len(rest) == 0 || strings.IndexByte("\" \t\r\n,]}", rest[0]) >= 0)
}

// quantityFields are the names of the fields that contain quantities, directly or in
// lists of resources.
var quantityFields = []string{
	"requests", "limits", "capacity", "allocatable", "allocatedResources", "overhead", "hard", "used",
	"sizeLimit", "maximumVolumeSize", "divisor", "base", "target", "total", "available", "free", "slack", "left",
}

// CheckQuantities returns an error if a document in JSON has a quantity that cannot be decoded in
// a short time, see CheckQuantity. It must be called before the document is decoded. The error
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

// CheckObject returns an error, which names the field, if an object that was read without its type has a quantity that cannot be
// decoded in a short time, see CheckQuantity.
func CheckObject(object map[string]any) error {
	if field, err := badQuantity(object, "", false); err != nil {
		return fmt.Errorf("%s: invalid quantity: %w", field, err)
	}
	return nil
}

// FromUnstructured decodes an object that was read without its type, after CheckObject. It must be used in place of the converter of
// Kubernetes, which accepts such quantities.
func FromUnstructured(object map[string]any, into any) error {
	if err := CheckObject(object); err != nil {
		return err
	}
	return runtime.DefaultUnstructuredConverter.FromUnstructured(object, into)
}

// decodeAny decodes a document in JSON. It keeps the text of numbers, from which quantities are decoded.
func decodeAny(document []byte) (value any, err error) {
	decoder := json.NewDecoder(bytes.NewReader(document))
	decoder.UseNumber()
	err = decoder.Decode(&value)
	return value, err
}

// badQuantity returns the path of the first quantity out of bounds, in the order of the fields,
// and its error. inside is set below a field that contains quantities.
func badQuantity(value any, path string, inside bool) (string, error) {
	switch value := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
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
			return path, CheckQuantity(text)
		}
	case json.Number, float64:
		if inside {
			return path, CheckQuantity(fmt.Sprint(value))
		}
	}
	return path, nil
}
