package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/plimsoll-k8s/plimsoll/internal/embedded/controlplane"
	"github.com/plimsoll-k8s/plimsoll/internal/embedded/subprocess"
	"github.com/plimsoll-k8s/plimsoll/internal/kube"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/prediction"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/engine"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
	"github.com/plimsoll-k8s/plimsoll/test/support/karpenter"
)

// programs are the programs of the runs beside Karpenter.
type programs struct {
	folder, scheduler, karpenter string
	source                       *karpenter.Source
}

const (
	tick = time.Second
	// historyName is the ConfigMap of the history of the usage of workloads.
	historyName = "history"
)

// run runs a profile beside Karpenter, which consolidates underutilized nodes.
func (p *programs) run(ctx context.Context, k key) (_ figures, err error) {
	in, err := input(k.Arrivals, k.Seed)
	if err != nil {
		return figures{}, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	plane, err := controlplane.Start(ctx, controlplane.Options{})
	if err != nil {
		return figures{}, err
	}
	defer plane.Stop()
	c, err := newCluster(ctx, plane, &in)
	if err != nil {
		return figures{}, err
	}
	scheduler, autoscaler, err := p.start(ctx, c, k.Profile)
	for _, process := range []*subprocess.Process{scheduler, autoscaler} {
		if process != nil {
			defer process.Stop()
		}
	}
	if err != nil {
		return figures{}, err
	}
	f, err := c.drive(ctx)
	for name, process := range map[string]*subprocess.Process{"the scheduler": scheduler, "Karpenter": autoscaler} {
		select {
		case <-process.Exited():
			err = errors.Join(err, fmt.Errorf("%s has ended: %w", name, process.Err()))
		default:
		}
	}
	return f, err
}

// start starts the scheduler and Karpenter.
func (p *programs) start(ctx context.Context, c *cluster, profile string) (scheduler, autoscaler *subprocess.Process, err error) {
	if err := p.installCRDs(ctx, c); err != nil {
		return nil, nil, err
	}
	// Karpenter subtracts 100m and 10Mi.
	types := filepath.Join(c.plane.Dir, "types.json")
	cpu := fmt.Sprintf("%dm", nodeCores*1000+100)
	if err := os.WriteFile(types, karpenter.InstanceTypes(cpu, fmt.Sprintf("%dMi", nodeGiB*1024+10)), 0o600); err != nil {
		return nil, nil, err
	}
	pool, err := karpenter.Pool(cpu, bootSeconds*time.Second)
	if err != nil {
		return nil, nil, err
	}
	for _, object := range pool {
		if object.GetKind() == "NodePool" {
			disruption := map[string]any{
				"consolidationPolicy": "WhenEmptyOrUnderutilized",
				"consolidateAfter":    "15s",
				"budgets":             []any{map[string]any{"nodes": "100%"}},
			}
			if err := unstructured.SetNestedField(object.Object, disruption, "spec", "disruption"); err != nil {
				return nil, nil, err
			}
		}
		if err := c.client.Create(ctx, object); err != nil {
			return nil, nil, err
		}
	}
	file, err := p.configuration(c, profile)
	if err != nil {
		return nil, nil, err
	}
	command := exec.Command(p.scheduler, "--config="+file, "--secure-port=0")
	out, err := os.Create(filepath.Join(c.plane.Dir, "scheduler.log"))
	if err != nil {
		return nil, nil, err
	}
	command.Stdout, command.Stderr = out, out
	if scheduler, err = subprocess.Start(command); err != nil {
		return nil, nil, err
	}
	if out, err = os.Create(filepath.Join(c.plane.Dir, "karpenter.log")); err != nil {
		return scheduler, nil, err
	}
	autoscaler, err = karpenter.Start(karpenter.Options{
		Program: p.karpenter, Kubeconfig: c.plane.Kubeconfig, Namespace: metav1.NamespaceSystem, InstanceTypes: types, Log: out,
	})
	return scheduler, autoscaler, err
}

// installCRDs installs the CRDs of Karpenter.
func (p *programs) installCRDs(ctx context.Context, c *cluster) error {
	crds, err := p.source.CRDs()
	if err != nil {
		return err
	}
	var manifests [][]byte
	for _, file := range crds {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		manifests = append(manifests, text)
	}
	access, err := c.plane.Config("admin", "system:masters")
	if err != nil {
		return err
	}
	return controlplane.InstallCRDs(ctx, access, manifests...)
}

// configuration writes the configuration of the scheduler with a profile, which reads usage from the metrics API of the control plane and
// the history of workloads from a ConfigMap.
func (p *programs) configuration(c *cluster, profile string) (string, error) {
	config, err := engine.ReadConfig(profile)
	if err != nil {
		return "", err
	}
	const source = "podUsage: {type: KubernetesMetricsServer}\n"
	text := strings.Replace(string(config.Text), source,
		source+"      historyConfigMap: "+metav1.NamespaceDefault+"/"+historyName+"\n      pollInterval: 10s\n", 1)
	if strings.Contains(text, "PredictedUtilization") && !strings.Contains(text, "pollInterval") {
		return "", fmt.Errorf("profile %s: found no %s to add to", profile, source)
	}
	text += fmt.Sprintf(
		"\nleaderElection: {leaderElect: false}\nclientConnection: {kubeconfig: %q, qps: 1000, burst: 2000}\n",
		c.plane.Kubeconfig,
	)
	file := filepath.Join(c.plane.Dir, "scheduler.yaml")
	return file, os.WriteFile(file, []byte(text), 0o600)
}

// cluster is the cluster of a run.
type cluster struct {
	plane  *controlplane.ControlPlane
	core   kubernetes.Interface
	client client.Client
	in     *recording.Input
	begin  time.Time

	mu   sync.Mutex
	used []controlplane.Usage // of pods at the last tick
	load []controlplane.Usage // of nodes at the last tick
	pods map[string]*running  // by name
	figures
	waits result.Waits
	total int64 // seconds that pods waited
}

// running is a pod of a run.
type running struct {
	number  int // in the input
	created time.Time
	// end is when the pod is deleted, zero before it has a node.
	end time.Time
}

// newCluster creates what the pods of the input need, and serves their usage.
func newCluster(ctx context.Context, plane *controlplane.ControlPlane, in *recording.Input) (*cluster, error) {
	access, err := plane.Config("admin", "system:masters")
	if err != nil {
		return nil, err
	}
	access.QPS, access.Burst = 1000, 2000
	log.SetLogger(logr.Discard())
	c := &cluster{plane: plane, in: in, pods: map[string]*running{}, waits: result.Waits{}}
	if c.core, err = kubernetes.NewForConfig(access); err != nil {
		return nil, err
	}
	if c.client, err = client.New(access, client.Options{}); err != nil {
		return nil, err
	}
	locked := func(list *[]controlplane.Usage) func(context.Context) []controlplane.Usage {
		return func(context.Context) []controlplane.Usage {
			c.mu.Lock()
			defer c.mu.Unlock()
			return slices.Clone(*list)
		}
	}
	if err := controlplane.ServeMetrics(ctx, c.core, locked(&c.load), locked(&c.used)); err != nil {
		return nil, err
	}
	data, _, err := prediction.EncodeHistory(history(in), kube.MaxSaved)
	if err != nil {
		return nil, err
	}
	saved := &v1.ConfigMap{BinaryData: map[string][]byte{prediction.HistoryKey: data}}
	saved.Name, saved.Annotations = historyName, map[string]string{kube.SavedAnnotation: time.Now().UTC().Format(time.RFC3339)}
	if _, err := c.core.CoreV1().ConfigMaps(metav1.NamespaceDefault).Create(ctx, saved, metav1.CreateOptions{}); err != nil {
		return nil, err
	}
	return c, c.createServices(ctx)
}

// createServices creates a Service for each workload that is no job: kube-scheduler spreads the pods that it selects, as it does with those
// of a ReplicaSet.
func (c *cluster) createServices(ctx context.Context) error {
	created := map[string]bool{}
	for i := range c.in.Pods {
		w := resources.WorkloadOf(c.in.Pods[i].Object)
		if w.Kind == "Job" || created[w.Name] {
			continue
		}
		created[w.Name] = true
		service := &v1.Service{Spec: v1.ServiceSpec{
			ClusterIP: v1.ClusterIPNone, Selector: map[string]string{"app": c.in.Pods[i].Object.Labels["app"]},
		}}
		service.Name = w.Name
		if _, err := c.core.CoreV1().Services(metav1.NamespaceDefault).Create(ctx, service, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	return nil
}

// create creates a pod of the input, under a new name if it replaces one that was evicted.
func (c *cluster) create(ctx context.Context, number int, name string) error {
	pod := c.in.Pods[number].Object.DeepCopy()
	pod.Name, pod.UID, pod.CreationTimestamp = name, "", metav1.Time{}
	pod.Spec.TerminationGracePeriodSeconds = new(int64)
	for i := range pod.Spec.Containers {
		pod.Spec.Containers[i].Image = "example.com/none"
	}
	c.pods[name] = &running{number: number, created: time.Now()}
	_, err := c.core.CoreV1().Pods(metav1.NamespaceDefault).Create(ctx, pod, metav1.CreateOptions{})
	return err
}

// drive creates and deletes the pods of the input, and returns the figures of the run.
func (c *cluster) drive(ctx context.Context) (figures, error) {
	next := slices.IndexFunc(c.in.Pods, func(p recording.InputPod) bool { return p.Arrival >= past })
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	c.begin = time.Now()
	for last := c.begin; ; {
		now := time.Now()
		elapsed := now.Sub(c.begin)
		if elapsed >= seconds*time.Second {
			break
		}
		for ; next < len(c.in.Pods) && time.Duration(c.in.Pods[next].Arrival-past)*time.Second <= elapsed; next++ {
			if err := c.create(ctx, next, c.in.Pods[next].Object.Name); err != nil {
				return figures{}, err
			}
		}
		if err := c.observe(ctx, now, now.Sub(last).Minutes()); err != nil {
			return figures{}, err
		}
		last = now
		select {
		case <-ctx.Done():
			return figures{}, context.Cause(ctx)
		case <-ticker.C:
		}
	}
	for _, pod := range c.pods { // pods that wait at the end
		if pod.end.IsZero() {
			c.addWait(time.Since(pod.created))
		}
	}
	c.WaitMean, c.WaitP99 = float64(c.total)/float64(c.waits.Pods()), c.waits.Percentile(99).Seconds()
	c.Pods = int(c.waits.Pods())
	return c.figures, nil
}

func (c *cluster) addWait(d time.Duration) {
	s := int64(d.Seconds())
	c.waits[s]++
	c.total += s
}

// observe counts nodes and overload for some minutes, deletes pods that have ended, and replaces pods that were evicted.
func (c *cluster) observe(ctx context.Context, now time.Time, minutes float64) error {
	var claims unstructured.UnstructuredList
	claims.SetGroupVersionKind(schema.GroupVersionKind{Group: "karpenter.sh", Version: "v1", Kind: "NodeClaimList"})
	if err := c.client.List(ctx, &claims); err != nil {
		return err
	}
	c.NodeMinutes += float64(len(claims.Items)) * minutes
	nodes, err := c.core.CoreV1().Nodes().List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return err
	}
	pods, err := c.core.CoreV1().Pods(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return err
	}
	load := map[string]*controlplane.Usage{}
	for i := range nodes.Items {
		load[nodes.Items[i].Name] = &controlplane.Usage{Name: nodes.Items[i].Name}
	}
	used, err := c.observePods(ctx, pods.Items, load, now)
	if err != nil {
		return err
	}
	for i := range nodes.Items {
		u, has := load[nodes.Items[i].Name], nodes.Items[i].Status.Allocatable
		if u.CPU > has.Cpu().MilliValue() || u.Memory > has.Memory().Value() {
			c.OverloadMinutes += minutes
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.used, c.load = used, c.load[:0:0]
	for _, u := range load {
		c.load = append(c.load, *u)
	}
	return nil
}

// observePods returns the usage of the pods that have a node, and adds it to the load of nodes.
func (c *cluster) observePods(ctx context.Context, pods []v1.Pod, load map[string]*controlplane.Usage, now time.Time,
) (used []controlplane.Usage, err error) {
	gone := maps.Clone(c.pods)
	for i := range pods {
		pod := &pods[i]
		state := c.pods[pod.Name]
		if pod.DeletionTimestamp != nil || state == nil {
			continue
		}
		delete(gone, pod.Name)
		if pod.Spec.NodeName == "" {
			continue
		}
		p := &c.in.Pods[state.number]
		if state.end.IsZero() {
			c.addWait(scheduledAt(pod, now).Sub(pod.CreationTimestamp.Time))
			state.end = now.Add(time.Duration(p.Duration) * time.Second)
		}
		if !state.end.After(now) {
			delete(c.pods, pod.Name)
			err := c.core.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)})
			if err != nil && !apierrors.IsNotFound(err) {
				return nil, err
			}
			continue
		}
		cpu, memory := p.Usage.At(0, past+int64(now.Sub(c.begin).Seconds()))
		u := controlplane.Usage{
			Namespace: pod.Namespace, Name: pod.Name, CPU: int64(math.Round(cpu)), Memory: int64(memory),
		}
		used = append(used, u)
		if node := load[pod.Spec.NodeName]; node != nil {
			node.CPU, node.Memory = node.CPU+u.CPU, node.Memory+u.Memory
		}
	}
	for name, state := range gone {
		// A list from the cache of the API server may lack the newest pods.
		if now.Sub(state.created) < 5*time.Second {
			continue
		}
		c.Evicted++
		delete(c.pods, name)
		if err := c.create(ctx, state.number, fmt.Sprintf("%s-again-%d", c.in.Pods[state.number].Object.Name, c.Evicted)); err != nil {
			return nil, err
		}
	}
	return used, nil
}

// scheduledAt returns when a pod got its node, now if it does not say so.
func scheduledAt(pod *v1.Pod, now time.Time) time.Time {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == v1.PodScheduled && condition.Status == v1.ConditionTrue {
			return condition.LastTransitionTime.Time
		}
	}
	return now
}
