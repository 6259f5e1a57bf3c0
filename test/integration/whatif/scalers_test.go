package whatif

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/scale"
	"k8s.io/kubernetes/pkg/controller/podautoscaler"
	"k8s.io/kubernetes/pkg/controller/podautoscaler/metrics"
	"sigs.k8s.io/yaml"

	"github.com/plimsoll-k8s/plimsoll/internal/whatif/compare"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/engine"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recommend"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/record"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording/kinds"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/replay"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/scaling"
	"github.com/plimsoll-k8s/plimsoll/test/support/eventually"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
	"github.com/plimsoll-k8s/plimsoll/test/support/schedtest"
	"github.com/plimsoll-k8s/plimsoll/test/support/testcluster"
)

// metricsOf are the metrics of the HorizontalPodAutoscalers of the Deployments of scaledPods, which have their names.
var metricsOf = map[string]string{
	"cpu":     scaledByCPU,
	"memory":  scaledByMemory,
	"both":    scaledByCPU + ", " + scaledByMemory,
	"minimum": scaledByCPU,
	"container": "{type: ContainerResource, containerResource: {name: cpu, container: main, target: {type: Utilization, " +
		"averageUtilization: 60}}}",
	"amount": "{type: Resource, resource: {name: cpu, target: {type: AverageValue, averageValue: 700m}}}",
}

const (
	scaledByCPU    = "{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 80}}}"
	scaledByMemory = "{type: Resource, resource: {name: memory, target: {type: Utilization, averageUtilization: 80}}}"
	minimumOfPods  = 4
)

// scaledPods are the pods of Deployments with HorizontalPodAutoscalers, which share a load of CPU and memory. It implements
// metrics.MetricsClient.
type scaledPods struct {
	metrics.MetricsClient // for metrics that no test reads

	client *kubernetes.Clientset
	pods   corelisters.PodLister
	mu     sync.Mutex
	// cores is the load of each Deployment in cores, and in 2 GiB of memory.
	cores float64
	// state has the numbers of pods of the Deployments, and reads how often the metrics of each were read since they or the load changed.
	state string
	reads map[string]int
}

// GetResourceMetric returns the use of each pod in thousandths. The container main has 3/4 of it.
func (p *scaledPods) GetResourceMetric(
	_ context.Context, resource v1.ResourceName, namespace string, selector labels.Selector, container string,
) (metrics.PodMetricsInfo, time.Time, error) {
	pods, err := p.pods.Pods(namespace).List(selector)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reads[namespace+"/"+selector.String()]++
	use := map[v1.ResourceName]float64{v1.ResourceCPU: 1000, v1.ResourceMemory: (2 << 30) * 1000}[resource] * p.cores
	if container != "" {
		use *= 0.75
	}
	out := metrics.PodMetricsInfo{}
	for _, pod := range pods {
		out[pod.Name] = metrics.PodMetric{Timestamp: time.Now(), Window: time.Second, Value: int64(use / float64(len(pods)))}
	}
	return out, time.Now(), err
}

