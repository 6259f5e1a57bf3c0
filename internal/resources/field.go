package resources

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubejson "sigs.k8s.io/json"

	"github.com/plimsoll-k8s/plimsoll/internal/format"
)

// ExplainDecoding returns the error of decoding an object with the field and its value, such as
// "spec.rate: invalid value 1: must be a string", or err if no field is wrong by itself. object is a pointer
// to a value of the type that asJSON does not have.
func ExplainDecoding(asJSON []byte, object any, err error) error {
	value, invalid := decodeAny(asJSON)
	if invalid != nil {
		return fmt.Errorf("must be JSON: %w", cmp.Or(format.ExplainJSON(asJSON), err))
	}
	return cmp.Or(invalidField(value, "", func(part any) error {
		raw, err := json.Marshal(part)
		if err != nil {
			return err
		}
		return kubejson.UnmarshalCaseSensitivePreserveInts(raw, reflect.New(reflect.TypeOf(object).Elem()).Interface())
	}), err)
}

// DecodeStrict decodes an object in YAML or JSON. Unknown fields are errors. Errors name the field and what it may be.
func DecodeStrict(raw []byte, into any) error {
	if err := CheckText(raw); err != nil {
		return err
	}
	asJSON, err := ToJSON(raw)
	if err != nil {
		return err
	}
	var found metav1.TypeMeta
	fields := FieldsOf(reflect.TypeOf(into))
	if json.Unmarshal(asJSON, &found) == nil && found.Kind != "" && fields["kind"] == nil {
		return WrongKind(found, "an object with "+strings.Join(slices.Sorted(maps.Keys(fields)), ", "))
	}
	if err := CheckQuantities(asJSON); err != nil {
		return err
	}
	return DecodeJSON(asJSON, into)
}

// DecodeJSON is DecodeStrict for JSON.
func DecodeJSON(asJSON []byte, into any) error {
	unknown, err := kubejson.UnmarshalStrict(asJSON, into)
	if err != nil {
		err = ExplainDecoding(asJSON, into, err)
	}
	return errors.Join(append(ExplainUnknown(unknown, into), err)...)
}

// CheckText returns an error for a file that is neither YAML nor JSON, such as a page of a web server or a recording.
func CheckText(document []byte) error {
	switch start := bytes.TrimSpace(document[:min(len(document), 64)]); {
	case bytes.HasPrefix(document, []byte("\xff\xfe")), bytes.HasPrefix(document, []byte("\xfe\xff")):
		return errors.New("found text in UTF-16: must be in UTF-8")
	case bytes.HasPrefix(document, []byte("\x1f\x8b")):
		return errors.New("found a compressed file: must be YAML or JSON")
	case bytes.HasPrefix(document, []byte("PLRC")):
		return errors.New("found a recording: must be YAML or JSON; a recording is read with --recording")
	case bytes.HasPrefix(start, []byte("<")):
		return errors.New("found HTML or XML: must be YAML or JSON")
	case !utf8.Valid(document), bytes.IndexByte(document, 0) >= 0:
		return errors.New("found bytes that are not text: must be YAML or JSON in UTF-8")
	}
	if found := forPeople.Find(document); found != nil {
		return fmt.Errorf("found %q: must be YAML or JSON, as from kubectl get -o yaml", format.Shorten(string(found), maxValue))
	}
	return nil
}

// maxFields is the largest number of fields that an error lists.
const maxFields = 20

// ExplainUnknown adds the place of the object where a field of the same name is, or the most similar field of the same level, or else all
// of them, to the errors of unknown fields of an object.
func ExplainUnknown(unknown []error, object any) []error {
	for i, err := range unknown {
		path, ok := strings.CutPrefix(err.Error(), "unknown field ")
		if !ok {
			continue
		}
		level, parts := reflect.TypeOf(object), strings.Split(strings.Trim(path, `"`), ".")
		last := len(parts) - 1
		for _, part := range parts[:last] {
			name, _, _ := strings.Cut(part, "[")
			level = FieldsOf(level)[name]
		}
		names := slices.Sorted(maps.Keys(FieldsOf(level)))
		hint := misplaced(reflect.TypeOf(object), level, parts)
		if hint == "" {
			hint = format.Suggestion(parts[last], names)
		}
		if hint == "" && len(names) > 0 && len(names) <= maxFields {
			hint = ": must be one of " + strings.Join(names, ", ")
		}
		unknown[i] = fmt.Errorf("%w%s", err, hint)
	}
	return unknown
}

