package resources

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

func TestParseQuantity(t *testing.T) {
	for text, want := range map[string]string{
		"1": "1", "0": "0", "100m": "100m", "1.5Gi": "1536Mi", "1e3": "1e3", "1E3": "1E3", "1E": "1E", "1Ei": "1Ei", "-5": "-5",
		"1e30": "1e30", "1e-9": "1e-9", "1e+3": "1e+3", "1e0003": "1e0003", "123456789012345678901234567890": "123456789012345678901234567890",
		" 1": "", "": "", "1e": "", "1e31": "", "1e-31": "", "1e2147483647": "", "0e2147483647": "", "1e-2147483647": "", "1e99999999999": "",
		"1E2147483647": "", "1E-100": "", "1e00000031": "", "ten": "",
		strings.Repeat("9", 64): strings.Repeat("9", 64), strings.Repeat("9", 65): "",
	} {
		start := time.Now()
		q, err := ParseQuantity(text)
		if took := time.Since(start); took > time.Minute {
			t.Errorf("%s: took %s", text, took)
		}
		if (err != nil) != (want == "") || err == nil && q.String() != want {
			t.Errorf("%s: %s, %v, want %q", text, q.String(), err, want)
		}
	}
}

// FuzzQuantity parses any text, and computes with the quantity: it must take a short time.
func FuzzQuantity(f *testing.F) {
	for _, text := range []string{"1", "1.5Gi", "1e3", "1e2147483647", "1e-2147483647", "0e99", "-1E", "1Ei", strings.Repeat("9", 64), "0.000000001n"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		start := time.Now()
		q, err := ParseQuantity(text)
		if err != nil {
			return
		}
		sum := q.DeepCopy()
		sum.Add(q)
		_, _, _, _ = sum.Cmp(q), sum.MilliValue(), sum.String(), sum.AsApproximateFloat64()
		if took := time.Since(start); took > time.Minute {
			t.Errorf("%q: took %s", text, took)
		}
	})
}

// TestFromUnstructured checks that every kind of object that is read without its type refuses a quantity with a large exponent, which
// the converter of Kubernetes accepts and with which sums do not end.
func TestFromUnstructured(t *testing.T) {
	for _, test := range []struct {
		object string
		into   any
		want   string // of the error, empty for none
	}{
		{`{"spec":{"requests":{"cpu":"1e2147483647"}}}`, &map[string]any{}, "spec.requests.cpu: invalid quantity"},
		{
			`{"template":{"spec":{"containers":[{"name":"c","resources":{"limits":{"memory":"1e-2147483647"}}}]}}}`, &v1.PodTemplate{},
			"template.spec.containers[0].resources.limits.memory: invalid quantity",
		},
		{
			`{"template":{"spec":{"containers":[{"name":"c","resources":{"limits":{"memory":1e300}}}]}}}`, &v1.PodTemplate{},
			"template.spec.containers[0].resources.limits.memory: invalid quantity",
		},
		{`{"template":{"spec":{"containers":[{"name":"c","resources":{"limits":{"memory":"1e9"}}}]}}}`, &v1.PodTemplate{}, ""},
	} {
		var object map[string]any
		must.Succeed(t, json.Unmarshal([]byte(test.object), &object))
		switch err := FromUnstructured(object, test.into); {
		case test.want == "" && err != nil:
			t.Errorf("%s: %v", test.object, err)
		case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
			t.Errorf("%s: error %v, want %q", test.object, err, test.want)
		}
	}
}
