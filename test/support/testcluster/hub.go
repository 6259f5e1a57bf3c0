package testcluster

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
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	capacityv1alpha1 "github.com/plimsoll-k8s/plimsoll/api/capacity/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/embedded/controlplane"
	"github.com/plimsoll-k8s/plimsoll/internal/fleet/fit"
	"github.com/plimsoll-k8s/plimsoll/test/support/apiproxy"
	"github.com/plimsoll-k8s/plimsoll/test/support/eventually"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
	"github.com/plimsoll-k8s/plimsoll/test/support/program"
)

// TemplateOf returns a pod template with requests.
func TemplateOf(cpu, memory string) *v1.PodTemplateSpec {
	return &v1.PodTemplateSpec{Spec: v1.PodSpec{Containers: []v1.Container{{Name: "c", Image: "c", Resources: v1.ResourceRequirements{
		Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse(cpu), v1.ResourceMemory: resource.MustParse(memory)},
	}}}}}
}

// AwaitFit waits until a number of pods fits a cluster according to its ClusterCapacity on the hub.
func (h *Hub) AwaitFit(t *testing.T, agent fmt.Stringer, cluster string, pod *v1.PodTemplateSpec, want int64) {
	t.Helper()
	template, err := fit.NewTemplate(types.NamespacedName{Namespace: "shop", Name: "web"}, pod)
	must.Succeed(t, err)
	eventually.True(t, fmt.Sprintf("%d pods do not fit %s", want, cluster), agent, func(ctx context.Context) (bool, error) {
		var object capacityv1alpha1.ClusterCapacity
		err := h.Client.Get(ctx, client.ObjectKey{Namespace: cluster, Name: capacityv1alpha1.Name}, &object)
		if client.IgnoreNotFound(err) != nil || err != nil {
			return false, client.IgnoreNotFound(err)
		}
		summary, err := fit.NewSummary(&object.Status)
		if err != nil {
			return false, err
		}
		w := fit.Workload{Parts: []fit.Part{{Template: template, Pods: 1}}, Replicas: 1}
		return w.CountFit(summary, 1, nil, 0).Now == want, nil
	})
}

// AgentHubRBAC and agentMemberRBAC are the files with the rights of agents.
const (
	AgentHubRBAC    = "examples/placement/agent-hub-rbac.yaml"
	agentMemberRBAC = "examples/placement/agent-member-rbac.yaml"
)

// Hub is a hub that agents reach through a proxy.
type Hub struct {
	*Cluster
	Access *rest.Config
	// Strict is a client that refuses unknown fields.
	Strict client.Client
	Kube   *kubernetes.Clientset
	Proxy  *apiproxy.TCPProxy
}

// StartFleetHub starts a hub.
func StartFleetHub(t *testing.T) *Hub {
	t.Helper()
	return StartPlacementHub(t).Hub(t)
}

// Hub returns the cluster as a hub of agents.
func (c *Cluster) Hub(t *testing.T) *Hub {
	t.Helper()
	config, err := c.Config("test", "system:masters")
	must.Succeed(t, err)
	kube, err := kubernetes.NewForConfig(config)
	must.Succeed(t, err)
	return &Hub{c, config, PlacementClient(t, config), kube, apiproxy.StartTCP(t, strings.TrimPrefix(config.Host, "https://"))}
}

// Accept creates a cluster on the hub, with the RBAC rules of the example for its agent.
func (h *Hub) Accept(t *testing.T, cluster string) {
	t.Helper()
	for _, object := range []client.Object{
		&v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: cluster}},
		&clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: cluster}, Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: true}},
	} {
		must.Succeed(t, h.Strict.Create(t.Context(), object))
	}
	CreateAll(t, h.Strict, AgentHubRBAC, "cluster1", cluster)
}

