package prometheus

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/common/model"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-k8s/plimsoll/api/metricprovider"
	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/load/endpoint"
)

const (
	// maxPodBytes is the size of the largest response to a query of pods; a response for 30,000 pods has about 4 MiB.
	maxPodBytes = 64 << 20
	// maxPodValues is the largest number of JSON values in such a response: seven for each pod without further labels.
	maxPodValues = 10 * load.MaxPods
)

// PodSource reads the usage of pods from a Prometheus server.
type PodSource struct {
	*Client
	config metricprovider.Config
}

// NewPods returns the source of a configuration, or an error that names the field.
func NewPods(config metricprovider.Config) (*PodSource, error) {
	config.RateWindow.Duration = cmp.Or(config.RateWindow.Duration, defaultRateWindow)
	if window := config.RateWindow.Duration; window < time.Second {
		return nil, fmt.Errorf("rateWindow: invalid value %s: must be at least 1s", window)
	}
	client, err := NewClient(config, endpoint.Options{MaxBytes: maxPodBytes, MaxValues: maxPodValues})
	if err != nil {
		return nil, err
	}
	return &PodSource{client, config}, nil
}

// String returns the URL of the server, for messages.
func (s *PodSource) String() string { return s.Client.String() + ", pods" }

// queries returns the queries for CPU and memory with a prefix of the labels: exported_ if the labels of the target replace the labels of
// the pods.
func (s *PodSource) queries(prefix string) (cpu, memory string) {
	series := func(metric string, matchers ...string) (string, bool) {
		return selector(&s.config, metric, matchers...), true
	}
	by := prefix + "namespace, " + prefix + "pod, " + string(clusterLabel)
	return PodQueries(&s.config, series, by, prefix+"pod", prefix+"container")
}

// The metrics of the usage of containers, from the kubelet's cAdvisor.
const (
	ContainerCPU    = "container_cpu_usage_seconds_total"
	ContainerMemory = "container_memory_working_set_bytes"
)

// PodQueries returns the queries for the CPU usage in cores and the memory usage in bytes, one sample for each pod, which has the labels
// by. pod and container are the names of these labels. series returns the selector of a metric with matchers, and false if the metric is
// omitted.
//
// Each container has a series, as have the pod itself (without the label container) and its pause container (with container POD or without
// the label). The inner maximum counts a container once if two scrape configurations collect it, or if it was restarted within the window.
// If a container runtime has no series of containers, the series of the pod counts. The rate of a counter that is younger than its window
// is too low, see alternatives: pods that were not scraped a window ago are left out.
func PodQueries(
	c *metricprovider.Config, series func(metric string, matchers ...string) (string, bool), by, pod, container string,
) (cpu, memory string) {
	sum := func(metric, over string) string {
		containers, _ := series(metric, container+`!=""`, container+`!="POD"`, pod+`!=""`)
		pods, ok := series(metric, container+`=""`, pod+`!=""`)
		if !ok {
			return ""
		}
		return fmt.Sprintf("sum by (%[1]s) (max by (%[1]s, %[2]s) (%[3]s)) or max by (%[1]s) (%[4]s)", by, container,
			fmt.Sprintf(over, containers), fmt.Sprintf(over, pods))
	}
	window := promDuration(c.RateWindow)
	if scraped, ok := series(ContainerCPU, pod+`!=""`); ok {
		cpu = fmt.Sprintf("(%s) and group by (%s) (%s offset %s)", sum(ContainerCPU, "rate(%s["+window+"])"), by, scraped, window)
	}
	return cmp.Or(c.Queries.PodCPU, cpu), cmp.Or(c.Queries.PodMemory, sum(ContainerMemory, "%s"))
}

// exportedPrefix is the prefix of labels that Prometheus renames if a target has labels of the same names and honor_labels is not set.
const exportedPrefix = "exported_"

// findPrefix returns the prefix of the labels of pods, at a time.
func (s *PodSource) findPrefix(ctx context.Context, at time.Time) (string, error) {
	if s.config.Queries.PodCPU != "" || s.config.Queries.PodMemory != "" {
		return "", nil
	}
	renamed := selector(&s.config, ContainerMemory, exportedPrefix+`pod!=""`)
	vector, _, err := s.vector(ctx, "count("+renamed+")", at)
	if len(vector) > 0 && vector[0].Value > 0 {
		return exportedPrefix, err
	}
	return "", err
}

