package metricsserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/plimsoll-k8s/plimsoll/api/metricprovider"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/load"
)

// maxPodAge is the maximum age of a pod's metrics. It allows for some failed scrapes of its node.
const maxPodAge = 3 * time.Minute

// maxBytes is the size of the largest list of pods; a list of 30,000 pods with one container has 10 MiB.
const maxBytes = 256 << 20

// PodOpener opens the metrics of the pods of all namespaces: a PodMetricsList of metrics.k8s.io/v1beta1 in JSON.
type PodOpener func(ctx context.Context) (io.ReadCloser, error)

// OpenPods returns the Opener of a client of the metrics API.
func OpenPods(client rest.Interface) PodOpener {
	return func(ctx context.Context) (io.ReadCloser, error) {
		return client.Get().AbsPath("/apis/metrics.k8s.io/v1beta1/pods").SetHeader("Accept", "application/json").Stream(ctx)
	}
}

// PodSource reads the metrics of pods.
type PodSource struct {
	open PodOpener
	now  func() time.Time
}

// NewPods returns the source that an Opener opens.
func NewPods(open PodOpener) (*PodSource, error) {
	if open == nil {
		return nil, errors.New("metrics-server: requires access to a cluster, for its metrics")
	}
	return &PodSource{open, time.Now}, nil
}

// String returns the name of the source, for messages.
func (s *PodSource) String() string { return "the metrics API (metrics.k8s.io), pods" }

// ReadPods lists the metrics of all pods. A pod's usage is the sum of its containers. Pods whose metrics are older than the
// maximum age are rejected.
func (s *PodSource) ReadPods(ctx context.Context) (load.PodReading, error) {
	body, err := s.open(ctx)
	if err != nil {
		return load.PodReading{}, Describe(err, "pods")
	}
	defer body.Close()
	pods, err := decodePods(body)
	if err != nil {
		return load.PodReading{}, err
	}
	reading := load.PodReading{Source: metricprovider.MetricsServer}
	now := s.now()
	for i := range pods {
		at := pods[i].Timestamp.Time
		usage, valid := pods[i].usage()
		if !valid || at.After(now.Add(load.MaxAhead)) || now.Sub(at) > maxPodAge {
			reading.Rejected++
			continue
		}
		if at.After(reading.Time) {
			reading.Time = at
		}
		reading.Window = max(reading.Window, pods[i].Window.Duration)
		reading.Pods = append(reading.Pods, usage)
	}
	if len(reading.Pods) == 0 {
		return load.PodReading{}, load.Errorf(load.Empty,
			"no pod has fresh metrics: %d listed, %d of them invalid or older than %s", len(pods), reading.Rejected, maxPodAge)
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

// decodePods decodes a PodMetricsList.
func decodePods(body io.ReadCloser) ([]podMetrics, error) {
	var list struct{ Items *[]podMetrics }
	raw, err := io.ReadAll(http.MaxBytesReader(nil, body, maxBytes))
	if err == nil {
		err = json.Unmarshal(raw, &list)
	}
	switch large, ok := errors.AsType[*http.MaxBytesError](err); {
	case ok:
		return nil, load.Errorf(load.TooLarge, "list of pod metrics: response is larger than %d MiB", large.Limit>>20)
	case err != nil:
		return nil, fmt.Errorf("list of pod metrics: %w", err)
	case list.Items == nil:
		return nil, errors.New("list of pod metrics: no field items")
	case len(*list.Items) > load.MaxPods:
		return nil, load.Errorf(load.TooLarge, "list has more than %d pods", load.MaxPods)
	}
	return *list.Items, nil
}
