package manifest

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// ExplainDecoding returns the error of decoding an object with the field and its value, such as
// "spec.rate: invalid value 1: must be a string", or err if no field is wrong by itself. object is a pointer
// to a value of the type that asJSON does not have.
func ExplainDecoding(asJSON []byte, object any, err error) error {
	value, invalid := resources.DecodeAny(asJSON)
	if invalid != nil {
		return err
	}
	if field := checkValue(value, reflect.TypeOf(object).Elem(), ""); field != nil {
		return field
	}
	return err
}

var (
	unmarshaler  = reflect.TypeFor[json.Unmarshaler]()
	quantityType = reflect.TypeFor[resource.Quantity]()
)

// checkValue returns the error of the first field of a value that does not have its type.
func checkValue(value any, t reflect.Type, path string) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case value == nil:
		return nil
	case reflect.PointerTo(t).Implements(unmarshaler):
		return checkScalar(value, t, path)
	}
	switch t.Kind() {
	case reflect.Struct:
		return checkStruct(value, t, path)
	case reflect.Map:
		object, ok := value.(map[string]any)
		if !ok {
			return fieldError(path, value, "an object")
		}
		for _, key := range slices.Sorted(maps.Keys(object)) {
			if err := checkValue(object[key], t.Elem(), child(path, key)); err != nil {
				return err
			}
		}
		return nil
	case reflect.Slice:
		list, ok := value.([]any)
		if t.Elem().Kind() == reflect.Uint8 {
			return checkScalar(value, t, path)
		}
		if !ok {
			return fieldError(path, value, "a list")
		}
		for i, item := range list {
			if err := checkValue(item, t.Elem(), fmt.Sprintf("%s[%d]", path, i)); err != nil {
				return err
			}
		}
		return nil
	default:
		return checkScalar(value, t, path)
	}
}

// checkStruct checks the fields of an object.
func checkStruct(value any, t reflect.Type, path string) error {
	object, ok := value.(map[string]any)
	if !ok {
		return fieldError(path, value, "an object")
	}
	for field := range t.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		var err error
		switch inner, found := object[name]; {
		case field.Anonymous && name == "":
			err = checkValue(value, field.Type, path)
		case found && name != "" && name != "-":
			err = checkValue(inner, field.Type, child(path, name))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// checkScalar checks a value that has no fields.
func checkScalar(value any, t reflect.Type, path string) error {
	if t == quantityType && resources.CheckQuantity(fmt.Sprint(value)) != nil {
		return fieldError(path, value, allowedQuantity)
	}
	if raw, err := json.Marshal(value); err == nil && json.Unmarshal(raw, reflect.New(t).Interface()) == nil {
		return nil
	}
	allowed := map[reflect.Kind]string{
		reflect.String: "a string (put it in quotes)", reflect.Bool: "true or false", reflect.Slice: "a text in base64",
		reflect.Int32: "an integer", reflect.Int64: "an integer", reflect.Int: "an integer", reflect.Float64: "a number",
	}[t.Kind()]
	switch {
	case t == quantityType:
		allowed = allowedQuantity
	case allowed == "":
		allowed = "a " + t.Name()
	}
	return fieldError(path, value, allowed)
}

const allowedQuantity = "a quantity such as 500m, 2 or 4Gi"

// maxValue is the length to which values are cut in errors.
const maxValue = 60

func fieldError(path string, value any, allowed string) error {
	raw, err := json.Marshal(value)
	if err != nil {
		return err
	}
	text := string(raw)
	if len(text) > maxValue {
		text = text[:maxValue] + "..."
	}
	return fmt.Errorf("%s: invalid value %s: must be %s", strings.TrimPrefix(path, "."), text, allowed)
}

// child returns the path of a field or a key.
func child(path, name string) string {
	if strings.ContainsAny(name, "./") {
		return fmt.Sprintf("%s[%s]", path, name)
	}
	return path + "." + name
}