// settle sets the load, and returns the number of pods of each Deployment once neither its controllers nor the HorizontalPodAutoscalers
// change it.
func (p *scaledPods) settle(t *testing.T, cores float64) map[string]int32 {
	t.Helper()
	p.mu.Lock()
	p.cores, p.state = cores, ""
	p.mu.Unlock()
	settled := map[string]int32{}
	eventually.True(t, "the numbers of pods do not settle", nil, func(ctx context.Context) (bool, error) {
		list, err := p.client.AppsV1().Deployments("").List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		state, isDone := "", true
		for _, d := range list.Items {
			want, s := *d.Spec.Replicas, d.Status
			state += fmt.Sprintln(want, d.Generation, s.Replicas, s.UpdatedReplicas, s.AvailableReplicas)
			isDone = isDone && s.ObservedGeneration == d.Generation && s.Replicas == want && s.UpdatedReplicas == want &&
				s.AvailableReplicas == want
			settled[d.Namespace+"/"+d.Name] = want
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		if state != p.state {
			p.state, p.reads = state, map[string]int{}
		}
		for _, d := range list.Items {
			isDone = isDone && p.reads[d.Namespace+"/app="+d.Name] >= 6 // two metrics, three times
		}
		return isDone, nil
	})
	return settled
}

// create creates the Deployments and their HorizontalPodAutoscalers in a new namespace.
func (p *scaledPods) create(t *testing.T, namespace string) {
	t.Helper()
	testcluster.Create(t, p.client.CoreV1().Namespaces(), &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	requests := func(cpu, memory string) v1.ResourceRequirements {
		return v1.ResourceRequirements{Requests: schedtest.Amounts("cpu", cpu, "memory", memory)}
	}
	for name, text := range metricsOf {
		app := map[string]string{"app": name}
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name}}
		d.Spec.Replicas, d.Spec.Selector = new(int32(minimumOfPods)), &metav1.LabelSelector{MatchLabels: app}
		d.Spec.Template = v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: app}, Spec: v1.PodSpec{
			NodeName: "node", TerminationGracePeriodSeconds: new(int64), Containers: []v1.Container{
				{Name: "main", Image: "i", Resources: requests("750m", "1536Mi")},
				{Name: "log", Image: "i", Resources: requests("250m", "512Mi")},
			},
		}}
		testcluster.Create(t, p.client.AppsV1().Deployments(namespace), d)
		scaler := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Name: name}}
		const spec = "{scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: %s}, maxReplicas: 90, metrics: [%s]}"
		must.Succeed(t, yaml.Unmarshal(fmt.Appendf(nil, spec, name, text), &scaler.Spec))
		if name == "minimum" {
			scaler.Spec.MinReplicas = new(int32(minimumOfPods))
		}
		testcluster.Create(t, p.client.AutoscalingV2().HorizontalPodAutoscalers(namespace), scaler)
	}
}

// run runs the controller of HorizontalPodAutoscalers of kube-controller-manager until the test ends.
func (p *scaledPods) run(t *testing.T, config *rest.Config) {
	t.Helper()
	factory := informers.NewSharedInformerFactory(p.client, 0)
	pods := factory.Core().V1().Pods()
	p.pods = pods.Lister()
	discovery := memory.NewMemCacheClient(p.client.Discovery())
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(discovery)
	scales, err := scale.NewForConfig(config, mapper, dynamic.LegacyAPIPathResolverFunc, scale.NewDiscoveryScaleKindResolver(discovery))
	must.Succeed(t, err)
	controller := podautoscaler.NewHorizontalController(t.Context(), p.client.CoreV1(), scales, p.client.AutoscalingV2(), mapper, p,
		factory.Autoscaling().V2().HorizontalPodAutoscalers(), pods, 50*time.Millisecond, 0, 0.1, 0, 0)
	factory.Start(t.Context().Done())
	factory.WaitForCacheSync(t.Context().Done())
	go controller.Run(t.Context(), 4)
}

// recommended returns what plimsoll recommend writes over a recording of 36 hours in which the pods of a namespace use a third of their
// requests on nodes of 4 CPUs.
func recommended(t *testing.T, client *kubernetes.Clientset, config *rest.Config, namespace string) []recommend.Manifest {
	t.Helper()
	cluster, err := record.ReadCluster(t.Context(), config, record.ReadOptions{})
	must.Succeed(t, err)
	const step, hours = 300, 36
	from := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	r := &recording.Recording{About: recording.About{From: from, To: from.Add(hours * time.Hour), Step: step, HasAutoscalers: true}}
	r.Objects = slices.DeleteFunc(cluster.Objects, func(o kinds.Object) bool { return o.Kind.Required })
	pods, err := client.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{})
	must.Succeed(t, err)
	for i := range pods.Items {
		pod := recording.Pod{Object: &pods.Items[i], Created: -1, Ended: recording.Never, Node: fmt.Sprint("node-", i/4)}
		pod.Object.Spec.NodeName, pod.Object.ManagedFields = "", nil // a scheduler placed it
		for s := range hours * 3600 / step {
			pod.CPU.Set(s, 330)
			pod.Memory.Set(s, 700<<20)
		}
		if r.Pods = append(r.Pods, pod); i%4 == 0 {
			r.Nodes = append(r.Nodes, recording.Node{Object: newNode(pod.Node, "4", "zone-a"), Gone: recording.Never})
		}
	}
	file := filepath.Join(t.TempDir(), "recording.ndjson.gz")
	must.Succeed(t, r.WriteFile(file))
	autoscaler, err := scaling.Parse([]string{"boot=120"})
	must.Succeed(t, err)
	autoscaler.Groups[0].AdoptOthers = true
	profile, err := engine.ReadConfig("default")
	must.Succeed(t, err)
	found, err := recommend.Find(t.Context(), recommend.Options{
		Source: recording.Source{Recording: file}, Current: profile, Autoscaler: &autoscaler, CountsNodes: true, Run: compare.InProcess,
		Change: recommend.Changes{Requests: true}, Metrics: replay.DefaultMetrics, Report: func(string) {},
	})
	must.Succeed(t, err)
	t.Log(found.Verdict.Sentence)
	patches, err := found.Manifests()
	must.Succeed(t, err)
	return patches
}

