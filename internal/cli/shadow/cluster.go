package shadow

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/plimsoll-k8s/plimsoll/internal/cli/input"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/engine"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/shadow"
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
			isFile := func(arg string) bool { return arg == "--config" || strings.HasPrefix(arg, "--config=") }
			if slices.ContainsFunc(slices.Concat(c.Command, c.Args), isFile) {
				log("kube-scheduler has a configuration file, which cannot be read from the cluster: set --profile to a copy of it")
			}
		}
	}
	return engine.ReadConfig("default")
}

// outcomesTimeout is the longest time of a query.
const outcomesTimeout = 30 * time.Second

// outcomes returns the outcomes from one time to another that are not in recordings, from Prometheus.
func (s *server) outcomes(ctx context.Context, from, to time.Time) (out shadow.MeasuredOutcomes) {
	if s.prometheus == nil {
		out.Missing = []string{"throttling and pressure: they need --prometheus"}
		return out
	}
	out.Measure(func(counter, matcher string) (*float64, error) {
		ctx, cancel := context.WithTimeout(ctx, outcomesTimeout)
		defer cancel()
		if s.matchers != "" {
			matcher += "," + s.matchers
		}
		query := fmt.Sprintf("sum(increase(%s{%s}[%ds]))", counter, matcher, int64(to.Sub(from).Seconds()))
		vector, _, err := s.prometheus.Query(ctx, query, to)
		if err != nil || len(vector) == 0 {
			return nil, err
		}
		return new(float64(vector[0].Value)), nil
	})
	return out
}
