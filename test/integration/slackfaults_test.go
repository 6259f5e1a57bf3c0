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

// TestSlackFaults checks that a flapping node, policies with an empty pool and amounts that overflow do not
// cause writes of the objects of another policy.
func TestSlackFaults(t *testing.T) {
	t.Parallel()
	c := startCluster(t, buffersCRD(t))
	for i := range 4 {
		c.create(t, readyNode(fmt.Sprint("node-", i), "16", "64Gi", map[string]string{"pool": "general"}))
	}
	c.fill(t, "pod-", 40, 4, "node-")
	suite := t
	controller := c.startController(suite)
	c.create(t, policyOf("general", "10%", inPool("general")))
	want := map[string]string{"general-head": "1 x 1 2Gi", "general-rate": "3 x 1 2Gi"}
	c.awaitBuffers(t, controller, want)
	c.awaitCondition(t, controller, "general", v1alpha1.ConditionReady, "Held")
	buffers := c.recordChanges(suite, slack.CapacityBufferVersion.WithKind("CapacityBuffer"))
	templates := c.recordChanges(suite, v1.SchemeGroupVersion.WithKind("PodTemplate"))
	policies := c.recordChanges(suite, v1alpha1.GroupVersion.WithKind(v1alpha1.Kind))

	t.Run("a node that flaps", func(t *testing.T) {
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		for i := range 15 {
			c.setReady(t, "node-0", []v1.ConditionStatus{v1.ConditionFalse, v1.ConditionTrue, v1.ConditionUnknown, v1.ConditionTrue}[i%4])
			<-ticker.C
		}
		c.setReady(t, "node-0", v1.ConditionTrue)
		t.Logf("15 changes of the node, writes: buffers %v, templates %v, status %v", buffers.changes(), templates.changes(),
			policies.changes())
		if n := len(policies.changes()); n > 2 {
			t.Errorf("the status was written %d times, want at most 2", n)
		}
	})
	t.Run("a pool without nodes", func(t *testing.T) {
		c.create(t, policyOf("nowhere", "10%", inPool("nowhere")))
		policy := c.awaitCondition(t, controller, "nowhere", v1alpha1.ConditionFeasible, "PoolEmpty")
		if feasible := meta.FindStatusCondition(policy.Status.Conditions, v1alpha1.ConditionFeasible); !strings.Contains(feasible.Message,
			"spec.pool: no node matches (nodeSelector: pool=nowhere") {
			t.Errorf("message %q", feasible.Message)
		}
		c.awaitCondition(t, controller, "nowhere", v1alpha1.ConditionReady, "PoolEmpty")
		// A typo in the selector of a policy with placeholders.
		if err := c.client.Get(t.Context(), client.ObjectKey{Name: "general"}, policy); err != nil {
			t.Fatal(err)
		}
		policy.Spec.Pool.NodeSelector["pool"] = "genral"
		if err := c.client.Update(t.Context(), policy); err != nil {
			t.Fatal(err)
		}
		c.awaitCondition(t, controller, "general", v1alpha1.ConditionFeasible, "PoolEmpty")
		policy.Spec.Pool.NodeSelector["pool"] = "general"
		if err := c.client.Get(t.Context(), client.ObjectKey{Name: "general"}, policy); err != nil {
			t.Fatal(err)
		}
		policy.Spec.Pool.NodeSelector["pool"] = "general"
		if err := c.client.Update(t.Context(), policy); err != nil {
			t.Fatal(err)
		}
		c.awaitCondition(t, controller, "general", v1alpha1.ConditionReady, "Held")
	})
	for _, w := range []*changeRecorder{buffers, templates} {
		if changes := w.changes(); len(changes) > 0 {
			t.Errorf("writes %v, want none", changes)
		}
	}
	t.Run("amounts that overflow", func(t *testing.T) { c.overflow(t, controller) })
	c.awaitCondition(t, controller, "general", v1alpha1.ConditionReady, "Held")
	for _, w := range []*changeRecorder{buffers, templates} {
		for _, change := range w.changes() {
			if strings.Contains(change, " general-") {
				t.Errorf("objects of policy general were written: %v", change)
			}
		}
	}
	if strings.Contains(controller.String(), "panic") {
		t.Errorf("the controller panicked:\n%s", controller)
	}
	controller.Stop(t)
}

