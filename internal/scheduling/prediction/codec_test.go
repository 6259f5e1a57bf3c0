package prediction

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/plimsoll-k8s/plimsoll/internal/kube"
	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/predict"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// zipped returns a text as Encode would compress it.
func zipped(text string) []byte {
	var buffer bytes.Buffer
	zip := gzip.NewWriter(&buffer)
	_, _ = zip.Write([]byte(text))
	_ = zip.Close()
	return buffer.Bytes()
}

func workload(name string, pods float64) predict.Past {
	return predict.Past{
		Namespace: "default",
		Kind:      "Deployment",
		Name:      name,
		CPU: predict.PastUsage{
			Pods:    pods,
			Seconds: 600,
			Mean:    250,
			Request: 1000,
		},
		Memory: predict.PastUsage{Pods: pods, Seconds: 60, Mean: 1 << 28},
	}
}

// TestRoundTrip checks that decoded workloads are equal to the encoded ones, with four digits.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		usage := rapid.Custom(func(t *rapid.T) predict.PastUsage {
			value := rapid.Float64Range(0, 1e15)
			return predict.PastUsage{
				Pods:    value.Draw(t, "pods"),
				Seconds: value.Draw(t, "seconds"),
				Mean:    value.Draw(t, "mean"),
				Request: value.Draw(t, "request"),
			}
		})
		n := rapid.IntRange(0, 20).Draw(t, "workloads")
		var want []predict.Past
		for i := range n {
			want = append(want, predict.Past{
				Namespace: rapid.StringN(1, 20, 60).Draw(t, "namespace"), Kind: "Job", Name: fmt.Sprint(i),
				CPU: usage.Draw(t, "cpu"), Memory: usage.Draw(t, "memory"),
			})
		}
		for i := range want {
			want[i].Namespace = strings.ToValidUTF8(want[i].Namespace, "x")
		}
		data, written, err := EncodeHistory(want, kube.MaxSaved)
		if err != nil || written != n {
			t.Fatal(written, err)
		}
		got, err := decodeHistory(data)
		must.Succeed(t, err)
		byName := map[string]predict.Past{}
		for i, w := range got {
			byName[w.Name] = w
			if i > 0 && pods(&w) > pods(&got[i-1]) {
				t.Fatal("not in the order of the number of pods")
			}
		}
		near := cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) <= 5e-4*max(math.Abs(a), math.Abs(b)) })
		for _, w := range want {
			if diff := cmp.Diff(w, byName[w.Name], near); diff != "" {
				t.Fatal(diff)
			}
		}
	})
}

// TestEncodeIsBounded checks that the workloads with the fewest pods are left out, and no more than necessary.
func TestEncodeIsBounded(t *testing.T) {
	var workloads []predict.Past
	for i := range 3000 {
		w := workload(fmt.Sprintf("service-%x", uint32(i)*2654435761), float64(i+1))
		w.CPU.Mean = math.Sqrt(float64(i + 1))
		workloads = append(workloads, w)
	}
	all, _, err := EncodeHistory(workloads, math.MaxInt)
	must.Succeed(t, err)
	limit := len(all) / 3
	data, written, err := EncodeHistory(workloads, limit)
	if err != nil || len(data) > limit || written < 700 || written > 1000 {
		t.Fatalf("%d of 3000 workloads in %d bytes, %v; want nearly 1000 in at most %d", written, len(data), err, limit)
	}
	got, err := decodeHistory(data)
	if err != nil || len(got) != written {
		t.Fatal(len(got), err)
	}
	// The workloads have 3000 pods, 2999 pods and so on, down to 3001 - written.
	if got[0].CPU.Pods != 3000 || got[written-1].CPU.Pods != float64(3001-written) {
		t.Errorf("workloads with %v to %v pods, want those with the most", got[0].CPU.Pods, got[written-1].CPU.Pods)
	}
	if _, _, err := EncodeHistory(workloads, 10); err == nil {
		t.Error("an empty history in 10 bytes")
	}
}

func TestEncodeIgnoresInvalidValues(t *testing.T) {
	w := workload("a", math.NaN())
	w.Memory.Mean = math.Inf(1)
	data, _, err := EncodeHistory([]predict.Past{w}, kube.MaxSaved)
	must.Succeed(t, err)
	if got, err := decodeHistory(data); err != nil || got[0].CPU != (predict.PastUsage{}) || got[0].Memory != (predict.PastUsage{}) {
		t.Errorf("%+v, %v; want no usage", got, err)
	}
}

// TestEncodeLeavesOutInvalidWorkloads checks that a workload with a name that Decode rejects does not invalidate other workloads.
func TestEncodeLeavesOutInvalidWorkloads(t *testing.T) {
	long, unnamed, huge := workload("long", 7), workload("", 6), workload("huge", 5)
	long.Kind = strings.Repeat("x", maxName+1)
	huge.Memory.Mean = 1e300
	data, written, err := EncodeHistory([]predict.Past{long, workload("a", 1), unnamed, huge}, kube.MaxSaved)
	if err != nil || written != 1 {
		t.Fatalf("%d workloads, want 1, error %v", written, err)
	}
	if got, err := decodeHistory(data); err != nil || len(got) != 1 || got[0].Name != "a" {
		t.Errorf("%+v, %v; want workload a", got, err)
	}
}

func TestDecodeErrors(t *testing.T) {
	const start = `{"version":2,"workloads":[{"namespace":"a","kind":"b","name":"c"`
	for name, tc := range map[string]struct {
		data []byte
		want string
	}{
		"truncated":       {zipped(start + "}]}")[:30], "history: unexpected EOF"},
		"not JSON":        {zipped("hello"), "history: invalid character"},
		"another version": {zipped(`{"version":1}`), "history: version: invalid value 1: must be 2"},
		"no name":         {zipped(`{"version":2,"workloads":[{"namespace":"a","kind":"b"}]}`), "history: workloads[0]: name: invalid value of 0 bytes: must have 1 to 253"},
		"negative":        {zipped(start + `,"cpu":{"pods":-1}}]}`), "history: workloads[0]: cpu.pods: invalid value -1: must be in [0, 1e+18]"},
		"too high":        {zipped(start + `,"memory":{"mean":1e300}}]}`), "history: workloads[0]: memory.mean: invalid value 1e+300"},
		"a bomb":          {zipped(strings.Repeat(" ", 32<<20+1)), "history: has more than 32 MiB"},
		"too many":        {zipped(`{"version":2,"workloads":[` + strings.Repeat("{},", maxWorkloads) + "{}]}"), "history: has 100001 workloads, maximum is 100000"},
	} {
		if got, err := decodeHistory(tc.data); err == nil || !strings.Contains(err.Error(), tc.want) || got != nil {
			t.Errorf("%s: %v, want %s", name, err, tc.want)
		}
	}
}

// FuzzDecode checks that any data gives an error or valid workloads.
func FuzzDecode(f *testing.F) {
	data, _, err := EncodeHistory([]predict.Past{workload("a", 3)}, kube.MaxSaved)
	must.Succeed(f, err)
	f.Add(data, "")
	f.Add([]byte{}, `{"version":2,"workloads":[{"namespace":"a","kind":"b","name":"c","cpu":{"pods":1e999}}]}`)
	f.Fuzz(func(t *testing.T, data []byte, text string) {
		for _, input := range [][]byte{data, zipped(text)} {
			workloads, err := decodeHistory(input)
			if err != nil && workloads != nil {
				t.Error("workloads together with an error")
			}
			for i := range workloads {
				if err := validate(&workloads[i]); err != nil {
					t.Error(err)
				}
			}
		}
	})
}
