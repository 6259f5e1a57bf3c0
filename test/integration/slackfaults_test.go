package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/slack"
	"github.com/plimsoll-k8s/plimsoll/test/support/eventually"
)

// Beside a good policy: a node that flaps, a pool that nobody is in, and amounts
// that no computer has. The good one's objects are not written once.
func TestSlackFaults(t *testing.T) {
	t.Parallel()
	h := startCluster(t, buffersCRD(t))
	for i := range 4 {
		h.create(t, readyNode(fmt.Sprint("node-", i), "16", "64Gi", map[string]string{"pool": "general"}))
	}
	h.fill(t, "pod-", 40, 4, "node-")
	suite := t
	controller := h.startController(suite)
	h.create(t, policyOf("general", "10%", inPool("general")))
	good := map[string]string{"general-head": "1 x 1 2Gi", "general-rate": "3 x 1 2Gi"}
	h.awaitBuffers(t, controller, good)
	h.awaitCondition(t, controller, "general", v1alpha1.ConditionReady, "Held")
	buffers := h.recordChanges(suite, slack.CapacityBufferVersion.WithKind("CapacityBuffer"))
	templates := h.recordChanges(suite, v1.SchemeGroupVersion.WithKind("PodTemplate"))
	policies := h.recordChanges(suite, v1alpha1.GroupVersion.WithKind(v1alpha1.Kind))

	t.Run("a node that flaps", func(t *testing.T) {
		every := time.NewTicker(time.Second)
		defer every.Stop()
		for i := range 15 {
			h.setReady(t, "node-0", []v1.ConditionStatus{v1.ConditionFalse, v1.ConditionTrue, v1.ConditionUnknown, v1.ConditionTrue}[i%4])
			<-every.C
		}
		h.setReady(t, "node-0", v1.ConditionTrue)
		t.Logf("15 changes of the node, writes: buffers %v, templates %v, status %v", buffers.changes(), templates.changes(), policies.changes())
		if n := len(policies.changes()); n > 2 {
			t.Errorf("the status was written %d times", n)
		}
	})
	t.Run("a pool without nodes", func(t *testing.T) {
		h.create(t, policyOf("nowhere", "10%", inPool("nowhere")))
		policy := h.awaitCondition(t, controller, "nowhere", v1alpha1.ConditionFeasible, "NotFeasible")
		if c := meta.FindStatusCondition(policy.Status.Conditions, v1alpha1.ConditionFeasible); !strings.Contains(c.Message, "the pool has no usable nodes") {
			t.Errorf("says %q", c.Message)
		}
		h.awaitCondition(t, controller, "nowhere", v1alpha1.ConditionReady, "NotFeasible")
		// A slip of the hand in a policy that holds something.
		if err := h.client.Get(t.Context(), client.ObjectKey{Name: "general"}, policy); err != nil {
			t.Fatal(err)
		}
		policy.Spec.Pool.NodeSelector["pool"] = "genral"
		if err := h.client.Update(t.Context(), policy); err != nil {
			t.Fatal(err)
		}
		h.awaitCondition(t, controller, "general", v1alpha1.ConditionFeasible, "NotFeasible")
		policy.Spec.Pool.NodeSelector["pool"] = "general"
		if err := h.client.Get(t.Context(), client.ObjectKey{Name: "general"}, policy); err != nil {
			t.Fatal(err)
		}
		policy.Spec.Pool.NodeSelector["pool"] = "general"
		if err := h.client.Update(t.Context(), policy); err != nil {
			t.Fatal(err)
		}
		h.awaitCondition(t, controller, "general", v1alpha1.ConditionReady, "Held")
	})
	for _, w := range []*changeRecorder{buffers, templates} {
		if seen := w.changes(); len(seen) > 0 {
			t.Errorf("written: %v", seen)
		}
	}
	t.Run("amounts that overflow", func(t *testing.T) { h.overflow(t, controller) })
	h.awaitCondition(t, controller, "general", v1alpha1.ConditionReady, "Held")
	for _, w := range []*changeRecorder{buffers, templates} {
		for _, change := range w.changes() {
			if strings.Contains(change, " general-") {
				t.Errorf("the good policy's objects were written: %v", change)
			}
		}
	}
	if strings.Contains(controller.String(), "panic") {
		t.Errorf("the controller panicked:\n%s", controller)
	}
	controller.Stop(t)
}