// apply runs the kubectl patch command in the first line of a patch in a namespace.
func (p *scaledPods) apply(t *testing.T, namespace, patch string) {
	t.Helper()
	command := strings.Fields(patch)
	raw, err := yaml.YAMLToJSON([]byte(patch))
	must.Succeed(t, err)
	scalers, deployments := p.client.AutoscalingV2().HorizontalPodAutoscalers(namespace), p.client.AppsV1().Deployments(namespace)
	if kind, name := command[3], command[4]; kind == "hpa" {
		_, err = scalers.Patch(t.Context(), name, types.MergePatchType, raw, metav1.PatchOptions{})
	} else {
		_, err = deployments.Patch(t.Context(), name, types.StrategicMergePatchType, raw, metav1.PatchOptions{})
	}
	if err != nil {
		t.Errorf("%s: %v", strings.Join(command[:5], " "), err)
	}
}

// TestReplicasStay verifies with the controller of HorizontalPodAutoscalers that the numbers of pods are within one of those before over a
// load that rises and falls, once what plimsoll recommend writes is applied: first the patches of the HorizontalPodAutoscalers, then those
// of the Deployments. With the latter alone they are not, but for a HorizontalPodAutoscaler by an amount.
func TestReplicasStay(t *testing.T) {
	_, config, _ := testcluster.StartControlPlane(t)
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	must.Succeed(t, err)
	testcluster.CreateNode(t, client, "node")
	p := &scaledPods{client: client, cores: 3, reads: map[string]int{}}
	for _, namespace := range []string{"before", "applied", "alone"} {
		p.create(t, namespace)
	}
	p.run(t, config)
	p.settle(t, 3)
	patches := recommended(t, client, config, "applied")
	if len(patches) != 2*len(metricsOf)-1 { // the HorizontalPodAutoscaler by an amount has none
		t.Fatalf("%d patches: %+v", len(patches), patches)
	}
	differs := map[string]bool{}
	compareNumbers := func(what string, cores float64) {
		t.Helper()
		replicas := p.settle(t, cores)
		t.Log(what, cores, replicas)
		for name := range metricsOf {
			want := replicas["before/"+name]
			if got := replicas["applied/"+name]; got < want-1 || got > want+1 {
				t.Errorf("%s, %s: %d pods at a load of %v cores, %d before the change", name, what, got, cores, want)
			}
			if replicas["alone/"+name] > want+1 {
				differs[name] = true
			}
		}
	}
	apply := func(kind string, namespaces ...string) {
		t.Helper()
		for _, patch := range patches {
			for _, namespace := range namespaces {
				if strings.Contains(patch.Name, kind) {
					p.apply(t, namespace, string(patch.Text))
				}
			}
		}
	}
	apply(".horizontalpodautoscaler.", "applied")
	compareNumbers("with the patches of HorizontalPodAutoscalers", 3)
	apply(".deployment.", "applied", "alone")
	for _, cores := range []float64{3, 4.5, 6, 4, 2, 1} {
		compareNumbers("with all patches", cores)
	}
	if got := slices.Sorted(maps.Keys(differs)); fmt.Sprint(got) != "[both container cpu memory minimum]" {
		t.Errorf("without patches of the HorizontalPodAutoscalers, %v have more pods", got)
	}
}