// ReadPods queries CPU and memory at the time of the server. Pods for which one of them is unknown are left out: the rate of a
// new pod is unknown until it was scraped for the rate window.
func (s *PodSource) ReadPods(ctx context.Context) (load.PodReading, error) {
	return s.ReadPodsAt(ctx, time.Time{})
}

// ReadPodsAt queries CPU and memory at a time, the current time of the server if it is zero.
func (s *PodSource) ReadPodsAt(ctx context.Context, at time.Time) (load.PodReading, error) {
	var vectors [2]model.Vector
	var errs [2]error
	prefix, err := s.findPrefix(ctx, at)
	if err != nil {
		return load.PodReading{}, err
	}
	cpu, memory := s.queries(prefix)
	var group sync.WaitGroup
	for i, query := range []string{cpu, memory} {
		group.Go(func() { vectors[i], errs[i] = s.queryPods(ctx, query, at) })
	}
	group.Wait()
	if err := load.JoinErrors(errs[0], errs[1]); err != nil {
		return load.PodReading{}, err
	}
	reading := load.PodReading{Source: metricprovider.Prometheus, Window: s.config.RateWindow.Duration}
	amounts, err := memoryByPod(vectors[1], prefix)
	if err != nil {
		return load.PodReading{}, err
	}
	reading.Pods = make([]load.PodUsage, 0, min(len(amounts), len(vectors[0])))
	for _, sample := range vectors[0] {
		key, isPod := keyOf(sample.Metric, prefix)
		amount, known := amounts[key]
		if !known && isPod {
			continue
		}
		usage := load.PodUsage{Namespace: key.Namespace, Name: key.Name, CPU: 1000 * float64(sample.Value), Memory: amount}
		if !known || !usage.Valid() {
			reading.Rejected++
			continue
		}
		delete(amounts, key) // a second series of the pod is not counted
		if measured := sample.Timestamp.Time(); reading.Time.IsZero() || measured.Before(reading.Time) {
			reading.Time = measured
		}
		reading.Pods = append(reading.Pods, usage)
	}
	if len(reading.Pods) == 0 {
		return load.PodReading{}, load.Errorf(load.Empty, "no pod has both CPU and memory: %d series of CPU, for example %s, and %d of "+
			"memory, for example %s: both must have the labels namespace and pod",
			len(vectors[0]), example(vectors[0]), len(vectors[1]), example(vectors[1]))
	}
	slices.SortFunc(reading.Pods, load.PodUsage.Compare)
	return reading, nil
}

// memoryByPod returns the largest memory of each pod, or an error if a pod has series of several clusters.
func memoryByPod(samples model.Vector, prefix string) (map[types.NamespacedName]float64, error) {
	amounts := make(map[types.NamespacedName]float64, len(samples))
	found := clusters{}
	for _, sample := range samples {
		key, isPod := keyOf(sample.Metric, prefix)
		if !isPod {
			continue
		}
		if err := found.add("pod "+key.String(), sample.Metric); err != nil {
			return nil, err
		}
		if amount, known := amounts[key]; !known || float64(sample.Value) > amount {
			amounts[key] = float64(sample.Value)
		}
	}
	return amounts, nil
}

// queryPods returns the result of a query of pods at a time.
func (s *PodSource) queryPods(ctx context.Context, query string, at time.Time) (model.Vector, error) {
	vector, _, err := s.vector(ctx, query, at)
	switch {
	case err != nil:
		return nil, err
	case len(vector) == 0:
		return nil, load.Errorf(load.Empty,
			"%s: no data: check that the metrics of containers are scraped from the kubelets (/metrics/cadvisor)", nameOf(query))
	case len(vector) > load.MaxPods:
		return nil, load.Errorf(load.TooLarge, "query %s: found %d series, maximum is %d", query, len(vector), load.MaxPods)
	}
	return vector, nil
}

// keyOf returns the pod of a series, and whether the series has both labels.
func keyOf(metric model.Metric, prefix string) (types.NamespacedName, bool) {
	key := types.NamespacedName{
		Namespace: string(metric[model.LabelName(prefix+"namespace")]),
		Name:      string(metric[model.LabelName(prefix+"pod")]),
	}
	return key, key.Namespace != "" && key.Name != ""
}
