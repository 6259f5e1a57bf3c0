package scheduler

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-k8s/plimsoll/test/support/eventually"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
	"github.com/plimsoll-k8s/plimsoll/test/support/program"
	"github.com/plimsoll-k8s/plimsoll/test/support/testcluster"
)

// Twenty nodes of 16 CPUs. In each round, batchPods random pods are deleted, and as many of the same sizes created.
const (
	togetherNodes, nodeMillicores = 20, 16_000
	togetherRounds, batchPods     = 6, 16
)

// TestSchedulersTogether measures how many pods a kubelet refuses because two schedulers have filled the same free capacity, at a fraction
// of requested CPU. One scheduler alone never causes a refusal. docs/rollout.md has the rates.
func TestSchedulersTogether(t *testing.T) {
	for _, row := range []struct {
		name       string
		fill, most float64
		schedulers []string
	}{
		{"one at 95 %", 0.95, 0, []string{"first"}},
		{"two at 70 %", 0.7, 0.05, []string{"first", "second"}},
		{"two at 95 %", 0.95, 0.5, []string{"first", "second"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			k := newKubelets(t)
			k.fill(t, row.fill)
			for _, name := range row.schedulers {
				startScheduler(t, k.Cluster, name)
			}
			for range togetherRounds {
				k.replacePods(t, row.schedulers)
			}
			rate := float64(k.refused) / float64(k.created)
			t.Logf("%s: kubelets refuse %d of %d pods (%.1f %%)", row.name, k.refused, k.created, 100*rate)
			if rate > row.most {
				t.Errorf("kubelets refuse %.3f of the pods, want at most %.3f", rate, row.most)
			}
		})
	}
}

func startScheduler(t *testing.T, c *testcluster.Cluster, name string) {
	t.Helper()
	config := fmt.Sprintf("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles: [{schedulerName: %s}]\n"+
		"leaderElection: {leaderElect: false}\nclientConnection: {kubeconfig: %q, qps: 1000, burst: 1000}\n", name, c.Kubeconfig)
	program.Start(t, program.Path(t, "plimsoll-scheduler"), "--config="+testcluster.WriteFile(t, config), "--secure-port=0")
}

// kubelets admits pods as kubelets do: in the order of their bindings, as long as their requests fit the node.
type kubelets struct {
	*testcluster.Cluster
	random   *rand.Rand
	changes  *testcluster.ChangeRecorder
	seen     int
	admitted []*v1.Pod
	// owed are the requests of pods that were refused or did not fit, which their controllers create again.
	owed             []int64
	names            int
	created, refused int
}

func newKubelets(t *testing.T) *kubelets {
	t.Helper()
	k := &kubelets{Cluster: testcluster.StartWithCRDs(t), random: rand.New(rand.NewPCG(1, 1))}
	for i := range togetherNodes {
		k.Create(t, testcluster.ReadyNode(fmt.Sprintf("node-%02d", i), fmt.Sprintf("%dm", nodeMillicores), "64Gi", nil))
	}
	return k
}

// used returns the millicores that the admitted pods of each node request.
func (k *kubelets) used() map[string]int64 {
	used := map[string]int64{}
	for _, pod := range k.admitted {
		used[pod.Spec.NodeName] += millicores(pod)
	}
	return used
}

func millicores(pod *v1.Pod) int64 {
	return pod.Spec.Containers[0].Resources.Requests.Cpu().MilliValue()
}

// pod returns a pod that is not created yet.
func (k *kubelets) pod(request int64, node, scheduler string) *v1.Pod {
	k.names++
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("pod-%04d", k.names), Namespace: "default"},
		Spec: v1.PodSpec{NodeName: node, SchedulerName: scheduler, Containers: []v1.Container{
			{
				Name:  "c",
				Image: "i",
				Resources: v1.ResourceRequirements{
					Requests: v1.ResourceList{v1.ResourceCPU: *resource.NewMilliQuantity(request, resource.DecimalSI)},
				},
			},
		}},
	}
}

// fill creates pods on random nodes until they request a fraction of the CPUs.
func (k *kubelets) fill(t *testing.T, fraction float64) {
	t.Helper()
	used, total := map[string]int64{}, int64(0)
	for total < int64(fraction*togetherNodes*nodeMillicores) {
		request := []int64{250, 500, 1000, 2000}[k.random.IntN(4)]
		node := fmt.Sprintf("node-%02d", k.random.IntN(togetherNodes))
		if used[node]+request > nodeMillicores {
			continue
		}
		used[node], total = used[node]+request, total+request
		pod := k.pod(request, node, "")
		k.Create(t, pod)
		k.admitted = append(k.admitted, pod)
	}
	k.changes = k.RecordChanges(t, v1.SchemeGroupVersion.WithKind("Pod"))
}

// replacePods deletes random pods and creates as many of the same sizes, for the schedulers in turn, and admits those that get a node.
func (k *kubelets) replacePods(t *testing.T, schedulers []string) {
	t.Helper()
	requests := k.owed
	k.owed = nil
	for range batchPods {
		i := k.random.IntN(len(k.admitted))
		pod := k.admitted[i]
		k.delete(t, pod)
		k.admitted = slices.Delete(k.admitted, i, i+1)
		requests = append(requests, millicores(pod))
	}
	waiting := map[string]*v1.Pod{}
	for i, request := range requests {
		pod := k.pod(request, "", schedulers[i%len(schedulers)])
		k.Create(t, pod)
		waiting[pod.Name] = pod
	}
	k.created += len(requests)
	eventually.True(t, "pods are neither placed nor unschedulable", nil, func(context.Context) (bool, error) {
		k.admitBound(t, waiting)
		return len(waiting) == 0, nil
	})
}

func (k *kubelets) delete(t *testing.T, pod *v1.Pod) {
	t.Helper()
	must.Succeed(t, k.Client.Delete(t.Context(), pod, client.GracePeriodSeconds(0)))
}

// admitBound admits or refuses the waiting pods that were bound since the last call. Refused pods are deleted, and so are pods that fit no
// node.
func (k *kubelets) admitBound(t *testing.T, waiting map[string]*v1.Pod) {
	t.Helper()
	k.changes.Mu.Lock()
	events := k.changes.Events[k.seen:]
	k.seen = len(k.changes.Events)
	k.changes.Mu.Unlock()
	used := k.used()
	for _, event := range events {
		object, ok := event.Object.(client.Object)
		if !ok || waiting[object.GetName()] == nil {
			continue
		}
		pod := &v1.Pod{}
		must.Succeed(t, k.Client.Get(t.Context(), client.ObjectKeyFromObject(object), pod))
		isUnschedulable := slices.ContainsFunc(pod.Status.Conditions,
			func(c v1.PodCondition) bool { return c.Reason == v1.PodReasonUnschedulable })
		fits := used[pod.Spec.NodeName]+millicores(pod) <= nodeMillicores
		switch {
		case pod.Spec.NodeName == "" && !isUnschedulable:
			continue
		case pod.Spec.NodeName != "" && fits:
			k.admitted = append(k.admitted, pod)
			used[pod.Spec.NodeName] += millicores(pod)
		default:
			if pod.Spec.NodeName != "" {
				k.refused++
			}
			k.delete(t, pod)
			k.owed = append(k.owed, millicores(pod))
		}
		delete(waiting, pod.Name)
	}
}
