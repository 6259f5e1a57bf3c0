package recommend

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	clientfake "k8s.io/client-go/kubernetes/fake"
	scalefake "k8s.io/client-go/scale/fake"
	k8stesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/kubernetes/pkg/controller/podautoscaler"
	"k8s.io/kubernetes/pkg/controller/podautoscaler/metrics"
	"sigs.k8s.io/yaml"

	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
	"github.com/plimsoll-k8s/plimsoll/test/support/eventually"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// autoscaled has Deployments that are scaled: their pods share a load of CPU and memory. It implements metrics.MetricsClient.
type autoscaled struct {
	metrics.MetricsClient // for metrics that no test reads

	pods cache.Indexer
	mu   sync.Mutex
	// templates are the pods of the Deployments, by namespace/name, and replicas their number.
	templates map[string]*v1.Pod
	replicas  map[string]int32
	// cores is the load of each Deployment in cores, and in 2 GiB of memory.
	cores float64
	// reads counts the readings of metrics of each Deployment since the load or its number of pods changed.
	reads map[string]int
}

// GetResourceMetric returns the use of each pod in thousandths. The container main has 3/4 of it.
func (a *autoscaled) GetResourceMetric(
	_ context.Context,
	resource v1.ResourceName,
	namespace string,
	selector labels.Selector,
	container string,
) (
	metrics.PodMetricsInfo, time.Time, error,
) {
	a.mu.Lock()
	defer a.mu.Unlock()
	key := namespace + "/" + strings.TrimPrefix(selector.String(), "app=")
	a.reads[key]++
	use := a.cores * 1000
	if resource == v1.ResourceMemory {
		use = a.cores * (2 << 30) * 1000
	}
	if container == "main" {
		use *= 0.75
	}
	out := metrics.PodMetricsInfo{}
	for i := range a.replicas[key] {
		out[fmt.Sprint(selector.String()[len("app="):], "-", i)] = metrics.PodMetric{
			Timestamp: time.Now(), Window: time.Second, Value: int64(use / float64(a.replicas[key])),
		}
	}
	return out, time.Now(), nil
}

// scale sets the number of pods of a Deployment.
func (a *autoscaled) scale(namespace, name string, replicas int32) {
	a.mu.Lock()
	defer a.mu.Unlock()
	key := namespace + "/" + name
	a.replicas[key], a.reads[key] = replicas, 0
	for i := range int32(100) {
		pod := a.templates[key].DeepCopy()
		pod.Namespace, pod.Name, pod.Labels = namespace, fmt.Sprint(name, "-", i), map[string]string{"app": name}
		long := metav1.NewTime(time.Now().Add(-time.Hour))
		pod.Status = v1.PodStatus{Phase: v1.PodRunning, StartTime: &long, Conditions: []v1.PodCondition{
			{Type: v1.PodReady, Status: v1.ConditionTrue, LastTransitionTime: long},
		}}
		if i < replicas {
			_ = a.pods.Add(pod)
		} else {
			_ = a.pods.Delete(pod)
		}
	}
}

// scales returns a client of the scales of the Deployments.
func (a *autoscaled) scales() *scalefake.FakeScaleClient {
	client := &scalefake.FakeScaleClient{}
	client.AddReactor("get", "deployments", func(action k8stesting.Action) (bool, runtime.Object, error) {
		name, namespace := action.(k8stesting.GetAction).GetName(), action.GetNamespace()
		a.mu.Lock()
		defer a.mu.Unlock()
		replicas := a.replicas[namespace+"/"+name]
		return true, &autoscalingv1.Scale{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: autoscalingv1.ScaleSpec{Replicas: replicas},
			Status: autoscalingv1.ScaleStatus{Replicas: replicas, Selector: "app=" + name},
		}, nil
	})
	client.AddReactor("update", "deployments", func(action k8stesting.Action) (bool, runtime.Object, error) {
		scale := action.(k8stesting.UpdateAction).GetObject().(*autoscalingv1.Scale)
		a.scale(scale.Namespace, scale.Name, scale.Spec.Replicas)
		return true, scale, nil
	})
	return client
}

// settle sets the load, and returns the number of pods of each Deployment once the controller does not change it any more.
func (a *autoscaled) settle(t *testing.T, cores float64) map[string]int32 {
	a.mu.Lock()
	a.cores, a.reads = cores, map[string]int{}
	a.mu.Unlock()
	var settled map[string]int32
	eventually.True(t, "the numbers of pods do not settle", nil, func(context.Context) (bool, error) {
		a.mu.Lock()
		defer a.mu.Unlock()
		for key := range a.replicas {
			if a.reads[key] < 8 {
				return false, nil
			}
		}
		settled = maps.Clone(a.replicas)
		return true, nil
	})
	return settled
}