// setReady does what a node's kubelet, or who watches over it, does.
func (h *testCluster) setReady(t *testing.T, node string, status v1.ConditionStatus) {
	t.Helper()
	now := metav1.Now()
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": []v1.NodeCondition{
		{Type: v1.NodeReady, Status: status, Reason: "Flapping", LastHeartbeatTime: now, LastTransitionTime: now},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	object := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}
	if err := h.client.Status().Patch(t.Context(), object, client.RawPatch(types.StrategicMergePatchType, patch)); err != nil {
		t.Fatal(err)
	}
}

// overflow has nodes, pods and policies whose sums no integer holds.
func (h *testCluster) overflow(t *testing.T, log fmt.Stringer) {
	const huge = "9223372036854775807"
	h.create(t, readyNode("vast", huge, "8Ei", map[string]string{"pool": "vast"}))
	h.create(t, runningPod("vast-0", "vast", huge, "1Ei"))
	h.create(t, runningPod("vast-1", "vast", "1", "7Ei"))
	h.create(t, runningPod("vast-2", "vast", "1m", "9223372036854775807"))
	h.create(t, policyOf("vast", "9999.9999%", inPool("vast")))
	// Pods that are larger than their node by more than can be counted.
	h.create(t, readyNode("tiny", "1m", "1Mi", map[string]string{"pool": "tiny"}))
	h.create(t, runningPod("tiny-0", "tiny", huge, "7Ei"))
	h.create(t, runningPod("tiny-1", "tiny", huge, "7Ei"))
	h.create(t, policyOf("tiny", "9999.999999", inPool("tiny")))
	deployment := func(s *v1alpha1.ResourceSlackSpec) {
		inPool("tiny")(s)
		s.Backend = v1alpha1.BackendDeployment
		s.MaxPlaceholders = new(int32(2))
	}
	h.create(t, policyOf("tiny-pods", "9999.999999", deployment))
	for _, name := range []string{"vast", "tiny", "tiny-pods"} {
		policy := &v1alpha1.ResourceSlack{}
		eventually.True(t, name+" has no conditions", log, func(ctx context.Context) (bool, error) {
			err := h.client.Get(ctx, client.ObjectKey{Name: name}, policy)
			return len(policy.Status.Conditions) == 3, err
		})
		for _, c := range policy.Status.Conditions {
			t.Logf("%s: %s=%s %s: %s", name, c.Type, c.Status, c.Reason, c.Message)
		}
		if s := policy.Status; s.Placeholders < 0 || s.Placeholders > math.MaxInt32 || s.Target.Cpu().Sign() < 0 || s.Total.Memory().Sign() < 0 {
			t.Errorf("%s: status %+v", name, s)
		}
	}
	h.awaitCondition(t, log, "tiny", v1alpha1.ConditionFeasible, "NotFeasible")
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(slack.CapacityBufferVersion.WithKind("CapacityBufferList"))
	if err := h.client.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		replicas, _, err := unstructured.NestedInt64(list.Items[i].Object, "spec", "replicas")
		t.Logf("%s: %d replicas", list.Items[i].GetName(), replicas)
		if err != nil || replicas < 1 || replicas > math.MaxInt32 {
			t.Errorf("%s: %d replicas, %v", list.Items[i].GetName(), replicas, err)
		}
	}
}

