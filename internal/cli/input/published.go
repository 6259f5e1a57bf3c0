package input

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/plimsoll-k8s/plimsoll/api/config"
	"github.com/plimsoll-k8s/plimsoll/api/metricprovider"
	"github.com/plimsoll-k8s/plimsoll/internal/kube"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/engine"
)

// maxPublished is the number of ConfigMaps that are read.
const maxPublished = 50

// PublishedScheduler returns the configuration that the chart has stored in the cluster for the scheduler
// with the name, and false if there is none. Without the right to list ConfigMaps it returns false.
func PublishedScheduler(
	ctx context.Context, client kubernetes.Interface, name string, warn func(string),
) (engine.Scheduler, bool, error) {
	list, err := client.CoreV1().ConfigMaps(metav1.NamespaceAll).List(ctx, metav1.ListOptions{
		LabelSelector: kube.SchedulerConfigurationSelector, Limit: maxPublished,
	})
	switch {
	case apierrors.IsForbidden(err):
		return engine.Scheduler{}, false, nil
	case err != nil:
		return engine.Scheduler{}, false, fmt.Errorf("listing the configurations of schedulers: %w", err)
	}
	for i := range list.Items {
		scheduler, err := published(&list.Items[i])
		if err != nil {
			warn(err.Error())
			continue
		}
		if scheduler.Has(name) {
			return scheduler, true, nil
		}
	}
	return engine.Scheduler{}, false, nil
}

// published returns the configuration in a ConfigMap.
func published(m *v1.ConfigMap) (engine.Scheduler, error) {
	source := fmt.Sprintf("ConfigMap %s/%s", m.Namespace, m.Name)
	cfg, err := config.Decode(source, []byte(m.Data[kube.SchedulerConfigurationKey]))
	return engine.Scheduler{Config: cfg, Source: source}, err
}

// LoadSourceOf returns the load source that a profile of the scheduler configures, or else the first
// load source that any of its profiles configures. It returns false if there is none.
func LoadSourceOf(scheduler engine.Scheduler, profile engine.Profile) (metricprovider.Config, bool) {
	if source, ok := loadSourceOf(scheduler.Config, profile.SchedulerName); ok {
		return source, true
	}
	return loadSourceOf(scheduler.Config, "")
}
