package demo_test

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/demo"
	"github.com/plimsoll-k8s/plimsoll/internal/demo/node"
	"github.com/plimsoll-k8s/plimsoll/internal/demo/slack"
	"github.com/plimsoll-k8s/plimsoll/internal/embedded/controlplane"
	"github.com/plimsoll-k8s/plimsoll/internal/kube"
	"github.com/plimsoll-k8s/plimsoll/test/support/eventually"
)

func TestMain(m *testing.M) {
	controlplane.RunIfChild()
	ctrl.SetLogger(klog.NewKlogr())
	os.Exit(m.Run())
}

// TestDemos runs all scenarios of the three demos in one environment.
func TestDemos(t *testing.T) {
	load, err := node.StartService(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	env, err := demo.Start(t.Context(), load.Arguments(), func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(env.Stop)
	nodes := node.New(env, load)
	for _, s := range node.Scenarios {
		for _, profile := range []string{demo.DefaultProfile, s.Profile} {
			t.Run(s.Name+"/"+profile, func(t *testing.T) { testScenario(t, nodes, s, profile) })
		}
	}
	slacks := slack.New(env, nil, io.Discard)
	t.Cleanup(slacks.Stop)
	// Not subtests: the controllers run until the context of the test ends.
	testSlack(t, slacks)
	testFleet(t, env)
	t.Run("playground", func(t *testing.T) { testPlayground(t, env, nodes, slacks) })
}

// testScenario expects the results of a scenario, with the real API server and scheduler, and that
// the what-if engine has predicted them.
func testScenario(t *testing.T, nodes *node.Demo, s node.Scenario, profile string) {
	results, err := nodes.Run(t.Context(), s, profile)
	if err != nil {
		t.Fatal(err)
	}
	if err := demo.Check(results); err != nil {
		t.Error(err)
	}
	for i, decision := range nodes.Decisions()[:len(results)] {
		r := results[len(results)-1-i]
		predicted := decision.Scores.Selected
		if predicted == "" {
			predicted = demo.Pending
		}
		if r.Want != demo.Any && predicted != r.Node {
			t.Errorf("%s: predicted %s, is on %s: %s", r.Pod, predicted, r.Node, decision.Scores.Reason(decision.Node))
		}
	}
}

// testSlack expects the same states with the stand-in each time: 8 pods fill two nodes of 4 CPUs. The
// slack of 50 % of 8 is 4, one more node, which the burst of 4 fills; 50 % of 12 is 6, two more. 25 %
// of 8 is 2, one node.
func testSlack(t *testing.T, d *slack.Demo) {
	results, err := d.Run(t.Context(), func(text string) { t.Log(text) })
	if err != nil {
		t.Fatal(err)
	}
	if err := demo.Check(results); err != nil {
		t.Error(err)
	}
	type step struct {
		target, available string
		placeholders      int64
		nodes             int
	}
	var steps []step
	waited := map[string][]float64{}
	for _, r := range results {
		if r.Slack == nil {
			waited[r.Profile] = append(waited[r.Profile], r.Seconds)
			continue
		}
		steps = append(steps, step{r.Slack.Target, r.Slack.Available, r.Slack.Placeholders, r.Slack.Nodes})
	}
	want := []step{
		{"0", "0", 0, 2}, // the web service
		{"0", "0", 0, 3}, // the burst without slack
		{"4", "4", 4, 3}, // the policy
		{"4", "0", 4, 3}, // the burst with slack
		{"6", "8", 6, 5}, // the slack is refilled
		{"4", "8", 6, 4}, // the burst is deleted
		{"2", "4", 2, 3}, // the policy with a lower rate
	}
	if !slices.Equal(steps, want) {
		t.Errorf("steps %v, want %v", steps, want)
	}
	without, with := waited[slack.WithoutSlack], waited[slack.WithSlack]
	if len(without) != 4 || len(with) != 4 || slices.Max(with) >= slices.Min(without) {
		t.Errorf("pods waited %v without slack, %v with slack", without, with)
	}
}

// testPlayground expects that the example policy gets a node from the autoscaler: its pool has two full
// nodes, and 10 % of 8 CPUs and 16Gi are one placeholder of the size of a pod.
func testPlayground(t *testing.T, env *demo.Environment, nodes *node.Demo, slacks *slack.Demo) {
	ctx := t.Context()
	if err := errors.Join(nodes.Play(ctx), slacks.Play(ctx), nodes.Watch(ctx)); err != nil {
		t.Fatal(err)
	}
	// The pods that the demo itself has created are not those of the user.
	if decisions := nodes.Decisions(); len(decisions) > 0 {
		t.Errorf("the decision on %s is shown as one of the user", decisions[0].Scores.Name)
	}
	general := func() (names []string) {
		all, _, err := env.State(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range all {
			if n.Labels["pool"] == "general" {
				names = append(names, n.Name)
			}
		}
		return names
	}
	if names := general(); len(names) != 2 {
		t.Fatalf("nodes %q, want 2", names)
	}
	manifest, err := os.ReadFile("../../examples/slack/policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	policy := &v1alpha1.ResourceSlack{}
	if err := yaml.UnmarshalStrict(manifest, policy); err != nil {
		t.Fatal(err)
	}
	api, err := client.New(env.Access, client.Options{Scheme: kube.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	if err := api.Create(ctx, policy); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "the policy gets no node", nil, func(ctx context.Context) (bool, error) {
		err := api.Get(ctx, client.ObjectKeyFromObject(policy), policy)
		return meta.IsStatusConditionTrue(policy.Status.Conditions, v1alpha1.ConditionReady) && len(general()) == 3, err
	})
	if got := policy.Status; got.Placeholders != 1 || got.Target.Cpu().String() != "800m" {
		t.Errorf("the policy has the status %+v", got)
	}
	var buffers unstructured.UnstructuredList
	buffers.SetAPIVersion("autoscaling.x-k8s.io/v1beta1")
	buffers.SetKind("CapacityBufferList")
	if err := api.List(ctx, &buffers); err != nil || len(buffers.Items) != 1 {
		t.Fatal(buffers, err)
	}
	replicas, _, _ := unstructured.NestedInt64(buffers.Items[0].Object, "status", "replicas")
	if conditions, _, _ := unstructured.NestedSlice(
		buffers.Items[0].Object,
		"status",
		"conditions",
	); replicas != 1 ||
		len(conditions) != 2 {
		t.Errorf("the stand-in reports %v", buffers.Items[0].Object["status"])
	}
}

func TestCheck(t *testing.T) {
	pod := demo.Result{Scenario: slack.Scenario, Pod: "burst-1", Node: "general-9", Want: "an existing node"}
	step := demo.Result{Scenario: slack.Scenario, Want: "no more nodes", Slack: &demo.SlackStep{Step: "the same burst", Nodes: 4}}
	placement := demo.Result{Scenario: "fleet", Want: "cluster2, cluster4", Fleet: &demo.FleetStep{Story: "3-follow", Placement: "follow"}}
	good := demo.Result{Scenario: slack.Scenario, OK: true}
	for _, bad := range []demo.Result{pod, step, placement} {
		if err := demo.Check(
			[]demo.Result{good, bad, good},
		); !errors.Is(err, demo.ErrUnexpected) ||
			!strings.Contains(err.Error(), bad.Want) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	if err := demo.Check([]demo.Result{good}); err != nil {
		t.Error(err)
	}
}
