//go:build nodes

// Package tests has the tests of this project on real nodes. They share a cluster of four nodes and run side by side: each has nodes of its
// own, by the label pool.
package tests

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/plimsoll-k8s/plimsoll/internal/embedded/controlplane"
	"github.com/plimsoll-k8s/plimsoll/lab/nodes/realnodes"
	"github.com/plimsoll-k8s/plimsoll/test/support/program"
)

// Nodes have 200 millicores and 512 MiB. The capacity is 100 millicores and 256 MiB more, see realnodes.
const (
	nodeCPU        = 200
	nodeMemory     = 512
	capacityCPU    = nodeCPU + 100
	capacityMemory = (nodeMemory + 256) << 20
)

// The pools, values of the label pool.
const (
	loadPool  = "load"  // node-1 and node-2
	slackPool = "slack" // node-3
	kindsPool = "kinds" // node-4
)

var pools = []string{loadPool, loadPool, slackPool, kindsPool}

// Namespaces of pods.
const (
	namespace    = "default"
	placeholders = "plimsoll-placeholders"
)

// project is the folder of the project.
const project = "../../.."

// chartValues are the Helm values of the release whose rights the components have.
const chartValues = `
crds: {fleet: true}
scheduler:
  profiles: [{schedulerName: plimsoll-predicted, use: predicted}, {schedulerName: plimsoll-low-risk, use: low-risk}]
  metricProvider: {type: KubernetesMetricsServer}
controller: {placeholderNamespace: ` + placeholders + `}
loadWatcher: {enabled: true}
agent: {enabled: true, clusterName: cluster1, hub: {secretName: hub}, load: {provider: KubernetesMetricsServer}}
shadow: {enabled: true}
`

var (
	cluster   *realnodes.Cluster
	scheduler *realnodes.Scheduler
	// token has the rights of an administrator.
	token string
)

func TestMain(m *testing.M) {
	log.SetLogger(klog.Background())
	controlplane.RunIfChild()
	realnodes.RunIfChild()
	bin, err := filepath.Abs(filepath.Join(project, "bin", "nodes"))
	options := realnodes.Options{Nodes: len(pools), CPU: nodeCPU, Memory: nodeMemory, Bin: bin}
	if err == nil {
		err = options.Check()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(2)
	}
	realnodes.Enter()
	os.Exit(run(m, options))
}

// run runs the tests on a cluster.
func run(m *testing.M, options realnodes.Options) int {
	ctx := context.Background()
	start := time.Now()
	err := startCluster(ctx, options)
	if cluster != nil {
		defer cluster.Stop()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		return 1
	}
	fmt.Printf("cluster and scheduler started in %.1f s\n", time.Since(start).Seconds())
	return m.Run()
}

// startCluster starts the cluster, installs the chart and starts the scheduler.
func startCluster(ctx context.Context, options realnodes.Options) (err error) {
	if cluster, err = realnodes.Start(ctx, options); err != nil {
		return err
	}
	client := cluster.Client
	for i := range pools {
		if err := setPool(ctx, i); err != nil {
			return err
		}
	}
	for _, name := range []string{placeholders, "cluster1"} {
		created := &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if _, err := client.CoreV1().Namespaces().Create(ctx, created, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	crd, err := os.ReadFile(filepath.Join(project, "config/crd/plimsoll.dev_clustercapacities.yaml"))
	if err != nil {
		return err
	}
	objects, err := program.ObjectsOf(string(crd))
	if err != nil {
		return err
	}
	if err := cluster.Apply(ctx, objects); err != nil {
		return err
	}
	if err := cluster.ApplyChart(ctx, project, chartValues); err != nil {
		return err
	}
	if err := addToken(ctx); err != nil {
		return err
	}
	configuration, err := schedulerConfiguration()
	if err != nil {
		return err
	}
	scheduler, err = cluster.StartScheduler(ctx, "scheduler", cluster.Program("plimsoll-scheduler"), configuration)
	return err
}

// setPool labels a node with its pool.
func setPool(ctx context.Context, number int) error {
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{"pool":%q}}}`, pools[number])
	_, err := cluster.Client.CoreV1().Nodes().Patch(ctx, cluster.Nodes[number].Name, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

// addToken creates a token with the rights of an administrator, for the metrics of the scheduler.
func addToken(ctx context.Context) error {
	const name = "reader"
	account := &v1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}
	_, err := cluster.Client.CoreV1().ServiceAccounts(namespace).Create(ctx, account, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	_, err = cluster.Client.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	token, err = cluster.Token(ctx, namespace, name)
	return err
}
