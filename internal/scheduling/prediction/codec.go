package prediction

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/plimsoll-k8s/plimsoll/internal/kube"
	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/predict"
)

const (
	// version is the version of the format.
	version = 2
	// maxWorkloads is the maximum number of decoded workloads.
	maxWorkloads = 100_000
	// maxName is the length of the longest name of an object.
	maxName = 253
	// maxPods is the maximum number of pods of a restored workload, more than any cluster has.
	maxPods = 1_000_000
	// maxValue bounds numbers, so that sums of them are finite.
	maxValue = 1e18
)

// document is the encoded form, as gzipped JSON.
type document struct {
	Version   int            `json:"version"`
	Workloads []predict.Past `json:"workloads"`
}

// EncodeHistory returns the workloads in at most limit bytes. If they need more, the workloads with the fewest pods are left out.
// Workloads that Decode would reject are left out, too: a pod may have an owner of any name. written is the number of workloads
// in data.
func EncodeHistory(workloads []predict.Past, limit int) (data []byte, written int, err error) {
	sorted := slices.Clone(workloads)
	for i := range sorted {
		round(&sorted[i].CPU)
		round(&sorted[i].Memory)
	}
	sorted = slices.DeleteFunc(sorted, func(w predict.Past) bool { return validate(&w) != nil })
	slices.SortFunc(sorted, func(a, b predict.Past) int {
		return cmp.Or(cmp.Compare(pods(&b), pods(&a)), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Kind, b.Kind),
			cmp.Compare(a.Name, b.Name))
	})
	for n := min(len(sorted), maxWorkloads); ; {
		if data, err = kube.Compress(document{version, sorted[:n]}); err != nil || len(data) <= limit {
			return data, n, err
		}
		if n == 0 {
			return nil, 0, fmt.Errorf("an empty history has %d bytes, maximum is %d", len(data), limit)
		}
		n = min(n-1, int(0.95*float64(n)*float64(limit)/float64(len(data))))
	}
}

// decodeHistory returns the workloads of an encoded history. Workloads with invalid values are an error.
func decodeHistory(data []byte) ([]predict.Past, error) {
	var d document
	if err := kube.Decompress(data, &d); err != nil {
		return nil, fmt.Errorf("history: %w", err)
	}
	switch {
	case d.Version != version:
		return nil, fmt.Errorf("history: version: invalid value %d: must be %d", d.Version, version)
	case len(d.Workloads) > maxWorkloads:
		return nil, fmt.Errorf("history: has %d workloads, maximum is %d", len(d.Workloads), maxWorkloads)
	}
	for i := range d.Workloads {
		if err := validate(&d.Workloads[i]); err != nil {
			return nil, fmt.Errorf("history: workloads[%d]: %w", i, err)
		}
	}
	return d.Workloads, nil
}

// pods returns the number of pods whose usage is known.
func pods(w *predict.Past) float64 { return max(w.CPU.Pods, w.Memory.Pods) }

// validate returns an error that names the invalid field.
func validate(w *predict.Past) error {
	for _, f := range []struct{ field, value string }{{"namespace", w.Namespace}, {"kind", w.Kind}, {"name", w.Name}} {
		if f.value == "" || len(f.value) > maxName {
			return fmt.Errorf("%s: invalid value of %d bytes: must have 1 to %d", f.field, len(f.value), maxName)
		}
	}
	return errors.Join(validateUsage("cpu", &w.CPU), validateUsage("memory", &w.Memory))
}

func validateUsage(resource string, u *predict.PastUsage) error {
	for _, f := range []struct {
		field string
		value float64
	}{{"pods", u.Pods}, {"seconds", u.Seconds}, {"mean", u.Mean}, {"request", u.Request}} {
		if !(f.value >= 0 && f.value <= maxValue) {
			return fmt.Errorf("%s.%s: invalid value %v: must be in [0, %g]", resource, f.field, f.value, float64(maxValue))
		}
	}
	return nil
}

// round rounds the values to four digits, which makes the text shorter.
func round(u *predict.PastUsage) {
	for _, value := range []*float64{&u.Pods, &u.Seconds, &u.Mean, &u.Request} {
		if math.IsNaN(*value) || math.IsInf(*value, 0) {
			*u = predict.PastUsage{}
			return
		}
		*value, _ = strconv.ParseFloat(strconv.FormatFloat(*value, 'g', 4, 64), 64)
	}
}
