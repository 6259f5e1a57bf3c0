package report

import (
	"bytes"
	"reflect"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"
	"pgregory.net/rapid"

	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// mapTexts replaces every string in a value, except empty strings and the names of figures.
func mapTexts(v reflect.Value, replace func(string) string) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			mapTexts(v.Elem(), replace)
		}
	case reflect.Struct:
		for _, field := range v.Fields() {
			mapTexts(field, replace)
		}
	case reflect.Slice:
		for i := range v.Len() {
			mapTexts(v.Index(i), replace)
		}
	case reflect.Map:
		if v.Type() == reflect.TypeFor[map[string]int]() {
			replaced := reflect.MakeMap(v.Type())
			for _, key := range v.MapKeys() {
				replaced.SetMapIndex(reflect.ValueOf(replace(key.String())), v.MapIndex(key))
			}
			v.Set(replaced)
		}
	case reflect.String:
		if v.Len() > 0 {
			v.SetString(replace(v.String()))
		}
	default:
	}
}

// resultWithPrefix returns a result with a prefix before all texts. Its report is larger than maxSizeWithSeries with any prefix.
func resultWithPrefix(t *testing.T, prefix string) *result.Result {
	t.Helper()
	r := sample(t, 9, 2, 5)
	mapTexts(reflect.ValueOf(r), func(text string) string { return prefix + text })
	return r
}

// skeleton returns the elements of a report with their attributes, without texts.
func skeleton(t must.TB, r *result.Result) []string {
	var b bytes.Buffer
	must.Succeed(t, Write(&b, r))
	root, err := html.Parse(&b)
	must.Succeed(t, err)
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

// hostile has texts that are markup, scripts, styles or addresses in some context.
var hostile = []string{
	`<script>window.executed=1</script>`, `</script><script>window.executed=1</script>`, `<img src=x onerror=window.executed=1>`,
	`"><svg onload=window.executed=1>`, `' onmouseover='window.executed=1`, `</title></style></desc></svg></pre></details>`,
	`<!--`, `-->`, `]]>`, `<![CDATA[`, `{{.}}`, `&lt;script&gt;`, `javascript:window.executed=1`, `</p><iframe src=//evil.example>`,
	`;}*{display:none}`, "\x00<script>", "\u2028", "\u202e<b>", "\xff\xfe<i>", "\r\n\t", strings.Repeat("W", 500),
}

// requireEqual fails if the elements of two reports differ.
func requireEqual(t must.TB, want, got []string, prefix string) {
	if !slices.Equal(want, got) {
		for i := range min(len(want), len(got)) {
			if want[i] != got[i] {
				t.Fatalf("prefix %q: element %q, want %q", prefix, got[i], want[i])
			}
		}
		t.Fatalf("prefix %q: %d elements, want %d", prefix, len(got), len(want))
	}
}

// TestTextsAreEscaped checks that a report has the same elements with the same attributes for any
// texts of its result.
func TestTextsAreEscaped(t *testing.T) {
	want := skeleton(t, resultWithPrefix(t, "x"))
	if len(want) < 1000 {
		t.Fatalf("only %d elements", len(want))
	}
	for _, prefix := range hostile {
		requireEqual(t, want, skeleton(t, resultWithPrefix(t, prefix)), prefix)
	}
	part := rapid.OneOf(rapid.SampledFrom(hostile), rapid.String())
	rapid.Check(t, func(rt *rapid.T) {
		prefix := "x" + part.Draw(rt, "one") + part.Draw(rt, "other")
		requireEqual(rt, want, skeleton(rt, resultWithPrefix(t, prefix)), prefix)
	})
}

func FuzzTextsAreEscaped(f *testing.F) {
	for _, prefix := range hostile {
		f.Add(prefix)
	}
	f.Fuzz(func(t *testing.T, prefix string) {
		requireEqual(t, skeleton(t, resultWithPrefix(t, "x")), skeleton(t, resultWithPrefix(t, "x"+prefix)), prefix)
	})
}
