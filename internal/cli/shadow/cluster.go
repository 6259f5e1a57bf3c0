package shadow

import (
	"context"
	"fmt"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/plimsoll-k8s/plimsoll/internal/cli/input"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/engine"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/shadow"
	"github.com/plimsoll-k8s/plimsoll/load/prometheus"
)

// current returns the profile in force: --profile, or else the configuration that a scheduler with the name default-scheduler has
// published in the cluster, or else kube-scheduler's default profile.
func (o *options) current(ctx context.Context, client kubernetes.Interface, log func(string)) (engine.NamedConfig, error) {
	if o.profile != "" {
		profiles, err := read("profile", o.profile)
		if err != nil {
			return engine.NamedConfig{}, err
		}
		return profiles[0], nil
	}
	scheduler, found, err := input.PublishedScheduler(ctx, client, v1.DefaultSchedulerName, log)
	switch {
	case err != nil:
		log(fmt.Sprintf("the profile in force could not be read: %v", err))
	case found:
		return engine.NamedConfig{Name: scheduler.Source, Text: scheduler.Text}, nil
	}
	// The configuration is a file on the node of kube-scheduler.
	options := metav1.ListOptions{LabelSelector: "component=kube-scheduler", Limit: 1}
	pods, err := client.CoreV1().Pods(metav1.NamespaceSystem).List(ctx, options)
	if err == nil && len(pods.Items) > 0 {
		for _, c := range pods.Items[0].Spec.Containers {
			if i := strings.Index(strings.Join(append(c.Command, c.Args...), "\n"), "--config="); i >= 0 {
				log("kube-scheduler has a configuration file, which cannot be read from the cluster: set --profile to a copy of it")
			}
		}
	}
	return engine.ReadConfig("default")
}

// furtherSource reads outcomes that are not in recordings, from Prometheus. The zero value has none.
type furtherSource struct {
	client   *prometheus.Client
	selector string
}

// furtherSource returns the source.
func (o *options) furtherSource() (f furtherSource, err error) {
	f.client, f.selector, err = o.following.Prometheus()
	return f, err
}

// furtherTimeout is the longest time of a query.
const furtherTimeout = 30 * time.Second

// read returns the outcomes from one time to another.
func (f furtherSource) read(ctx context.Context, from, to time.Time) shadow.Further {
	out := shadow.Further{}
	if f.client == nil {
		out.Missing = []string{"throttling and pressure: they need --prometheus"}
		return out
	}
	for _, q := range []struct {
		metric, matcher string
		to              **float64
	}{
		{"container_cpu_cfs_throttled_seconds_total", `container!=""`, &out.ThrottledSeconds},
		{"container_pressure_cpu_waiting_seconds_total", `id="/"`, &out.CPUPressureSeconds},
		{"container_pressure_memory_waiting_seconds_total", `id="/"`, &out.MemoryPressureSeconds},
	} {
		matchers := q.matcher
		if f.selector != "" {
			matchers += "," + f.selector
		}
		query := fmt.Sprintf("sum(increase(%s{%s}[%ds]))", q.metric, matchers, int64(to.Sub(from).Seconds()))
		value, err := f.query(ctx, query, to)
		switch {
		case err != nil:
			out.Missing = append(out.Missing, fmt.Sprintf("%s: %v", q.metric, err))
		case value == nil:
			out.Missing = append(out.Missing, q.metric+": the server has no such series")
		default:
			*q.to = value
		}
	}
	return out
}

// query returns the value of a query at a time, nil if it has none.
func (f furtherSource) query(ctx context.Context, query string, at time.Time) (*float64, error) {
	ctx, cancel := context.WithTimeout(ctx, furtherTimeout)
	defer cancel()
	vector, _, err := f.client.Query(ctx, query, at)
	if err != nil || len(vector) == 0 {
		return nil, err
	}
	value := float64(vector[0].Value)
	return &value, nil
}