// The controller is killed between its first write and the next, and the policy
// is deleted while no controller runs. The next one leaves nothing behind; there
// is no garbage collector to do it.
func TestSlackPolicyDeletedHalfWay(t *testing.T) {
	t.Parallel()
	h := startCluster(t, buffersCRD(t))
	h.create(t, readyNode("node-0", "16", "64Gi", map[string]string{"pool": "general"}))
	h.create(t, readyNode("other-0", "16", "64Gi", map[string]string{"pool": "other"}))
	h.fill(t, "pod-", 10, 1, "node-")
	h.fill(t, "other-", 10, 1, "other-")
	var first v1.PodTemplateList
	changes, err := h.client.Watch(t.Context(), &first)
	if err != nil {
		t.Fatal(err)
	}
	defer changes.Stop()
	h.create(t, policyOf("general", "50%", inPool("general")))
	controller := h.startController(t, "--leader-elect=false")
	for event := range changes.ResultChan() {
		if event.Type == watch.Added {
			break
		}
	}
	controller.Kill()
	if err := h.client.Delete(t.Context(), policyOf("general", "", nil)); err != nil {
		t.Fatal(err)
	}
	left := func(ctx context.Context) (names []string) {
		for _, kind := range []string{"v1/PodTemplateList", "autoscaling.x-k8s.io/v1beta1/CapacityBufferList", "apps/v1/DeploymentList"} {
			list := &unstructured.UnstructuredList{}
			at := strings.LastIndex(kind, "/")
			list.SetAPIVersion(kind[:at])
			list.SetKind(kind[at+1:])
			if err := h.client.List(ctx, list, client.InNamespace(systemNamespace)); err != nil {
				return append(names, err.Error())
			}
			for i := range list.Items {
				names = append(names, list.Items[i].GetKind()+" "+list.Items[i].GetName())
			}
		}
		return names
	}
	there := left(t.Context())
	t.Logf("left by the controller that was killed: %v", there)
	if len(there) == 0 {
		t.Fatalf("nothing\n%s", controller)
	}
	// Somebody else's, of whom the controller knows nothing.
	stranger := &v1.PodTemplate{ObjectMeta: metav1.ObjectMeta{Name: "stranger", Namespace: systemNamespace}, Template: v1.PodTemplateSpec{Spec: runningPod("", "", "1", "1Gi").Spec}}
	h.create(t, stranger)
	// Another policy, which was there all the time.
	h.create(t, policyOf("other", "0", inPool("other")))
	controller = h.startController(t)
	eventually.True(t, "something is left of the policy", controller, func(ctx context.Context) (bool, error) {
		there = left(ctx)
		return fmt.Sprint(there) == "[PodTemplate other-head PodTemplate stranger CapacityBuffer other-head]", nil
	})
	controller.Stop(t)
}

