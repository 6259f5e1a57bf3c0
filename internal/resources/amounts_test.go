package resources

import (
	"encoding/json"
	"math"
	"math/big"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

func TestAmountsString(t *testing.T) {
	const gibibyte = 1 << 30
	for want, amounts := range map[string]Amounts{
		"0 CPU and 0 memory":      {},
		"1.5 CPU and 2Gi memory":  {CPU: 1500, Memory: 2 * gibibyte},
		"2 CPU and 1.5Gi memory":  {CPU: 2000, Memory: 1.5 * gibibyte},
		"0.1 CPU and 2Mi memory":  {CPU: 100, Memory: 2 << 20},
		"1 CPU and 1Gi memory":    {CPU: 1000, Memory: gibibyte},
		"3 CPU and 8192Pi memory": {CPU: 3000, Memory: math.MaxInt64}, // 2^63 / 2^50
	} {
		if got := amounts.String(); got != want {
			t.Errorf("%v: got %q, want %q", amounts, got, want)
		}
	}
}

// amount prefers the ends of the range, where arithmetic overflows.
var amount = rapid.OneOf(rapid.Int64Range(0, 1<<20), rapid.Int64Range(0, math.MaxInt64), rapid.Just(int64(math.MaxInt64)))

// clamp returns the int64 nearest to n.
func clamp(n *big.Int) int64 {
	switch {
	case n.IsInt64():
		return n.Int64()
	case n.Sign() < 0:
		return math.MinInt64
	}
	return math.MaxInt64
}

func TestAgainstBigIntegers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.Int64().Draw(t, "a"), rapid.Int64().Draw(t, "b")
		if got, want := Add(a, b), clamp(new(big.Int).Add(big.NewInt(a), big.NewInt(b))); got != want {
			t.Fatalf("Add(%d, %d) = %d, want %d", a, b, got, want)
		}
		x, y, c := amount.Draw(t, "x"), amount.Draw(t, "y"), max(amount.Draw(t, "c"), 1)
		product := new(big.Int).Mul(big.NewInt(x), big.NewInt(y))
		if got, want := Multiply(x, y), clamp(product); got != want {
			t.Fatalf("Multiply(%d, %d) = %d, want %d", x, y, got, want)
		}
		if got, want := MulDiv(x, y, c), clamp(new(big.Int).Quo(product, big.NewInt(c))); got != want {
			t.Fatalf("MulDiv(%d, %d, %d) = %d, want %d", x, y, c, got, want)
		}
		up := new(big.Int).Add(product, big.NewInt(c-1))
		if got, want := MulDivUp(x, y, c), clamp(up.Quo(up, big.NewInt(c))); got != want {
			t.Fatalf("MulDivUp(%d, %d, %d) = %d, want %d", x, y, c, got, want)
		}
	})
}

func TestNegativeFactorsCountAsZero(t *testing.T) {
	if got := [...]int64{Multiply(-2, 3), Multiply(2, -3), Multiply(-2, -3), MulDiv(-2, 3, 4), MulDivUp(2, -3, 4)}; got != [5]int64{} {
		t.Errorf("%v, want zeros", got)
	}
}

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

func TestSum(t *testing.T) {
	const most = math.MaxInt64
	for name, tc := range map[string]struct {
		amounts []Amount
		want    Sum
	}{
		"no pods": {nil, Sum{}},
		// 100 + 200; 300 + 200; floored 300 + 200
		"bounded pods": {
			[]Amount{{Request: 100, Limit: 300}, {Request: 200, Limit: 200}}, Sum{Request: 300, Limit: 500, FlooredLimit: 500},
		},
		// the unbounded pod declares 50; floored it counts as its request
		"one unbounded": {
			[]Amount{{Request: 100, Limit: 300}, {Request: 200, Limit: 50, Unbounded: true}},
			Sum{Request: 300, Limit: 300, PartialLimit: 50, FlooredLimit: 500, Unbounded: 1},
		},
		// a best-effort pod, and a pod with a partial limit of 80
		"unbounded pods only": {
			[]Amount{{Unbounded: true}, {Limit: 80, Unbounded: true}},
			Sum{PartialLimit: 80, FlooredLimit: 80, Unbounded: 2},
		},
		"sums that saturate": {
			[]Amount{{Request: most, Limit: most}, {Request: 1, Limit: 1}, {Limit: most, Unbounded: true}, {Limit: 1, Unbounded: true}},
			Sum{Request: most, Limit: most, PartialLimit: most, FlooredLimit: most, Unbounded: 2},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got Sum
			for _, a := range tc.amounts {
				got.Add(a)
			}
			if got != tc.want {
				t.Errorf("%+v: %+v, want %+v", tc.amounts, got, tc.want)
			}
		})
	}
}

func TestLimitWithDefault(t *testing.T) {
	const most = math.MaxInt64
	for name, tc := range map[string]struct {
		sum                       Sum
		defaultLimit, allocatable int64
		want                      int64
	}{
		"all bounded": {Sum{Limit: 500}, 1000, 8000, 500},
		// 500 + 2 x 8000: partial limits are included
		"without a default limit": {Sum{Limit: 500, PartialLimit: 80, Unbounded: 2}, 0, 8000, 16500},
		// 500 + 80 + 2 x 1000
		"with a default limit": {Sum{Limit: 500, PartialLimit: 80, Unbounded: 2}, 1000, 8000, 2580},
		// 500 + 1 x 0: the node lacks the resource
		"nothing allocatable":          {Sum{Limit: 500, Unbounded: 1}, 0, 0, 500},
		"allocatable that saturates":   {Sum{Limit: 500, Unbounded: 2}, 0, most, most},
		"default limit that saturates": {Sum{Limit: 500, Unbounded: 2}, most, 8000, most},
		"limits that saturate":         {Sum{Limit: most, PartialLimit: most, Unbounded: 1}, 1, 8000, most},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.sum.LimitWithDefault(tc.defaultLimit, tc.allocatable); got != tc.want {
				t.Errorf("%+v with %d of %d: %d, want %d", tc.sum, tc.defaultLimit, tc.allocatable, got, tc.want)
			}
		})
	}
}
