package metricprovider

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

// jsonNames returns the names of the fields of a struct in JSON; names of fields of Queries have a prefix.
func jsonNames(t reflect.Type, prefix string) []string {
	var names []string
	for field := range t.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if field.Type == reflect.TypeFor[Queries]() {
			names = append(names, jsonNames(field.Type, name+".")...)
			continue
		}
		names = append(names, prefix+name)
	}
	return names
}

func TestFieldsDescribeConfig(t *testing.T) {
	var got []string
	var config Config
	values := map[any]bool{}
	for _, field := range Fields {
		got = append(got, field.Name)
		values[field.Value(&config)] = true
		for _, name := range slices.Concat(field.Types, field.PodTypes) {
			if !slices.Contains(Types, name) {
				t.Errorf("field %s: unknown type %q", field.Name, name)
			}
		}
		if (field.Flag == "") != (field.Usage == "") {
			t.Errorf("field %s: flag %q, usage %q", field.Name, field.Flag, field.Usage)
		}
	}
	if want := jsonNames(reflect.TypeFor[Config](), ""); !slices.Equal(got, want) {
		t.Errorf("Fields are %v, want %v", got, want)
	}
	if len(values) != len(Fields) {
		t.Errorf("%d fields have %d values", len(Fields), len(values))
	}
}

func TestUnusedField(t *testing.T) {
	for _, field := range Fields[1:] {
		for _, name := range Types {
			config := Config{Type: name}
			reflect.ValueOf(field.Value(&config)).Elem().Set(nonZero(field.Value(&config)))
			unused, found := config.UnusedField(func(f Field) []string { return f.Types })
			if found == slices.Contains(field.Types, name) || found && unused.Name != field.Name {
				t.Errorf("%s with %s: found %t, field %q", name, field.Name, found, unused.Name)
			}
			if !slices.Contains(PodTypes, name) {
				continue // the type itself is unused
			}
			unused, found = config.UnusedField(func(f Field) []string { return f.PodTypes })
			if found == slices.Contains(field.PodTypes, name) || found && unused.Name != field.Name {
				t.Errorf("usage of pods from %s with %s: found %t, field %q", name, field.Name, found, unused.Name)
			}
		}
	}
}

// nonZero returns a value other than zero for the field at an address.
func nonZero(address any) reflect.Value {
	switch address := address.(type) {
	case *string:
		return reflect.ValueOf("a")
	case *bool:
		return reflect.ValueOf(true)
	default:
		value := reflect.New(reflect.TypeOf(address).Elem()).Elem()
		value.Field(0).SetInt(1)
		return value
	}
}
