package testcluster

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/plimsoll-k8s/plimsoll/internal/doctor"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// Examine examines a cluster at the current time plus later.
func Examine(t *testing.T, config *rest.Config, later time.Duration) []doctor.Finding {
	t.Helper()
	cluster, err := doctor.New(config, "v1.37.1")
	must.Succeed(t, err)
	findings, err := cluster.Examine(t.Context(), time.Now().Add(later))
	must.Succeed(t, err)
	return findings
}

// ExpectFinding fails unless there is a finding with the given check, level and part of the
// message. A finding that is not OK must have a fix.
func ExpectFinding(t *testing.T, findings []doctor.Finding, check string, level doctor.Level, message string) {
	t.Helper()
	for _, f := range findings {
		if f.Check == check && f.Level == level && strings.Contains(f.Message, message) {
			if level != doctor.OK && f.Fix == "" {
				t.Errorf("%+v has no fix", f)
			}
			return
		}
	}
	t.Errorf("no finding with check %q, level %s and message %q in %+v", check, level, message, findings)
}

// Component returns a Deployment with the labels of the chart and one container.
func Component(name string, container v1.Container) *appsv1.Deployment {
	labels := map[string]string{"app.kubernetes.io/part-of": "plimsoll", "app.kubernetes.io/component": name}
	container.Name = name
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: SystemNamespace, Name: "plimsoll-" + name, Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: v1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       v1.PodSpec{SchedulerName: "unknown", Containers: []v1.Container{container}},
			},
		},
	}
}
