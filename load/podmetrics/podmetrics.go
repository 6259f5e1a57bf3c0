// Package podmetrics reads the usage of pods from the metrics API of Kubernetes, which metrics-server provides. It is a
// separate package because its permissions are needed only where the usage of pods is read.
package podmetrics

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/plimsoll-k8s/plimsoll/api/metricprovider"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/load/metricsserver"
)

// maxAge is the maximum age of a pod's metrics. It allows for some failed scrapes of its node.
const maxAge = 3 * time.Minute

// maxBytes is the size of the largest list of pods; a list of 30,000 pods with one container has 10 MiB. The list is
// decoded pod by pod, because metrics-server has no pages: its text is never in memory as a whole.
const maxBytes = 256 << 20

// maxValueBytes is the size of the largest value in such a list: one pod, or a field that is ignored.
const maxValueBytes = 1 << 20

// Opener opens the metrics of the pods of all namespaces: a PodMetricsList of metrics.k8s.io/v1beta1 in JSON.
type Opener func(ctx context.Context) (io.ReadCloser, error)

// Open returns the Opener of a client of the metrics API.
func Open(client rest.Interface) Opener {
	return func(ctx context.Context) (io.ReadCloser, error) {
		return client.Get().AbsPath("/apis/metrics.k8s.io/v1beta1/pods").SetHeader("Accept", "application/json").Stream(ctx)
	}
}

// Source reads the metrics of pods.
type Source struct {
	open Opener
	now  func() time.Time
}

// New returns the source that an Opener opens.
func New(open Opener) (*Source, error) {
	if open == nil {
		return nil, errors.New("metrics-server: requires access to a cluster, for its metrics")
	}
	return &Source{open, time.Now}, nil
}

// String returns the name of the source, for messages.
func (s *Source) String() string { return "the metrics API (metrics.k8s.io), pods" }

// +kubebuilder:rbac:groups=metrics.k8s.io,resources=pods,verbs=list

// ReadPods lists the metrics of all pods. A pod's usage is the sum of its containers. Pods whose metrics are older than the
// maximum age are rejected.
func (s *Source) ReadPods(ctx context.Context) (load.PodReading, error) {
	body, err := s.open(ctx)
	if err != nil {
		return load.PodReading{}, metricsserver.Describe(err, "pods")
	}
	defer body.Close()
	reading := load.PodReading{Source: metricprovider.MetricsServer}
	now := s.now()
	listed := 0
	err = decodePods(body, func(pod *podMetrics) error {
		if listed++; listed > load.MaxPods {
			return &load.Error{Reason: load.TooLarge, Err: fmt.Errorf("list has more than %d pods", load.MaxPods)}
		}
		at := pod.Timestamp.Time
		usage, valid := pod.usage()
		if !valid || at.After(now.Add(load.MaxAhead)) || now.Sub(at) > maxAge {
			reading.Rejected++
			return nil
		}
		if at.After(reading.Time) {
			reading.Time = at
		}
		reading.Window = max(reading.Window, pod.Window.Duration)
		reading.Pods = append(reading.Pods, usage)
		return nil
	})
	if err != nil {
		return load.PodReading{}, err
	}
	if len(reading.Pods) == 0 {
		return load.PodReading{}, &load.Error{Reason: load.Empty, Err: fmt.Errorf(
			"no pod has fresh metrics: %d listed, %d of them invalid or older than %s", listed, reading.Rejected, maxAge)}
	}
	slices.SortStableFunc(reading.Pods, load.PodUsage.Compare)
	reading.Pods = slices.CompactFunc(reading.Pods, func(a, b load.PodUsage) bool { return a.Compare(b) == 0 })
	return reading, nil
}

// podMetrics is the part of a PodMetrics that is read. Quantities are text, so that their size is checked before they are
// decoded.
type podMetrics struct {
	Metadata struct {
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
	} `json:"metadata"`
	Timestamp  metav1.Time     `json:"timestamp"`
	Window     metav1.Duration `json:"window"`
	Containers []struct {
		Usage map[v1.ResourceName]string `json:"usage"`
	} `json:"containers"`
}

// usage returns the sum of the containers, and whether all of their values are valid.
func (p *podMetrics) usage() (load.PodUsage, bool) {
	usage := load.PodUsage{Namespace: p.Metadata.Namespace, Name: p.Metadata.Name}
	for _, container := range p.Containers {
		cpu, err := resources.ParseQuantity(container.Usage[v1.ResourceCPU])
		if err != nil {
			return usage, false
		}
		memory, err := resources.ParseQuantity(container.Usage[v1.ResourceMemory])
		if err != nil || cpu.Sign() < 0 || memory.Sign() < 0 {
			return usage, false
		}
		usage.CPU += 1000 * cpu.AsApproximateFloat64()
		usage.Memory += memory.AsApproximateFloat64()
	}
	return usage, usage.Name != "" && usage.Namespace != "" && len(p.Containers) > 0 && usage.Valid()
}

// decodePods calls visit for each item of a PodMetricsList, and returns its error.
func decodePods(body io.Reader, visit func(*podMetrics) error) error {
	bounded := &boundedReader{body: body}
	decoder := json.NewDecoder(bounded)
	bounded.decoded = decoder.InputOffset
	found, err := decodeList(decoder, visit)
	if err == nil && !found {
		err = errors.New("no field items")
	}
	if typed, ok := errors.AsType[*load.Error](err); ok {
		return typed
	}
	if err != nil {
		return fmt.Errorf("list of pod metrics: %w", err)
	}
	return nil
}

// decodeList calls visit for each item of the list that follows, and reports whether the list has the field items.
func decodeList(decoder *json.Decoder, visit func(*podMetrics) error) (found bool, err error) {
	if err := expect(decoder, '{'); err != nil {
		return false, err
	}
	for decoder.More() {
		key, err := decoder.Token()
		switch {
		case err != nil:
		case key == "items":
			found, err = true, decodeItems(decoder, visit)
		default:
			var ignored json.RawMessage
			err = decoder.Decode(&ignored)
		}
		if err != nil {
			return found, err
		}
	}
	return found, expect(decoder, '}')
}

// decodeItems calls visit for each item of the array that follows.
func decodeItems(decoder *json.Decoder, visit func(*podMetrics) error) error {
	if err := expect(decoder, '['); err != nil {
		return err
	}
	for decoder.More() {
		var pod podMetrics
		if err := decoder.Decode(&pod); err != nil {
			return err
		}
		if err := visit(&pod); err != nil {
			return err
		}
	}
	return expect(decoder, ']')
}

// expect reads a delimiter.
func expect(decoder *json.Decoder, want json.Delim) error {
	token, err := decoder.Token()
	if err == nil && token != want {
		err = fmt.Errorf("found %v: must be %v", token, want)
	}
	return err
}

// boundedReader returns an error if the list or one of its values is too large.
type boundedReader struct {
	body io.Reader
	read int64
	// decoded returns how many bytes have been decoded. The remaining bytes are in the buffer of the decoder.
	decoded func() int64
}

// Read implements io.Reader.
func (r *boundedReader) Read(p []byte) (int, error) {
	n, err := r.body.Read(p)
	r.read += int64(n)
	tooLarge := func(what string, limit int) error {
		return &load.Error{Reason: load.TooLarge, Err: fmt.Errorf("list of pod metrics: %s larger than %d MiB", what, limit>>20)}
	}
	switch {
	case r.read > maxBytes:
		return 0, tooLarge("response is", maxBytes)
	case r.read-r.decoded() > 2*maxValueBytes: // the decoder reads ahead
		return 0, tooLarge("a value is", maxValueBytes)
	}
	return n, err
}
