package whatif

import (
	"bytes"
	"reflect"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"
	"pgregory.net/rapid"

	"github.com/plimsoll-k8s/plimsoll/internal/simulate/result"
)

// rename gives every text of a value another name, wherever it is. Empty texts, which
// say that there is nothing, stay empty; so do the names of figures, which are ours.
func rename(v reflect.Value, name func(string) string) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			rename(v.Elem(), name)
		}
	case reflect.Struct:
		for _, field := range v.Fields() {
			rename(field, name)
		}
	case reflect.Slice:
		for i := range v.Len() {
			rename(v.Index(i), name)
		}
	case reflect.Map:
		if v.Type() == reflect.TypeFor[map[string]int]() {
			renamed := reflect.MakeMap(v.Type())
			for _, key := range v.MapKeys() {
				renamed.SetMapIndex(reflect.ValueOf(name(key.String())), v.MapIndex(key))
			}
			v.Set(renamed)
		}
	case reflect.String:
		if v.Len() > 0 {
			v.SetString(name(v.String()))
		}
	default:
	}
}

// named is a small result with a prefix to all its texts.
func named(t *testing.T, prefix string) *result.Result {
	t.Helper()
	r := sample(t, 2, 2, 2, 5)
	rename(reflect.ValueOf(r), func(text string) string { return prefix + text })
	return r
}

// skeleton is the page without its texts: elements with their attributes.
func skeleton(t interface{ Fatal(...any) }, r *result.Result) []string {
	var b bytes.Buffer
	if err := Write(&b, r); err != nil {
		t.Fatal(err)
	}
	root, err := html.Parse(&b)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for node := range root.Descendants() {
		if node.Type != html.TextNode {
			var element strings.Builder
			element.WriteString(node.Data)
			for _, a := range node.Attr {
				element.WriteString(" " + a.Key + "=" + a.Val)
			}
			all = append(all, element.String())
		}
	}
	return all
}

// hostile are texts that would be markup, scripts, styles or addresses somewhere.
var hostile = []string{
	`<script>window.live=1</script>`, `</script><script>window.live=1</script>`, `<img src=x onerror=window.live=1>`,
	`"><svg onload=window.live=1>`, `' onmouseover='window.live=1`, `</title></style></desc></svg></pre></details>`,
	`<!--`, `-->`, `]]>`, `<![CDATA[`, `{{.}}`, `&lt;script&gt;`, `javascript:window.live=1`, `</p><iframe src=//evil.example>`,
	`;}*{display:none}`, "\x00<script>", "\u2028", "\u202e<b>", "\xff\xfe<i>", "\r\n\t", strings.Repeat("W", 500),
}

// same fails if texts with a prefix make another page than those with another one.
func same(t interface {
	Fatal(...any)
	Fatalf(string, ...any)
}, want, got []string, prefix string,
) {
	if !slices.Equal(want, got) {
		for i := range min(len(want), len(got)) {
			if want[i] != got[i] {
				t.Fatalf("%q makes %q of %q", prefix, got[i], want[i])
			}
		}
		t.Fatalf("%q makes %d elements of %d", prefix, len(got), len(want))
	}
}

// Whatever the texts of a result are, the page has the same elements with the same
// attributes: a text is text.
func TestTextsAreTexts(t *testing.T) {
	want := skeleton(t, named(t, "x"))
	if len(want) < 1000 {
		t.Fatalf("only %d elements", len(want))
	}
	for _, prefix := range hostile {
		same(t, want, skeleton(t, named(t, prefix)), prefix)
	}
	part := rapid.OneOf(rapid.SampledFrom(hostile), rapid.String())
	rapid.Check(t, func(rt *rapid.T) {
		prefix := "x" + part.Draw(rt, "one") + part.Draw(rt, "other")
		same(rt, want, skeleton(rt, named(t, prefix)), prefix)
	})
}

func FuzzTextsAreTexts(f *testing.F) {
	for _, prefix := range hostile {
		f.Add(prefix)
	}
	f.Fuzz(func(t *testing.T, prefix string) {
		same(t, skeleton(t, named(t, "x")), skeleton(t, named(t, "x"+prefix)), prefix)
	})
}