// setReady sets condition Ready of a node.
func (c *testCluster) setReady(t *testing.T, node string, status v1.ConditionStatus) {
	t.Helper()
	now := metav1.Now()
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": []v1.NodeCondition{
		{Type: v1.NodeReady, Status: status, Reason: "Flapping", LastHeartbeatTime: now, LastTransitionTime: now},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	object := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}
	if err := c.client.Status().Patch(t.Context(), object, client.RawPatch(types.StrategicMergePatchType, patch)); err != nil {
		t.Fatal(err)
	}
}

// overflow creates nodes, pods and policies whose sums exceed int64.
func (c *testCluster) overflow(t *testing.T, log fmt.Stringer) {
	const huge = "9223372036854775807"
	c.create(t, readyNode("vast", huge, "8Ei", map[string]string{"pool": "vast"}))
	c.create(t, runningPod("vast-0", "vast", huge, "1Ei"))
	c.create(t, runningPod("vast-1", "vast", "1", "7Ei"))
	c.create(t, runningPod("vast-2", "vast", "1m", "9223372036854775807"))
	const highest = "9999.9999%"
	highRate := func(s *v1alpha1.ResourceSlackSpec) { s.AllowHighRate = true }
	c.create(t, policyOf("vast", highest, func(s *v1alpha1.ResourceSlackSpec) { inPool("vast")(s); highRate(s) }))
	// Pods that are larger than their node by a factor that exceeds int64.
	c.create(t, readyNode("tiny", "1m", "1Mi", map[string]string{"pool": "tiny"}))
	c.create(t, runningPod("tiny-0", "tiny", huge, "7Ei"))
	c.create(t, runningPod("tiny-1", "tiny", huge, "7Ei"))
	c.create(t, policyOf("tiny", highest, func(s *v1alpha1.ResourceSlackSpec) { inPool("tiny")(s); highRate(s) }))
	deployment := func(s *v1alpha1.ResourceSlackSpec) {
		highRate(s)
		inPool("tiny")(s)
		s.Backend = v1alpha1.BackendDeployment
		s.MaxPlaceholders = new(int32(2))
	}
	c.create(t, policyOf("tiny-pods", highest, deployment))
	for _, name := range []string{"vast", "tiny", "tiny-pods"} {
		policy := &v1alpha1.ResourceSlack{}
		eventually.True(t, name+" has no conditions", log, func(ctx context.Context) (bool, error) {
			err := c.client.Get(ctx, client.ObjectKey{Name: name}, policy)
			return meta.FindStatusCondition(policy.Status.Conditions, v1alpha1.ConditionReady) != nil, err
		})
		for _, condition := range policy.Status.Conditions {
			t.Logf("%s: %s=%s %s: %s", name, condition.Type, condition.Status, condition.Reason, condition.Message)
		}
		if s := policy.Status; s.Placeholders < 0 || s.Placeholders > math.MaxInt32 || s.Target.Cpu().Sign() < 0 ||
			s.Total.Memory().Sign() < 0 {
			t.Errorf("%s: status %+v", name, s)
		}
	}
	c.awaitCondition(t, log, "tiny", v1alpha1.ConditionFeasible, "NotFeasible")
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(slack.CapacityBufferVersion.WithKind("CapacityBufferList"))
	if err := c.client.List(t.Context(), list); err != nil {
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

// TestSlackPolicyDeletedAfterPartialWrite kills the controller after its first write and deletes the policy while no
// controller runs. The next controller deletes the objects; the control plane has no garbage collector.
func TestSlackPolicyDeletedAfterPartialWrite(t *testing.T) {
	t.Parallel()
	c := startCluster(t, buffersCRD(t))
	c.create(t, readyNode("node-0", "16", "64Gi", map[string]string{"pool": "general"}))
	c.create(t, readyNode("other-0", "16", "64Gi", map[string]string{"pool": "other"}))
	c.fill(t, "pod-", 10, 1, "node-")
	c.fill(t, "other-", 10, 1, "other-")
	var first v1.PodTemplateList
	changes, err := c.client.Watch(t.Context(), &first)
	if err != nil {
		t.Fatal(err)
	}
	defer changes.Stop()
	c.create(t, policyOf("general", "50%", inPool("general")))
	controller := c.startController(t, "--leader-elect=false")
	for event := range changes.ResultChan() {
		if event.Type == watch.Added {
			break
		}
	}
	controller.Kill()
	if err := c.client.Delete(t.Context(), policyOf("general", "", nil)); err != nil {
		t.Fatal(err)
	}
	existing := func(ctx context.Context) (names []string) {
		for _, kind := range []string{"v1/PodTemplateList", "autoscaling.x-k8s.io/v1beta1/CapacityBufferList", "apps/v1/DeploymentList"} {
			list := &unstructured.UnstructuredList{}
			at := strings.LastIndex(kind, "/")
			list.SetAPIVersion(kind[:at])
			list.SetKind(kind[at+1:])
			if err := c.client.List(ctx, list, client.InNamespace(systemNamespace)); err != nil {
				return append(names, err.Error())
			}
			for i := range list.Items {
				names = append(names, list.Items[i].GetKind()+" "+list.Items[i].GetName())
			}
		}
		return names
	}
	objects := existing(t.Context())
	t.Logf("objects of the killed controller: %v", objects)
	if len(objects) == 0 {
		t.Fatalf("no objects were written\n%s", controller)
	}
	// An object that is not managed by the controller.
	unmanaged := &v1.PodTemplate{
		ObjectMeta: metav1.ObjectMeta{Name: "unmanaged", Namespace: systemNamespace},
		Template:   v1.PodTemplateSpec{Spec: runningPod("", "", "1", "1Gi").Spec},
	}
	c.create(t, unmanaged)
	// Another policy, which is not deleted.
	c.create(t, policyOf("other", "0", inPool("other")))
	controller = c.startController(t)
	eventually.True(t, "objects of the policy remain", controller, func(ctx context.Context) (bool, error) {
		objects = existing(ctx)
		return fmt.Sprint(objects) == "[PodTemplate other-head PodTemplate unmanaged CapacityBuffer other-head]", nil
	})
	controller.Stop(t)
}

// laxCRD writes the CRD of policies without validation other than types.
func laxCRD(t *testing.T) string {
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

// invalidPolicies are policies that the CRD of an older release may have accepted, each with a part of
// the message of condition Ready.
var invalidPolicies = []struct {
	message string
	change  func(*v1alpha1.ResourceSlack)
}{
	{"spec.minRate", func(p *v1alpha1.ResourceSlack) { p.Spec.MinRate = "NaN" }},
	{"spec.minRate", func(p *v1alpha1.ResourceSlack) { p.Spec.MinRate = "-5%" }},
	{"spec.minRate", func(p *v1alpha1.ResourceSlack) { p.Spec.MinRate = "" }},
	{"less than 100%", func(p *v1alpha1.ResourceSlack) { p.Spec.MinRate, p.Spec.Base = "100%", v1alpha1.BaseAllocatable }},
	{"spec.granularity", func(p *v1alpha1.ResourceSlack) { p.Spec.Granularity = new(int32(0)) }},
	{"spec.maxPlaceholders", func(p *v1alpha1.ResourceSlack) { p.Spec.MaxPlaceholders = new(int32(-1)) }},
	{"spec.base", func(p *v1alpha1.ResourceSlack) { p.Spec.Base = "Used" }},
	{"spec.backend", func(p *v1alpha1.ResourceSlack) { p.Spec.Backend = "Unknown" }},
	{"metadata.name", func(p *v1alpha1.ResourceSlack) { p.Name = strings.Repeat("long-", 12) + p.Name }},
	{"metadata.name", func(p *v1alpha1.ResourceSlack) { p.Name = strings.Repeat("long-", 20) + p.Name }},
}

// invalidObject returns the i-th invalid object: most are policies; others are buffers with the label of a
// policy that the controller did not write, buffers of policies that do not exist, pods on nodes that do
// not exist, and nodes without allocatable resources.
func invalidObject(i int) client.Object {
	switch i % 20 {
	case 0, 1, 2:
		return orphanBuffer(fmt.Sprint("good-invalid-", i), "good")
	case 3, 4, 5:
		return orphanBuffer(fmt.Sprint("orphan-", i), fmt.Sprint("nonexistent-", i))
	case 6:
		return runningPod(fmt.Sprint("lost-", i), "nowhere", "7Ei", "7Ei")
	case 7:
		return &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("empty-", i), Labels: map[string]string{"pool": "general"}}}
	}
	policy := policyOf(fmt.Sprint("invalid-", i), "10%", nil)
	policy.Spec.Default()
	invalidPolicies[i%len(invalidPolicies)].change(policy)
	return policy
}

// orphanBuffer returns a buffer with the label of a policy and without a template.
func orphanBuffer(name, policy string) *unstructured.Unstructured {
	buffer := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"podTemplateRef": map[string]any{"name": "nothing"},
		"replicas":       int64(1_000_000),
	}}}
	buffer.SetGroupVersionKind(slack.CapacityBufferVersion.WithKind("CapacityBuffer"))
	buffer.SetName(name)
	buffer.SetNamespace(systemNamespace)
	buffer.SetLabels(map[string]string{slack.PlaceholderLabel: policy})
	return buffer
}