// misplaced returns the end of an error about an unknown field of a type that another part of the root has, empty if none has.
func misplaced(root, level reflect.Type, parts []string) string {
	last := len(parts) - 1
	path := ""
	if _, ok := FieldsOf(FieldsOf(root)["metadata"])[parts[last]]; ok && last < 2 {
		path = "metadata." + parts[last]
	} else if !slices.Contains([]string{"name", "key", "value", "type"}, parts[last]) { // fields of many objects
		if path = fieldBelow(level, parts[last]); path == "" {
			path = fieldBelow(root, parts[last])
		} else if strings.Contains(path, ".") {
			path = strings.Join(append(parts[:last:last], path), ".")
		}
	}
	if path == "" || strings.HasPrefix(strings.Join(parts, "."), path+".") {
		return ""
	}
	return "; did you mean " + path + "?"
}

// maxLevels is the depth to which a misplaced field is searched.
const maxLevels = 4

// fieldBelow returns the path to the nearest field of a name, in singular or plural, below the fields of a type, empty if there is none.
func fieldBelow(t reflect.Type, name string) string {
	type place struct {
		path string
		t    reflect.Type
	}
	level := []place{{t: t}}
	for range maxLevels {
		var next []place
		for _, at := range level {
			fields := FieldsOf(at.t)
			for _, field := range slices.Sorted(maps.Keys(fields)) {
				path := strings.TrimPrefix(at.path+"."+field, ".")
				if strings.EqualFold(strings.TrimSuffix(field, "s"), strings.TrimSuffix(name, "s")) {
					return path
				}
				if fields[field].Kind() == reflect.Slice {
					path += "[]"
				}
				next = append(next, place{path, fields[field]})
			}
		}
		level = next
	}
	return ""
}

// FieldsOf returns the types of the fields in JSON of a struct, or of the elements of a list or map of structs, by name. It returns nil
// for other types, and for a type with a form of its own.
func FieldsOf(t reflect.Type) map[string]reflect.Type {
	for t != nil && slices.Contains([]reflect.Kind{reflect.Pointer, reflect.Slice, reflect.Map}, t.Kind()) {
		t = t.Elem()
	}
	if t == nil || t.Kind() != reflect.Struct || reflect.PointerTo(t).Implements(reflect.TypeFor[json.Marshaler]()) {
		return nil
	}
	fields := map[string]reflect.Type{}
	for f := range t.Fields() {
		switch name, _, _ := strings.Cut(f.Tag.Get("json"), ","); {
		case f.Anonymous && name == "":
			maps.Copy(fields, FieldsOf(f.Type))
		case name != "" && name != "-":
			fields[name] = f.Type
		}
	}
	return fields
}

// invalidField returns the error of the first field in a value, in the order of the names, that cannot be decoded, nil if this is the
// whole object. decode returns the error of decoding the object with a part of the value in its place, and without other fields.
func invalidField(value any, path string, decode func(part any) error) error {
	switch value := value.(type) {
	case map[string]any:
		if decode(map[string]any{}) != nil {
			break
		}
		for _, name := range slices.Sorted(maps.Keys(value)) {
			alone := func(part any) error { return decode(map[string]any{name: part}) }
			if alone(value[name]) != nil {
				return invalidField(value[name], ChildPath(path, name), alone)
			}
		}
	case []any:
		if decode([]any{}) != nil {
			break
		}
		alone := func(part any) error { return decode([]any{part}) }
		for i, item := range value {
			if alone(item) != nil {
				return invalidField(item, fmt.Sprintf("%s[%d]", path, i), alone)
			}
		}
	}
	err := decode(value)
	if _, isObject := value.(map[string]any); err == nil || isObject && path == "" {
		return nil
	}
	return fieldError(path, value, err)
}