// lax writes our CRD as one that checks nothing but types.
func lax(t *testing.T) string {
	t.Helper()
	raw, err := os.ReadFile("../../config/crd/plimsoll.dev_resourceslacks.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var crd map[string]any
	if err := yaml.Unmarshal(raw, &crd); err != nil {
		t.Fatal(err)
	}
	var strip func(any)
	strip = func(node any) {
		switch node := node.(type) {
		case map[string]any:
			for _, rule := range []string{"pattern", "enum", "minimum", "maximum", "x-kubernetes-validations"} {
				delete(node, rule)
			}
			for _, child := range node {
				strip(child)
			}
		case []any:
			for _, child := range node {
				strip(child)
			}
		}
	}
	strip(crd)
	if raw, err = yaml.Marshal(crd); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "crd.yaml")
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// brokenPolicies are what a CRD of an older release may have let in, each with a
// word that says what is wrong.
var brokenPolicies = []struct {
	says   string
	change func(*v1alpha1.ResourceSlack)
}{
	{"spec.minRate", func(p *v1alpha1.ResourceSlack) { p.Spec.MinRate = "NaN" }},
	{"spec.minRate", func(p *v1alpha1.ResourceSlack) { p.Spec.MinRate = "-5%" }},
	{"spec.minRate", func(p *v1alpha1.ResourceSlack) { p.Spec.MinRate = "" }},
	{"less than 100%", func(p *v1alpha1.ResourceSlack) { p.Spec.MinRate, p.Spec.Base = "100%", v1alpha1.BaseAllocatable }},
	{"spec.granularity", func(p *v1alpha1.ResourceSlack) { p.Spec.Granularity = new(int32(0)) }},
	{"spec.maxPlaceholders", func(p *v1alpha1.ResourceSlack) { p.Spec.MaxPlaceholders = new(int32(-1)) }},
	{"spec.base", func(p *v1alpha1.ResourceSlack) { p.Spec.Base = "Used" }},
	{"spec.backend", func(p *v1alpha1.ResourceSlack) { p.Spec.Backend = "Hope" }},
	{"metadata.name", func(p *v1alpha1.ResourceSlack) { p.Name = strings.Repeat("long-", 12) + p.Name }},
	{"metadata.name", func(p *v1alpha1.ResourceSlack) { p.Name = strings.Repeat("long-", 20) + p.Name }},
}

// broken returns the i-th of the broken objects that lie about: most are
// policies; there are also buffers of ours that we never wrote, buffers of
// policies that never were, pods on nodes that are not there, and nodes that have
// nothing.
func broken(i int) client.Object {
	switch i % 20 {
	case 0, 1, 2:
		return trash(fmt.Sprint("good-trash-", i), "good")
	case 3, 4, 5:
		return trash(fmt.Sprint("trash-", i), fmt.Sprint("never-was-", i))
	case 6:
		return runningPod(fmt.Sprint("lost-", i), "nowhere", "7Ei", "7Ei")
	case 7:
		return &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("hollow-", i), Labels: map[string]string{"pool": "general"}}}
	}
	policy := policyOf(fmt.Sprint("broken-", i), "10%", nil)
	policy.Spec.Default()
	brokenPolicies[i%len(brokenPolicies)].change(policy)
	return policy
}

// trash is a buffer that says it is of a policy and stands for nothing.
func trash(name, policy string) *unstructured.Unstructured {
	buffer := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"podTemplateRef": map[string]any{"name": "nothing"}, "replicas": int64(1_000_000)}}}
	buffer.SetGroupVersionKind(slack.CapacityBufferVersion.WithKind("CapacityBuffer"))
	buffer.SetName(name)
	buffer.SetNamespace(systemNamespace)
	buffer.SetLabels(map[string]string{slack.PlaceholderLabel: policy})
	return buffer
}