// CreateAll creates the objects of a file of the project, with words replaced by the words after them.
func CreateAll(t *testing.T, c client.Client, file string, replaced ...string) {
	t.Helper()
	raw, err := os.ReadFile(program.File(t, file))
	must.Succeed(t, err)
	objects, err := program.ObjectsOf(strings.NewReplacer(replaced...).Replace(string(raw)))
	must.Succeed(t, err)
	for _, object := range objects {
		if err := c.Create(t.Context(), object); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
	}
}

// Credentials writes the kubeconfig of the agent of a cluster with a new token, and returns a
// configuration with the same token.
func (h *Hub) Credentials(t *testing.T, cluster, path string) *rest.Config {
	t.Helper()
	request, err := h.Kube.CoreV1().ServiceAccounts(cluster).CreateToken(t.Context(), "plimsoll-agent", &authenticationv1.TokenRequest{},
		metav1.CreateOptions{})
	must.Succeed(t, err)
	config := &rest.Config{
		Host: h.Access.Host, TLSClientConfig: rest.TLSClientConfig{CAData: h.Access.CAData},
		BearerToken: request.Status.Token,
		QPS:         -1,
	}
	proxied := rest.CopyConfig(config)
	proxied.Host = "https://" + h.Proxy.Address()
	// Rename the complete file: the agent must not read a partial file.
	err = controlplane.WriteKubeconfig(path+".new", proxied)
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	must.Succeed(t, err)
	return config
}

// Scores returns the scores of a cluster and the time until which they are valid.
func (h *Hub) Scores(ctx context.Context, cluster string) (map[string]int32, time.Time, error) {
	var score clusterv1alpha1.AddOnPlacementScore
	if err := h.Strict.Get(ctx, client.ObjectKey{Namespace: cluster, Name: "plimsoll"}, &score); err != nil {
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

// AwaitScores waits until a cluster has exactly the wanted scores, and returns the time that it took.
func (h *Hub) AwaitScores(t *testing.T, log fmt.Stringer, cluster string, want map[string]int32) time.Duration {
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
		got, until, err = h.Scores(ctx, cluster)
		return cmp.Equal(got, want) && until.After(time.Now()), err
	})
	return time.Since(start)
}

// AwaitResources waits for the resources of a ManagedCluster in the form resource=allocatable/capacity.
func (h *Hub) AwaitResources(t *testing.T, log fmt.Stringer, cluster, want string) {
	t.Helper()
	var got string
	defer func() {
		if t.Failed() {
			t.Logf("resources of %s: %s, want %s", cluster, got, want)
		}
	}()
	eventually.True(t, "the resources of "+cluster+" differ", log, func(ctx context.Context) (bool, error) {
		var err error
		got, err = h.Resources(ctx, cluster)
		return got == want, err
	})
}

// Resources returns the resources of a ManagedCluster in the form resource=allocatable/capacity.
func (h *Hub) Resources(ctx context.Context, cluster string) (string, error) {
	var managed clusterv1.ManagedCluster
	if err := h.Strict.Get(ctx, client.ObjectKey{Name: cluster}, &managed); err != nil {
		return "", err
	}
	var out []string
	for _, name := range []clusterv1.ResourceName{"cpu", "memory", "pods"} {
		allocatable, capacity := managed.Status.Allocatable[name], managed.Status.Capacity[name]
		out = append(out, fmt.Sprintf("%s=%s/%s", name, allocatable.String(), capacity.String()))
	}
	return strings.Join(out, " "), nil
}

// AgentFlags creates the RBAC rules of the example for an agent in a member cluster, and returns the flags of an agent with these rights.
func (c *Cluster) AgentFlags(t *testing.T) []string {
	t.Helper()
	CreateAll(t, c.Client, agentMemberRBAC)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	must.Succeed(t, c.WriteKubeconfig(kubeconfig, "system:serviceaccount:"+SystemNamespace+":plimsoll-agent"))
	return []string{"--agent", "--interval=1s", "--kubeconfig=" + kubeconfig}
}