// TestReplicasStay verifies with the controller of HorizontalPodAutoscalers that the numbers of pods are within one of those before over a
// load that rises and falls, once a recommendation is applied: requests of CPU at 40 % and of memory at 50 %, and the patches of the HPAs.
// Without these patches they are not, but for an HPA by an amount.
func TestReplicasStay(t *testing.T) {
	cpu, memory := fmt.Sprintf(percent, "cpu"), fmt.Sprintf(percent, "memory")
	scaledBy := map[string]string{
		"cpu":       cpu,
		"memory":    memory,
		"both":      cpu + ", " + memory,
		"minimum":   cpu,
		"container": "{type: ContainerResource, containerResource: {name: cpu, container: main, target: {type: Utilization, averageUtilization: 60}}}",
		"amount":    "{type: Resource, resource: {name: cpu, target: {type: AverageValue, averageValue: 700m}}}",
	}
	a := &autoscaled{templates: map[string]*v1.Pod{}, replicas: map[string]int32{}, reads: map[string]int{}}
	r := recordingOf([]float64{100}, []float64{50})
	before := r.Pods[0].Object
	before.Spec.Containers = []v1.Container{
		{Name: "main", Resources: resourcesOf("750m 1536Mi", "")}, {Name: "log", Resources: resourcesOf("250m 512Mi", "")},
	}
	w := &recording.WorkloadRequests{CPU: 400, Memory: 1 << 30}
	after := recording.SetRequests(before, w.CPU, w.Memory)
	var scalers []runtime.Object
	for name, metric := range scaledBy {
		o := objects(t, fmt.Sprintf(hpa, "", name, metric))
		c, err := newConstraints(&recording.Recording{Objects: o})
		must.Succeed(t, err)
		for _, list := range c.scalers {
			scaler := list[0]
			scaler.Spec.ScaleTargetRef.Kind, scaler.Spec.ScaleTargetRef.APIVersion = "Deployment", "apps/v1"
			scaler.Name, scaler.Spec.MaxReplicas = name, 90
			if name == "minimum" {
				scaler.Spec.MinReplicas = new(int32(12))
			}
			patched := scaler.DeepCopy()
			patch, err := scalerPatch(scaler, w, before)
			must.Succeed(t, err)
			must.Succeed(t, yaml.Unmarshal(patch, patched))
			for namespace, template := range map[string]*v1.Pod{"before": before, "applied": after, "alone": after} {
				scaler := map[bool]*autoscalingv2.HorizontalPodAutoscaler{true: patched, false: scaler}[namespace == "applied"].DeepCopy()
				scaler.Namespace = namespace
				scalers, a.templates[namespace+"/"+name] = append(scalers, scaler), template
			}
		}
	}
	client := clientfake.NewClientset(scalers...)
	factory := informers.NewSharedInformerFactory(client, 0)
	pods := factory.Core().V1().Pods()
	a.pods = pods.Informer().GetIndexer()
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{{Group: "apps", Version: "v1"}})
	mapper.Add(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, meta.RESTScopeNamespace)
	controller := podautoscaler.NewHorizontalController(t.Context(), client.CoreV1(), a.scales(), client.AutoscalingV2(), mapper, a,
		factory.Autoscaling().V2().HorizontalPodAutoscalers(), pods, 10*time.Millisecond, 0, 0.1, 0, 0)
	factory.Start(t.Context().Done())
	factory.WaitForCacheSync(t.Context().Done())
	for key := range a.templates {
		namespace, name, _ := strings.Cut(key, "/")
		a.scale(namespace, name, 12)
	}
	go controller.Run(t.Context(), 4)
	differs := map[string]bool{}
	for _, cores := range []float64{4, 7, 11, 16, 20, 15, 9, 6, 3} {
		replicas := a.settle(t, cores)
		t.Log(cores, replicas)
		for name := range scaledBy {
			want := replicas["before/"+name]
			if got := replicas["applied/"+name]; got < want-1 || got > want+1 {
				t.Errorf("%s: %d pods at a load of %v cores, %d before the change", name, got, cores, want)
			}
			if got := replicas["alone/"+name]; got > want+1 {
				differs[name] = true
			}
		}
	}
	if got := slices.Sorted(maps.Keys(differs)); fmt.Sprint(got) != "[both container cpu memory minimum]" {
		t.Errorf("without patches of the HPAs, %v have more pods", got)
	}
}