// TestSlackWithInvalidObjects starts the controller with thousands of invalid objects and a CRD without
// validation. It checks that a valid policy is soon Ready, every invalid one has the error in its
// conditions, and labeled objects that belong to no plan are deleted. Set PLIMSOLL_BROKEN=10000 for the
// documented number; it takes about two minutes on two cores.
func TestSlackWithInvalidObjects(t *testing.T) {
	t.Parallel()
	number := 2_000
	if text, ok := os.LookupEnv("PLIMSOLL_BROKEN"); ok {
		var err error
		if number, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	c := startClusterWithCRDs(t, laxCRD(t), buffersCRD(t))
	c.create(t, readyNode("node-0", "64", "256Gi", map[string]string{"pool": "general"}))
	c.fill(t, "pod-", 40, 1, "node-")
	start := time.Now()
	var creating sync.WaitGroup
	const workers = 16
	for worker := range workers {
		creating.Go(func() {
			for i := worker; i < number; i += workers {
				if err := c.client.Create(t.Context(), invalidObject(i)); err != nil {
					t.Errorf("%d: %v", i, err)
					return
				}
			}
		})
	}
	creating.Wait()
	// Objects that look like those of the policy, and unmanaged ones.
	for i := range 20 {
		name := fmt.Sprint("good-outdated-", i)
		c.create(t, orphanBuffer(name, "good"))
		c.create(t, &v1.PodTemplate{
			ObjectMeta: metav1.ObjectMeta{
				Name: name, Namespace: systemNamespace,
				Labels: map[string]string{slack.PlaceholderLabel: "good"},
			},
			Template: v1.PodTemplateSpec{Spec: runningPod("", "", "1", "2Gi").Spec},
		})
	}
	unmanaged := orphanBuffer("unmanaged", "good")
	unmanaged.SetLabels(nil)
	c.create(t, unmanaged)
	elsewhere := orphanBuffer("elsewhere", "good")
	elsewhere.SetNamespace("default")
	c.create(t, elsewhere)
	t.Logf("%d invalid objects created in %.1f s", number, time.Since(start).Seconds())

	buffers := c.recordChanges(t, slack.CapacityBufferVersion.WithKind("CapacityBuffer"))
	start = time.Now()
	controller := c.startController(t, "--leader-elect=false")
	c.create(t, policyOf("good", "10%", inPool("general")))
	c.awaitCondition(t, controller, "good", v1alpha1.ConditionReady, "Held")
	t.Logf("the valid policy was ready %.1f s after the start", time.Since(start).Seconds())
	// pollSlowly polls every two seconds, because the lists are long.
	pollSlowly := func(failure string, condition func(context.Context) (bool, error)) {
		t.Helper()
		if err := wait.PollUntilContextTimeout(t.Context(), 2*time.Second, 3*time.Minute, true, condition); err != nil {
			t.Fatalf("%s: %v\n%.5000s", failure, err, controller)
		}
	}
	var policies int
	pollSlowly("invalid policies have no conditions", func(ctx context.Context) (bool, error) {
		var list v1alpha1.ResourceSlackList
		err := c.client.List(ctx, &list)
		policies = len(list.Items)
		unreported := slices.ContainsFunc(list.Items, func(p v1alpha1.ResourceSlack) bool { return p.Name != "good" && !isReported(t, p) })
		return !unreported, err
	})
	t.Logf("%d invalid policies were reported %.1f s after the start", policies-1, time.Since(start).Seconds())
	want := "[CapacityBuffer elsewhere CapacityBuffer good-head CapacityBuffer good-rate CapacityBuffer unmanaged]"
	var got string
	pollSlowly("other buffers remain", func(ctx context.Context) (bool, error) {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(slack.CapacityBufferVersion.WithKind("CapacityBufferList"))
		err := c.client.List(ctx, list)
		var names []string
		for i := range list.Items {
			names = append(names, "CapacityBuffer "+list.Items[i].GetName())
		}
		got = fmt.Sprint(names)
		return got == want, err
	})
	t.Logf("other buffers were deleted %.1f s after the start, peak memory of the controller %s", time.Since(start).Seconds(),
		controller.PeakMemory(t))
	for _, change := range buffers.changes() {
		if !strings.HasPrefix(change, "DELETED ") && change != "ADDED good-head" && change != "ADDED good-rate" {
			t.Errorf("a buffer was written: %s", change)
		}
	}
	// Invalid policies can be deleted.
	for i := range 2 {
		deleted := policyOf(fmt.Sprint("invalid-", 8+i+10), "", nil)
		deleted.Name = strings.Repeat("long-", []int{12, 20}[i]) + deleted.Name
		if err := c.client.Delete(t.Context(), deleted); err != nil {
			t.Error(err)
		}
	}
	c.awaitCondition(t, controller, "good", v1alpha1.ConditionReady, "Held")
	if strings.Contains(controller.String(), "panic") || strings.Contains(controller.String(), "Reconciler error") {
		t.Errorf("the controller logged an error:\n%.5000s", controller)
	}
}

// isReported reports whether an invalid policy has condition Ready, and checks its message.
func isReported(t *testing.T, policy v1alpha1.ResourceSlack) bool {
	ready := meta.FindStatusCondition(policy.Status.Conditions, v1alpha1.ConditionReady)
	if ready == nil {
		return false
	}
	i, err := strconv.Atoi(policy.Name[strings.LastIndex(policy.Name, "-")+1:])
	if message := invalidPolicies[i%len(invalidPolicies)].message; err != nil || ready.Reason != "InvalidPolicy" ||
		!strings.Contains(ready.Message, message) {
		t.Errorf("%s: %s %q, want %s", policy.Name, ready.Reason, ready.Message, message)
	}
	return true
}
