package whatif

import (
	"path/filepath"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/plimsoll-k8s/plimsoll/test/support/must"
	"github.com/plimsoll-k8s/plimsoll/test/support/testcluster"
)

// schedulerConfigMap is the configuration of a scheduler as the chart stores it.
func schedulerConfigMap() *v1.ConfigMap {
	return &v1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "plimsoll-scheduler", Labels: map[string]string{
			"app.kubernetes.io/part-of": "plimsoll", "app.kubernetes.io/component": "scheduler",
		}},
		Data: map[string]string{"scheduler.yaml": `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: custom
  plugins: {score: {disabled: [{name: "*"}], enabled: [{name: NodeResourcesLimits, weight: 1}]}}
`},
	}
}

// TestExplainLive expects that explain uses the profile of the pod's scheduler from the cluster, warns if it is
// unknown or may not be read, and finds pods by the forms of kubectl and the namespace of the context.
func TestExplainLive(t *testing.T) {
	cp, _, client := testcluster.StartControlPlane(t)
	testcluster.CreateNode(t, client, "node-a")
	testcluster.CreatePod(t, client, "web", "", "custom", "1", "2")
	admin, restricted := cp.Kubeconfig, allowSnapshots(t, cp, client)

	const unknown = `the profile of scheduler "custom" is unknown: evaluated with profile default-scheduler of built-in profile default`
	if _, stderr := testcluster.MustPlimsoll(t, "explain", "pod", "web", "--kubeconfig", admin); !strings.Contains(stderr, unknown) {
		t.Errorf("standard error lacks %q:\n%s", unknown, stderr)
	}
	for want, args := range map[string][]string{
		`No scheduler serves custom here: the pod stays pending. With the profile default-scheduler: The scheduler would select node-a`: {
			"explain", "pod", "web",
		},
		"default/web -> node-a":          {"score"},
		"1 of 1 node can go now":         {"explain", "node"},
		"rate 10%, the default: --rate ": {"slack", "plan"},
	} {
		if stdout, _ := testcluster.MustPlimsoll(t, append(args, "--kubeconfig", admin)...); !strings.Contains(stdout, want) {
			t.Errorf("%v: no %q in\n%s", args, want, stdout)
		}
	}
	if stdout, _ := testcluster.MustPlimsoll(t, "__complete", "explain", "pod", "--kubeconfig", admin, "w"); !strings.HasPrefix(stdout,
		"web\n") {
		t.Errorf("the completion of the name of a pod is %q", stdout)
	}
	testcluster.Create(t, client.CoreV1().ConfigMaps("default"), schedulerConfigMap())
	stdout, stderr := testcluster.MustPlimsoll(t, "explain", "pod", "web", "--kubeconfig", admin)
	if !strings.Contains(stdout, "profile custom of ConfigMap default/plimsoll-scheduler\n") || strings.Contains(stderr, "is unknown") {
		t.Errorf("not explained with the stored profile:\n%s%s", stdout, stderr)
	}
	if _, stderr := testcluster.MustPlimsoll(t, "explain", "pod", "web", "--kubeconfig", restricted); !strings.Contains(stderr, unknown) {
		t.Errorf("without the right to list ConfigMaps, standard error lacks %q:\n%s", unknown, stderr)
	}

	// A context with a namespace in which there is no such pod.
	loaded, err := clientcmd.LoadFromFile(admin)
	must.Succeed(t, err)
	other := loaded.Contexts[loaded.CurrentContext].DeepCopy()
	other.Namespace = "kube-system"
	loaded.Contexts["other"] = other
	file := filepath.Join(t.TempDir(), "config")
	must.Succeed(t, clientcmd.WriteToFile(*loaded, file))
	_, stderr, exitCode := testcluster.RunPlimsoll(t, "explain", "pod", "web", "--kubeconfig", file, "--context", "other")
	if exitCode != 1 ||
		!strings.Contains(stderr, `pods "web" not found in namespace "kube-system", or finished; did you mean default/web?`) {
		t.Errorf("exit code %d, %s, want no pod in the namespace of the context", exitCode, stderr)
	}
	testcluster.MustPlimsoll(t, "explain", "po/web", "-n", "default", "--kubeconfig", file, "--context", "other")
	_, stderr, exitCode = testcluster.RunPlimsoll(t, "explain", "pods", "web", "--kubeconfig", file, "--context", "third")
	if exitCode != 2 || !strings.Contains(stderr, `--context: invalid configuration: [context was not found for specified context: third`) {
		t.Errorf("exit code %d, %s, want an error that lists the contexts", exitCode, stderr)
	}
}
