//go:build nodes

package tests

import (
	"context"
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-k8s/plimsoll/test/support/eventually"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
	"github.com/plimsoll-k8s/plimsoll/test/support/program"
)

const (
	// heldCPU is the CPU that placeholders hold in millicores, of 200 of the node.
	heldCPU = 120
	// neededCPU is the request of a pod that fits only without placeholders: 80 are free.
	neededCPU = 150
	// preemptionMargin is how much longer a pod may wait for placeholders than for an ordinary pod of low priority.
	preemptionMargin = time.Second
)

const slackPolicy = `
apiVersion: plimsoll.dev/v1alpha1
kind: ResourceSlack
metadata: {name: real}
spec:
  minRate: "0"
  coverBiggestPod: false
  minimum: {cpu: 120m}
  maximum: {cpu: 120m}
  backend: Deployment
  pool:
    nodeSelector: {pool: slack}
`

// graces are the grace periods in seconds of preempted pods. The program work ends at once after SIGTERM.
var graces = []int64{0, 30}

// testSlack expects that placeholder pods give way to pods with and without grace periods about as fast as an ordinary pod of the same
// priority does.
func testSlack(t *testing.T) {
	_, err := cluster.Client.SchedulingV1().PriorityClasses().Create(t.Context(),
		&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "low"}, Value: -10}, metav1.CreateOptions{})
	must.Succeed(t, err)
	ordinary := map[int64]time.Duration{}
	for _, grace := range graces {
		victim := request(newPod(fmt.Sprint("victim-", grace), slackPool), heldCPU)
		victim.Spec.PriorityClassName, victim.Spec.TerminationGracePeriodSeconds = "low", &grace
		create(t, victim)
		await(t, victim.Name, "runs", isRunning)
		ordinary[grace] = preempt(t, fmt.Sprint("preempting-", grace), grace)
	}
	startSlack(t)
	for _, grace := range graces {
		awaitPlaceholders(t)
		took := preempt(t, fmt.Sprint("displacing-", grace), grace)
		t.Logf("a pod with a grace period of %d s waited %s for placeholders, %s for an ordinary pod", grace, took.Round(time.Millisecond),
			ordinary[grace].Round(time.Millisecond))
		if took > ordinary[grace]+preemptionMargin {
			t.Errorf("a pod waited %s for placeholders, and %s for an ordinary pod", took, ordinary[grace])
		}
	}
	// The placeholders come back.
	awaitPlaceholders(t)
}

// preempt creates a pod that fits only after a preemption, waits until it runs, and removes it. It returns the time until it had a node.
func preempt(t *testing.T, name string, grace int64) time.Duration {
	t.Helper()
	pod := request(newPod(name, slackPool), neededCPU)
	pod.Spec.TerminationGracePeriodSeconds = &grace
	watch, err := cluster.Client.CoreV1().Pods(namespace).Watch(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	must.Succeed(t, err)
	defer watch.Stop()
	begin := time.Now()
	create(t, pod)
	timeout := time.After(eventually.Limit)
	var bound time.Duration
	for bound == 0 {
		select {
		case event, ok := <-watch.ResultChan():
			if !ok {
				t.Fatalf("the watch of pod %s has ended", name)
			}
			if found, ok := event.Object.(*v1.Pod); ok && found.Spec.NodeName != "" {
				bound = time.Since(begin)
			}
		case <-timeout:
			t.Fatalf("pod %s has no node\n%s", name, endOf("scheduler"))
		}
	}
	await(t, name, "runs", isRunning)
	remove(t, name)
	return bound
}

// startSlack starts the controller with the rights of the chart, and a policy with placeholder pods.
func startSlack(t *testing.T) {
	t.Helper()
	_, kubeconfig, err := cluster.ChartConfig(t.Context(), "controller")
	must.Succeed(t, err)
	controller, err := cluster.StartServer(
		"controller",
		cluster.Program("plimsoll-controller"),
		"--kubeconfig="+kubeconfig,
		"--controllers=slack",
		"--leader-elect=false",
		"--placeholder-namespace="+placeholders,
		"--metrics-bind-address=0",
		"--health-probe-bind-address=0",
	)
	must.Succeed(t, err)
	t.Cleanup(controller.Stop)
	policy, err := program.ObjectsOf(slackPolicy)
	must.Succeed(t, err)
	must.Succeed(t, cluster.Apply(t.Context(), policy))
}

// awaitPlaceholders waits until all placeholders run.
func awaitPlaceholders(t *testing.T) {
	t.Helper()
	retry(t, eventually.Limit, "waiting for placeholders", func(ctx context.Context) error {
		list, err := cluster.Client.CoreV1().Pods(placeholders).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		running := int64(0)
		for i := range list.Items {
			if pod := &list.Items[i]; isRunning(pod) && pod.DeletionTimestamp == nil {
				running += pod.Spec.Containers[0].Resources.Requests.Cpu().MilliValue()
			}
		}
		if running < heldCPU {
			return fmt.Errorf("%d millicores run\n%s", running, endOf("controller"))
		}
		return nil
	})
}
