package whatif

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/plimsoll-k8s/plimsoll/test/support/eventually"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
	"github.com/plimsoll-k8s/plimsoll/test/support/testcluster"
)

// TestSweep creates the Job of examples/sweep in a namespace with the restricted security standard, runs the commands of its pods, and
// merges their output: the result equals the result of one command on this machine.
func TestSweep(t *testing.T) {
	_, _, client := testcluster.StartControlPlane(t)
	for _, object := range []*v1.Namespace{{ObjectMeta: metav1.ObjectMeta{
		Name: "sweeps", Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	}}} {
		testcluster.Create(t, client.CoreV1().Namespaces(), object)
	}
	raw, err := os.ReadFile("../../../examples/sweep/job.yaml")
	must.Succeed(t, err)
	var job batchv1.Job
	must.Succeed(t, yaml.UnmarshalStrict(raw, &job))
	job.Spec.Template.Spec.NodeName = "node" // in place of a scheduler
	testcluster.Create(t, client.BatchV1().Jobs("sweeps"), &job)
	indexes := map[string]bool{}
	eventually.True(t, "the Job is not complete", nil, func(ctx context.Context) (bool, error) {
		pods, err := client.CoreV1().Pods("sweeps").List(ctx, metav1.ListOptions{LabelSelector: "app=sweep"})
		if err != nil {
			return false, err
		}
		for i := range pods.Items {
			indexes[pods.Items[i].Labels[batchv1.JobCompletionIndexAnnotation]] = true
		}
		found, err := client.BatchV1().Jobs("sweeps").Get(ctx, job.Name, metav1.GetOptions{})
		return err == nil && found.Status.Succeeded == *job.Spec.Completions, err
	})
	input, err := filepath.Abs("../../../examples/snapshot/low-risk.ndjson.gz")
	must.Succeed(t, err)
	run := func(args []string, more ...string) string {
		var replaced []string
		for _, argument := range args {
			if argument == "--recording=/input/s.ndjson.gz" {
				argument = "--recording=" + input
			}
			if argument == "--shard=4" {
				argument = "--tail=10m" // less than the default, to be fast
			}
			replaced = append(replaced, argument)
		}
		stdout, _ := testcluster.MustPlimsoll(t, append(replaced, more...)...)
		return stdout
	}
	args := job.Spec.Template.Spec.Containers[0].Args
	merge := []string{"merge", "-o", "json"}
	for index := range int(*job.Spec.Completions) {
		if !indexes[fmt.Sprint(index)] {
			t.Errorf("no pod has the index %d", index)
		}
		file := filepath.Join(t.TempDir(), "log")
		log := "plimsoll: warning: in the log before the result\n" + run(args, fmt.Sprintf("--shard=%d/%d", index, *job.Spec.Completions))
		must.Succeed(t, os.WriteFile(file, []byte(log), 0o600))
		merge = append(merge, file)
	}
	if merged, _ := testcluster.MustPlimsoll(t, merge...); merged != run(args) {
		t.Errorf("the merged result differs from that of one command: %d bytes, %d bytes", len(merged), len(run(args)))
	}
}