// Thousands of broken objects lie about, under a CRD that lets everything in. The
// good policy is held soon, every broken one is told what is wrong with it, and
// what says that it is ours is tidied away. PLIMSOLL_BROKEN=10000 is the number
// that counts; it takes about two minutes on two cores.
func TestSlackAmongBrokenObjects(t *testing.T) {
	t.Parallel()
	number := 2_000
	if text, ok := os.LookupEnv("PLIMSOLL_BROKEN"); ok {
		var err error
		if number, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	h := startClusterWithCRDs(t, lax(t), buffersCRD(t))
	h.create(t, readyNode("node-0", "64", "256Gi", map[string]string{"pool": "general"}))
	h.fill(t, "pod-", 40, 1, "node-")
	began := time.Now()
	var creating sync.WaitGroup
	const workers = 16
	for worker := range workers {
		creating.Go(func() {
			for i := worker; i < number; i += workers {
				if err := h.client.Create(t.Context(), broken(i)); err != nil {
					t.Errorf("%d: %v", i, err)
					return
				}
			}
		})
	}
	creating.Wait()
	// Garbage that could be taken for what was held before, and somebody else's.
	for i := range 20 {
		name := fmt.Sprint("good-garbage-", i)
		h.create(t, trash(name, "good"))
		h.create(t, &v1.PodTemplate{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: systemNamespace, Labels: map[string]string{slack.PlaceholderLabel: "good"}},
			Template:   v1.PodTemplateSpec{Spec: runningPod("", "", "1", "2Gi").Spec},
		})
	}
	stranger := trash("stranger", "good")
	stranger.SetLabels(nil)
	h.create(t, stranger)
	elsewhere := trash("elsewhere", "good")
	elsewhere.SetNamespace("default")
	h.create(t, elsewhere)
	t.Logf("%d broken objects created in %.1f s", number, time.Since(began).Seconds())

	buffers := h.recordChanges(t, slack.CapacityBufferVersion.WithKind("CapacityBuffer"))
	began = time.Now()
	controller := h.startController(t, "--leader-elect=false")
	h.create(t, policyOf("good", "10%", inPool("general")))
	h.awaitCondition(t, controller, "good", v1alpha1.ConditionReady, "Held")
	t.Logf("the good policy was held %.1f s after the start", time.Since(began).Seconds())
	// Lists of this length are not to be asked for all the time.
	rarely := func(what string, condition func(context.Context) (bool, error)) {
		t.Helper()
		if err := wait.PollUntilContextTimeout(t.Context(), 2*time.Second, 3*time.Minute, true, condition); err != nil {
			t.Fatalf("%s: %v\n%.5000s", what, err, controller)
		}
	}
	var policies int
	rarely("broken policies are not told", func(ctx context.Context) (bool, error) {
		var list v1alpha1.ResourceSlackList
		err := h.client.List(ctx, &list)
		policies = len(list.Items)
		silent := slices.ContainsFunc(list.Items, func(p v1alpha1.ResourceSlack) bool { return p.Name != "good" && !told(t, p) })
		return !silent, err
	})
	t.Logf("%d broken policies were told %.1f s after the start", policies-1, time.Since(began).Seconds())
	want := "[CapacityBuffer elsewhere CapacityBuffer good-head CapacityBuffer good-rate CapacityBuffer stranger]"
	var got string
	rarely("there are other buffers", func(ctx context.Context) (bool, error) {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(slack.CapacityBufferVersion.WithKind("CapacityBufferList"))
		err := h.client.List(ctx, list)
		var names []string
		for i := range list.Items {
			names = append(names, "CapacityBuffer "+list.Items[i].GetName())
		}
		got = fmt.Sprint(names)
		return got == want, err
	})
	t.Logf("the trash was gone %.1f s after the start, the controller had %s at most", time.Since(began).Seconds(), controller.PeakMemory(t))
	for _, change := range buffers.changes() {
		if !strings.HasPrefix(change, "DELETED ") && change != "ADDED good-head" && change != "ADDED good-rate" {
			t.Errorf("a buffer was written: %s", change)
		}
	}
	// A broken one that goes is no trouble either.
	for i := range 2 {
		gone := policyOf(fmt.Sprint("broken-", 8+i+10), "", nil)
		gone.Name = strings.Repeat("long-", []int{12, 20}[i]) + gone.Name
		if err := h.client.Delete(t.Context(), gone); err != nil {
			t.Error(err)
		}
	}
	h.awaitCondition(t, controller, "good", v1alpha1.ConditionReady, "Held")
	if strings.Contains(controller.String(), "panic") || strings.Contains(controller.String(), "Reconciler error") {
		t.Errorf("the controller ran into an error:\n%.5000s", controller)
	}
}

// told reports whether the conditions of a broken policy say what is wrong.
func told(t *testing.T, policy v1alpha1.ResourceSlack) bool {
	ready := meta.FindStatusCondition(policy.Status.Conditions, v1alpha1.ConditionReady)
	if ready == nil {
		return false
	}
	i, err := strconv.Atoi(policy.Name[strings.LastIndex(policy.Name, "-")+1:])
	if says := brokenPolicies[i%len(brokenPolicies)].says; err != nil || ready.Reason != "InvalidPolicy" || !strings.Contains(ready.Message, says) {
		t.Errorf("%s: %s %q, want %s", policy.Name, ready.Reason, ready.Message, says)
	}
	return true
}
