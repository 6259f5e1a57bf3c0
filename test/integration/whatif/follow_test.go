package whatif

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/plimsoll-k8s/plimsoll/internal/cli/record"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
	"github.com/plimsoll-k8s/plimsoll/test/support/apiproxy"
	"github.com/plimsoll-k8s/plimsoll/test/support/eventually"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
	"github.com/plimsoll-k8s/plimsoll/test/support/plane"
	"github.com/plimsoll-k8s/plimsoll/test/support/program"
	"github.com/plimsoll-k8s/plimsoll/test/support/testcluster"
)

// allow creates the documented RBAC rules, waits until they apply, and returns a kubeconfig of their ServiceAccount that
// uses a proxy.
func (c *cluster) allow(t *testing.T) (*apiproxy.TCPProxy, string) {
	t.Helper()
	const user = "system:serviceaccount:default:plimsoll-record"
	groups := []string{"system:serviceaccounts", "system:authenticated"}
	for _, rule := range plane.ApplyRights(t, c.client, "../../../examples/recording/rbac.yaml", user, groups) {
		verbs := strings.Join(rule.Verbs, " ")
		if verbs != "list" && verbs != "list watch" || strings.Contains(fmt.Sprint(rule), "secrets") {
			t.Errorf("rule %v: want only the verbs list and watch, and no secrets", rule)
		}
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	must.Succeed(t, c.WriteKubeconfig(path, user, groups...))
	proxy := apiproxy.StartTCP(t, strings.TrimPrefix(c.Address(), "https://"))
	config, err := clientcmd.LoadFromFile(path)
	must.Succeed(t, err)
	for _, cluster := range config.Clusters {
		cluster.Server = "https://" + proxy.Address()
	}
	must.Succeed(t, clientcmd.WriteToFile(*config, path))
	return proxy, path
}

// single returns the pod of this name.
func single(r *recording.Recording) *recording.Pod {
	i := slices.IndexFunc(r.Pods, func(p recording.Pod) bool { return p.Object.Name == "single" })
	return &r.Pods[i]
}

// TestFollow follows a cluster with the documented permissions, over an outage of the API server, and compares the recording with
// the histories of the pods.
func TestFollow(t *testing.T) {
	c := startCluster(t)
	proxy, kubeconfig := c.allow(t)
	testcluster.Create(t, c.client.CoreV1().Nodes(), newNode("node-a", "4", "zone-a"))
	deploy(t, c, "node-a")
	folder := t.TempDir()
	out := &program.Output{}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		cmd := record.NewCommand()
		cmd.SetOut(out)
		cmd.SetErr(out)
		cmd.SetArgs([]string{"--follow", "-o", folder, "--step", "1s", "--kubeconfig", kubeconfig})
		ended <- cmd.ExecuteContext(ctx)
	}()
	await := func(what string, condition func(r *recording.Recording) bool) {
		t.Helper()
		eventually.True(t, what, out, func(context.Context) (bool, error) {
			files, err := filepath.Glob(filepath.Join(folder, "*.ndjson.gz"))
			if err != nil || len(files) == 0 {
				return false, err
			}
			r, err := recording.Open(files[0])
			return err == nil && condition(r), nil
		})
	}
	await("the pods are not recorded", func(r *recording.Recording) bool { return len(r.Pods) == 3 && len(r.Nodes) == 1 })
	c.run(t, newPod("single"), "node-a")
	await("the new pod is not recorded as running", func(r *recording.Recording) bool {
		return len(r.Pods) == 4 && single(r).Started != recording.Never
	})
	proxy.Disconnect()
	c.remove(t, "single")
	fixed := newPod("meanwhile")
	fixed.Spec.NodeName = "node-a"
	c.run(t, fixed, "")
	eventually.True(t, "the outage is not noticed", out, func(context.Context) (bool, error) {
		return strings.Contains(out.String(), "the API server does not respond"), nil
	})
	proxy.Reconnect(t)
	await("the changes during the outage are not recorded", func(r *recording.Recording) bool {
		return len(r.Pods) == 5 && single(r).Ended != recording.Never
	})
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	for _, want := range []string{"s, 1 node, 5 pods, ", "; continue with the same command"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no summary with %q:\n%s", want, out)
		}
	}
	files, err := filepath.Glob(filepath.Join(folder, "*.ndjson.gz"))
	if err != nil || len(files) != 1 {
		t.Fatalf("files %v, error %v", files, err)
	}
	r, err := recording.Open(files[0])
	must.Succeed(t, err)
	for _, p := range r.Pods {
		h := c.histories()[p.Object.UID]
		if h.pod == nil || p.Created != h.pod.CreationTimestamp.Unix()-r.About.From.Unix() || p.Node != h.pod.Spec.NodeName ||
			(p.Ended != recording.Never) != !h.deleted.IsZero() || len(p.Object.Spec.Containers) != 2 ||
			resources.HasFixedNode(p.Object) != (p.Object.Name == fixed.Name) { // the node of the others was bound
			t.Errorf("pod %s: %+v", p.Object.Name, p)
		}
	}
	missing, objects := fmt.Sprint(r.About.Missing), fmt.Sprintf("%s", r.Objects)
	if !strings.Contains(missing, "usage of pods") || !strings.Contains(missing, "the API server was not reachable for a time") {
		t.Errorf("missing: %s", missing)
	}
	if !strings.Contains(objects, "replicasets") || r.About.Kubernetes == "" {
		t.Errorf("objects of %s: %s", r.About.Kubernetes, objects)
	}
}
