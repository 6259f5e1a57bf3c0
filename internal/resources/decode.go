package resources

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	yamlv3 "go.yaml.in/yaml/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubejson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/plimsoll-k8s/plimsoll/internal/format"
)

// DecodeStrict decodes an object in YAML or JSON. Unknown fields are errors, with the most similar field of their level. Errors have the
// path of the field and the sentence of the decoder.
func DecodeStrict(document []byte, into any) error {
	if len(bytes.TrimSpace(document)) == 0 {
		return errors.New("found an empty file: must be YAML or JSON")
	}
	asJSON, err := YAMLToJSON(document)
	if err != nil {
		return err
	}
	if err := CheckQuantities(asJSON); err != nil {
		return err
	}
	return DecodeJSON(asJSON, into)
}

// flow matches documents in flow style, after comments.
var flow = regexp.MustCompile(`\A(\s*#.*\n)*\s*[{\[]`)

// YAMLToJSON returns a document in YAML, which is UTF-8 and has one object, as JSON. A key that is given twice is an error; a key that
// overrides a key of a merge (<<) is not.
func YAMLToJSON(document []byte) ([]byte, error) {
	if !utf8.Valid(document) {
		return nil, errors.New("found text that is not in UTF-8: must be UTF-8")
	}
	if flow.Match(document) || bytes.Contains(document, []byte("\n---")) || bytes.Contains(document, []byte("\n...")) { // may end early
		decoder := yamlv3.NewDecoder(bytes.NewReader(document))
		var first, second any
		if err := decoder.Decode(&first); err != nil {
			return nil, err
		}
		if err := decoder.Decode(&second); err == nil && second != nil || err != nil && !errors.Is(err, io.EOF) {
			return nil, errors.New(
				"found text after the end of the object: must be one object; manifests may have more, separated by lines with ---",
			)
		}
	}
	asJSON, err := yaml.YAMLToJSONStrict(document)
	if err != nil && bytes.Contains(document, []byte("<<")) && yamlv3.Unmarshal(document, new(any)) == nil {
		return yaml.YAMLToJSON(document)
	}
	return asJSON, err
}

// DecodeJSON is DecodeStrict for JSON.
func DecodeJSON(asJSON []byte, into any) error {
	unknown, err := kubejson.UnmarshalStrict(asJSON, into)
	return errors.Join(append(SuggestFields(unknown, into), DecodingError(asJSON, into, err))...)
}

// maxMessage is the length to which the sentence of a decoder is cut: it can have values.
const maxMessage = 256

// DecodingError returns the error of decoding an object with the path of the field that cannot be decoded, nil if there is no error.
// into is a pointer to a value of the type that the object does not have.
func DecodingError(asJSON []byte, into any, err error) error {
	value, invalid := decodeAny(asJSON)
	if err == nil || invalid != nil {
		return err
	}
	path := invalidPath(value, func(part any) error {
		raw, err := json.Marshal(part)
		if err != nil {
			return err
		}
		return kubejson.UnmarshalCaseSensitivePreserveInts(raw, reflect.New(reflect.TypeOf(into).Elem()).Interface())
	})
	if path == "" {
		return err
	}
	return fmt.Errorf("%s: %s", strings.TrimPrefix(path, "."), format.Shorten(err.Error(), maxMessage))
}

// invalidPath returns the path of the first part of a value that cannot be decoded, empty for the value itself. decode returns the error of
// decoding the object with a value in place of the part, and without other fields.
func invalidPath(value any, decode func(part any) error) string {
	switch value := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			alone := func(part any) error { return decode(map[string]any{name: part}) }
			if decode(map[string]any{}) == nil && alone(value[name]) != nil {
				return ChildPath("", name) + invalidPath(value[name], alone)
			}
		}
	case []any:
		alone := func(part any) error { return decode([]any{part}) }
		for i, item := range value {
			if decode([]any{}) == nil && alone(item) != nil {
				return fmt.Sprintf("[%d]", i) + invalidPath(item, alone)
			}
		}
	}
	return ""
}

// SuggestFields adds the most similar field of the same level to the errors about unknown fields of an object.
func SuggestFields(unknown []error, object any) []error {
	for i, err := range unknown {
		path, ok := strings.CutPrefix(err.Error(), "unknown field ")
		if !ok { // a field that is set twice
			continue
		}
		level, parts := reflect.TypeOf(object), strings.Split(strings.Trim(path, `"`), ".")
		for _, part := range parts[:len(parts)-1] {
			name, _, _ := strings.Cut(part, "[")
			level = fieldsOf(level)[name]
		}
		unknown[i] = fmt.Errorf("%w%s", err, format.Suggestion(parts[len(parts)-1], slices.Sorted(maps.Keys(fieldsOf(level)))))
	}
	return unknown
}

// fieldsOf returns the types of the fields in JSON of a struct, or of the elements of a list or map of structs, by name. It returns nil
// for other types, and for a type with a form of its own.
func fieldsOf(t reflect.Type) map[string]reflect.Type {
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
			maps.Copy(fields, fieldsOf(f.Type))
		case name != "" && name != "-":
			fields[name] = f.Type
		}
	}
	return fields
}

// ChildPath returns the path of a field or a key.
func ChildPath(path, name string) string {
	if strings.ContainsAny(name, "./") {
		return fmt.Sprintf("%s[%s]", path, name)
	}
	return path + "." + name
}

// WrongKind returns the error about a file with an object of a type that is not allowed.
func WrongKind(found metav1.TypeMeta, allowed string) error {
	return fmt.Errorf("found kind %q of apiVersion %q: must be %s", found.Kind, found.APIVersion, allowed)
}
