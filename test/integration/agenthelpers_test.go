package integration

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-k8s/plimsoll/internal/embedded/controlplane"
	"github.com/plimsoll-k8s/plimsoll/test/support/eventually"
	"github.com/plimsoll-k8s/plimsoll/test/support/helm"
	"github.com/plimsoll-k8s/plimsoll/test/support/tcpproxy"
)

const (
	agentHubRBAC    = "../../examples/placement/agent-hub-rbac.yaml"
	agentMemberRBAC = "../../examples/placement/agent-member-rbac.yaml"
)

// fleetHub is a hub that agents reach through a proxy.
type fleetHub struct {
	config *rest.Config
	client client.Client
	kube   *kubernetes.Clientset
	proxy  *tcpproxy.Proxy
}

// startFleetHub starts a hub.
func startFleetHub(t *testing.T) *fleetHub {
	t.Helper()
	_, config, kube := startControlPlane(t, controlplane.Options{})
	installCRDs(t, config, append(projectCRDs(t), ocmCRDs(t)...)...)
	return &fleetHub{config, placementClient(t, config), kube, tcpproxy.Start(t, strings.TrimPrefix(config.Host, "https://"))}
}

// accept creates a cluster on the hub, with the RBAC rules of the example for its agent.
func (h *fleetHub) accept(t *testing.T, cluster string) {
	t.Helper()
	for _, object := range []client.Object{
		&v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: cluster}},
		&clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: cluster}, Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: true}},
	} {
		if err := h.client.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	createAll(t, h.client, agentHubRBAC, "cluster1", cluster)
}

// createAll creates the objects of a file, with words replaced by the words after them.
func createAll(t *testing.T, c client.Client, file string, replaced ...string) {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	objects, err := helm.Objects(strings.NewReplacer(replaced...).Replace(string(raw)))
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		if err := c.Create(t.Context(), object); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
	}
}

// credentials writes the kubeconfig of the agent of a cluster with a new token, and returns a
// configuration with the same token.
func (h *fleetHub) credentials(t *testing.T, cluster, path string) *rest.Config {
	t.Helper()
	request, err := h.kube.CoreV1().ServiceAccounts(cluster).CreateToken(t.Context(), "plimsoll-agent", &authenticationv1.TokenRequest{},
		metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	config := &rest.Config{
		Host: h.config.Host, TLSClientConfig: rest.TLSClientConfig{CAData: h.config.CAData},
		BearerToken: request.Status.Token,
		QPS:         -1,
	}
	proxied := rest.CopyConfig(config)
	proxied.Host = "https://" + h.proxy.Address()
	// Rename the complete file: the agent must not read a partial file.
	err = controlplane.WriteKubeconfig(path+".new", proxied)
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// scores returns the scores of a cluster and the time until which they are valid.
func (h *fleetHub) scores(ctx context.Context, cluster string) (map[string]int32, time.Time, error) {
	var score clusterv1alpha1.AddOnPlacementScore
	if err := h.client.Get(ctx, client.ObjectKey{Namespace: cluster, Name: "plimsoll"}, &score); err != nil {
		return nil, time.Time{}, client.IgnoreNotFound(err)
	}
	out := map[string]int32{}
	for _, item := range score.Status.Scores {
		out[item.Name] = item.Value
	}
	if score.Status.ValidUntil == nil {
		return out, time.Time{}, nil
	}
	return out, score.Status.ValidUntil.Time, nil
}

// awaitScores waits until a cluster has exactly the wanted scores, and returns the time that it took.
func (h *fleetHub) awaitScores(t *testing.T, log fmt.Stringer, cluster string, want map[string]int32) time.Duration {
	t.Helper()
	var got map[string]int32
	defer func() {
		if t.Failed() {
			t.Log(cmp.Diff(want, got))
		}
	}()
	start := time.Now()
	eventually.True(t, "the scores of "+cluster+" differ", log, func(ctx context.Context) (bool, error) {
		var until time.Time
		var err error
		got, until, err = h.scores(ctx, cluster)
		return cmp.Equal(got, want) && until.After(time.Now()), err
	})
	return time.Since(start)
}

// awaitResources waits for the resources of a ManagedCluster in the form resource=allocatable/capacity.
func (h *fleetHub) awaitResources(t *testing.T, log fmt.Stringer, cluster, want string) {
	t.Helper()
	var got string
	defer func() {
		if t.Failed() {
			t.Logf("resources of %s: %s, want %s", cluster, got, want)
		}
	}()
	eventually.True(t, "the resources of "+cluster+" differ", log, func(ctx context.Context) (bool, error) {
		var err error
		got, err = h.resources(ctx, cluster)
		return got == want, err
	})
}

// resources returns the resources of a ManagedCluster in the form resource=allocatable/capacity.
func (h *fleetHub) resources(ctx context.Context, cluster string) (string, error) {
	var managed clusterv1.ManagedCluster
	if err := h.client.Get(ctx, client.ObjectKey{Name: cluster}, &managed); err != nil {
		return "", err
	}
	var out []string
	for _, name := range []clusterv1.ResourceName{"cpu", "memory", "pods"} {
		allocatable, capacity := managed.Status.Allocatable[name], managed.Status.Capacity[name]
		out = append(out, fmt.Sprintf("%s=%s/%s", name, allocatable.String(), capacity.String()))
	}
	return strings.Join(out, " "), nil
}

// startMember starts a cluster and returns it with the flags of an agent that has the RBAC rules of the
// example.
func startMember(t *testing.T) (*testCluster, []string) {
	t.Helper()
	member := startCluster(t)
	createAll(t, member.client, agentMemberRBAC)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := member.WriteKubeconfig(kubeconfig, "system:serviceaccount:"+systemNamespace+":plimsoll-agent"); err != nil {
		t.Fatal(err)
	}
	return member, []string{"--agent", "--interval=1s", "--kubeconfig=" + kubeconfig}
}