// durationField matches the path of a field that is a duration.
var durationField = regexp.MustCompile(`(Interval|Window|Age|Duration|Timeout|Period|Deadline|^window|^step): $`)

// maxValue is the length to which values are cut in errors.
const maxValue = 60

// fieldError returns the error of a field that cannot be decoded.
func fieldError(path string, value any, decoding error) error {
	raw, err := json.Marshal(value)
	if err != nil {
		return err
	}
	text := string(raw)
	if len(text) > maxValue {
		text = text[:maxValue] + "..."
	}
	if path != "" {
		path = strings.TrimPrefix(path, ".") + ": "
	}
	allowed := AllowedValue(decoding)
	if strings.HasSuffix(path, "Rate: ") {
		allowed = "a percentage such as 10%"
	} else if name, isText := value.(string); isText && len(text) <= maxValue {
		allowed = strings.Replace(allowed, "{name: NAME}", "{name: "+name+"}", 1)
	} else if strings.HasSuffix(path, ".days: ") {
		allowed = "days and ranges such as Mon-Fri or Sat,Sun"
	} else if strings.HasSuffix(path, ".nodeSelector.matchLabels: ") {
		allowed = "a string: write the labels without matchLabels"
	} else if strings.HasSuffix(path, ".nodeSelector.matchExpressions: ") {
		allowed = "a string: only labels are allowed, as in {pool: general}"
	} else if _, isNumber := value.(json.Number); isNumber && durationField.MatchString(path) {
		allowed = fmt.Sprintf(`a duration in quotes, such as "%ss"`, text)
	}
	return fmt.Errorf("%sinvalid value %s: must be %s", path, text, allowed)
}

// AllowedValue describes the values of a field that cannot be decoded.
func AllowedValue(decoding error) string {
	for _, invalid := range []error{resource.ErrFormatWrong, resource.ErrNumeric, resource.ErrSuffix} {
		if errors.Is(decoding, invalid) {
			return "a quantity such as 500m, 2.5 or 4Gi"
		}
	}
	typed, ok := errors.AsType[*json.UnmarshalTypeError](decoding)
	if strings.HasPrefix(decoding.Error(), "time: ") {
		return "a duration such as 30s"
	}
	if _, isTime := errors.AsType[*time.ParseError](decoding); isTime {
		return "a time such as 2026-11-21T12:00:00Z"
	}
	if !ok {
		return "valid: " + decoding.Error()
	}
	switch typed.Type.Kind() {
	case reflect.String:
		switch typed.Value {
		case "array":
			return "one string, not a list"
		case "object":
			return "one string, not an object"
		}
		return "a string (put it in quotes)"
	case reflect.Bool:
		return "true or false"
	case reflect.Struct, reflect.Map:
		if typed.Value == "string" && FieldsOf(typed.Type)["name"] != nil {
			return "an object such as {name: NAME}"
		}
		return "an object"
	case reflect.Slice:
		return "a list"
	case reflect.Float32, reflect.Float64:
		return "a number"
	default:
		return allowedInteger(typed)
	}
}

// allowedInteger describes the integers of a field that cannot be decoded, with the largest one if it is one.
func allowedInteger(typed *json.UnmarshalTypeError) string {
	if number, isNumber := strings.CutPrefix(typed.Value, "number "); isNumber && !strings.ContainsAny(number, ".eE") {
		return fmt.Sprintf("an integer of at most %d", uint64(1)<<(typed.Type.Bits()-1)-1)
	}
	return "an integer"
}

// ChildPath returns the path of a field or a key.
func ChildPath(path, name string) string {
	if strings.ContainsAny(name, "./") {
		return fmt.Sprintf("%s[%s]", path, name)
	}
	return path + "." + name
}
