package shadow

import (
	"context"
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/plimsoll-k8s/plimsoll/internal/cli/input"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/engine"
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
