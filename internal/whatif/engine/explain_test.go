package engine

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	internalconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"

	"github.com/plimsoll-k8s/plimsoll/api/config"
	"github.com/plimsoll-k8s/plimsoll/internal/manifest"
	"github.com/plimsoll-k8s/plimsoll/load"
	_ "github.com/plimsoll-k8s/plimsoll/plugins" // registers the arguments of the plugins
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
	"github.com/plimsoll-k8s/plimsoll/test/support/schedtest"
)

// schedulers returns the configuration of a scheduler with the profiles of two schedulers.
func schedulers(t *testing.T, profiles ...string) Scheduler {
	t.Helper()
	text := "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n"
	for _, name := range profiles {
		text += "- schedulerName: " + name + "\n"
		if strings.Contains(name, "limits") {
			text += "  plugins: {score: {disabled: [{name: \"*\"}], enabled: [{name: NodeResourcesLimits, weight: 1}]}}\n"
		}
	}
	cfg, err := config.Decode("scheduler.yaml", []byte(text))
	must.Succeed(t, err)
	return Scheduler{Config: cfg, Source: "scheduler.yaml"}
}

// TestProfile checks that a pod is evaluated with the profile that it names, and that there is a
// warning if that profile is unknown.
func TestProfile(t *testing.T) {
	const unknown = `the profile of scheduler "other" is unknown: evaluated with profile `
	for name, tc := range map[string]struct {
		profiles         []string
		set              func(*Scheduler)
		pod              string
		want             string
		warning, problem string
	}{
		"the profile that the pod names": {profiles: []string{"a", "b"}, pod: "b", want: "b"},
		"no name is default-scheduler":   {profiles: []string{"a", v1.DefaultSchedulerName}, want: v1.DefaultSchedulerName},
		"the only one":                   {profiles: []string{"a"}, pod: "other", want: "a", warning: unknown + "a of scheduler.yaml; "},
		"none of several": {
			profiles: []string{"a", "b"}, pod: "other",
			problem: `scheduler.yaml has no profile for spec.schedulerName "other": --scheduler-name must be one of a, b`,
		},
		"selected":    {profiles: []string{"a", "b"}, set: func(s *Scheduler) { s.ProfileName = "a" }, pod: "other", want: "a"},
		"for any pod": {profiles: []string{"a"}, set: func(s *Scheduler) { s.AnyPod = true }, pod: "other", want: "a"},
		"selected, wrong": {
			profiles: []string{"a"}, set: func(s *Scheduler) { s.ProfileName = "b" },
			problem: `--scheduler-name: invalid value "b": must be one of a, the profiles of scheduler.yaml`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			scheduler := schedulers(t, tc.profiles...)
			if tc.set != nil {
				tc.set(&scheduler)
			}
			profile, err := scheduler.ProfileOf(&v1.Pod{Spec: v1.PodSpec{SchedulerName: tc.pod}})
			if tc.problem != "" {
				if err == nil || !strings.Contains(err.Error(), tc.problem) {
					t.Errorf("error %v, want %s", err, tc.problem)
				}
				return
			}
			if err != nil || profile.SchedulerName != tc.want || profile.Source != "scheduler.yaml" {
				t.Errorf("profile %+v, %v, want %s", profile, err, tc.want)
			}
			if warning := scheduler.Warning(profile); !strings.HasPrefix(warning, tc.warning) || (warning == "") != (tc.warning == "") {
				t.Errorf("warning %q, want %q", warning, tc.warning)
			}
		})
	}
}

// TestPod checks that a pod is evaluated with the profile that it names, without the pod itself.
func TestPod(t *testing.T) {
	objects, err := manifest.Read([]string{"../../../examples/limits/cluster.yaml"}, nil)
	must.Succeed(t, err)
	pending := objects.Pending[0]
	scheduler := schedulers(t, v1.DefaultSchedulerName, "plimsoll-limits")
	for name, want := range map[string]string{v1.DefaultSchedulerName: "node1", "plimsoll-limits": "node2"} {
		pod := pending.DeepCopy()
		pod.Spec.SchedulerName = name
		e, err := Pod(t.Context(), State{Objects: objects}, scheduler, pod)
		if err != nil || e.Selected != want || e.Profile.SchedulerName != name || e.Node != "" ||
			!strings.HasPrefix(e.Reason, "The scheduler would select "+want) {
			t.Errorf("scheduler %s: %+v, %v, want %s", name, e, err, want)
		}
		bound := pod.DeepCopy()
		bound.Spec.NodeName = want
		with := *objects
		with.Running = append(slices.Clip(with.Running), bound)
		again, err := Pod(t.Context(), State{Objects: &with}, scheduler, bound)
		if err != nil || !again.Stays || again.Scores.Nodes[0].Total != e.Scores.Nodes[0].Total {
			t.Errorf("scheduler %s, with a node: %+v, %v, want the same scores as without", name, again, err)
		}
	}
}

// TestPodHasItsUsage explains a pod without a request that runs for two minutes and uses 40m, in a cluster of constant pods that use 20m
// of 8 cores: it is expected to use what it uses, and its node, without it, what the others use.
func TestPodHasItsUsage(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	objects := &manifest.Objects{Nodes: []*v1.Node{node("a", "8"), node("b", "8")}}
	usage := &load.PodReading{Time: now, Window: 15 * time.Second}
	for i := range 20 {
		pod := schedtest.Pod(fmt.Sprint("p", i), []string{"a", "b"}[i%2], schedtest.Amounts(), schedtest.Amounts())
		pod.CreationTimestamp = metav1.NewTime(now.Add(-2 * time.Minute))
		pod.Status.Conditions = []v1.PodCondition{
			{Type: v1.PodScheduled, Status: v1.ConditionTrue, LastTransitionTime: pod.CreationTimestamp},
		}
		objects.Running = append(objects.Running, pod)
		used := load.PodUsage{Namespace: pod.Namespace, Name: pod.Name, CPU: 20, Memory: 20 << 20}
		if i == 0 {
			used.CPU = 40
		}
		usage.Pods = append(usage.Pods, used)
	}
	reading := &load.Reading{Time: now, Window: 15 * time.Second, Nodes: map[string]load.Node{
		"a": {CPU: load.Utilization{Mean: 220.0 / 8000}, HasCPU: true}, "b": {CPU: load.Utilization{Mean: 200.0 / 8000}, HasCPU: true},
	}}
	profile, err := ReadConfig("predicted")
	must.Succeed(t, err)
	cfg, err := profile.Config()
	must.Succeed(t, err)
	state := State{Objects: objects, Load: reading, Usage: usage, Now: now}
	e, err := Pod(t.Context(), state, Scheduler{Config: cfg, Source: "predicted"}, objects.Running[0])
	must.Succeed(t, err)
	if got := e.Scores.Expected["PredictedUtilization"]; !strings.HasPrefix(got, "CPU 0.04 cores (as 1 pod of ") {
		t.Errorf("expected %s", got)
	}
	for _, n := range e.Scores.Nodes {
		if why := n.Plugins["PredictedUtilization"].Why; !strings.Contains(why, " of 8.00 cores: 0.2") &&
			!strings.Contains(why, " of 8.00 cores: 0.1") {
			t.Errorf("%s: %s, want about 0.18 on a and 0.2 on b", n.Name, why)
		}
	}
}

// TestEngineErrors checks that the error of an invalid configuration names it.
func TestEngineErrors(t *testing.T) {
	for want, change := range map[string]func(*internalconfig.Plugins){
		`ScorePlugin "Other" does not exist`: func(p *internalconfig.Plugins) {
			p.Score.Enabled = []internalconfig.Plugin{{Name: "Other"}}
		},
		`plugin "NodeResourcesLimits" does not extend FilterPlugin plugin`: func(p *internalconfig.Plugins) {
			p.Filter.Enabled = []internalconfig.Plugin{{Name: "NodeResourcesLimits"}}
		},
		`only one queue sort plugin required for profile with scheduler name "a", but got 0`: func(p *internalconfig.Plugins) {
			p.QueueSort.Disabled = []internalconfig.Plugin{{Name: "*"}}
		},
	} {
		scheduler := schedulers(t, "a")
		change(scheduler.Config.Profiles[0].Plugins)
		_, err := State{Objects: &manifest.Objects{}}.Engine(t.Context(), scheduler)
		if err == nil || !strings.HasPrefix(err.Error(), "scheduler.yaml: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

// TestReasonOfAnotherNode expects that the best node is compared with the node of the pod, not with the next best.
func TestReasonOfAnotherNode(t *testing.T) {
	e := Explanation{Node: "c", Selected: "a"}
	for name, total := range map[string]int64{"a": 88, "b": 79, "c": 44} {
		e.Scores.Nodes = append(e.Scores.Nodes, NodeScores{
			Name: name, Total: total, Feasible: true, Plugins: map[string]PluginScore{"Fit": {Score: total, Raw: total, Weight: 1}},
		})
	}
	e.setReason(&v1.Pod{})
	if want := "It is on c, and a would be selected now: a scores 88, c scores 44: Fit +44 "; !strings.HasPrefix(e.Reason, want) {
		t.Errorf("%q, want %q", e.Reason, want)
	}
}

// TestHistory has a scheduler that measures a pod of a Deployment, which uses 300m, and another that continues with what it has learned,
// without pods: it knows the same about the workload, and expects of its next pod what that shows.
func TestHistory(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	profile, err := ReadConfig("predicted")
	must.Succeed(t, err)
	cfg, err := profile.Config()
	must.Succeed(t, err)
	pod := func(name, node string) *v1.Pod {
		p := schedtest.Pod(name, node, schedtest.Amounts(), schedtest.Amounts())
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "web", Controller: new(true)}}
		p.CreationTimestamp = metav1.NewTime(now.Add(-time.Hour))
		return p
	}
	running := pod("web-0", "a")
	running.Status.Conditions = []v1.PodCondition{
		{Type: v1.PodScheduled, Status: v1.ConditionTrue, LastTransitionTime: running.CreationTimestamp},
	}
	options := Options{
		Config: cfg,
		Clock:  func() time.Time { return now },
		Usage: &load.PodReading{Time: now, Window: time.Minute, Pods: []load.PodUsage{
			{Namespace: running.Namespace, Name: "web-0", CPU: 300, Memory: 1 << 30},
		}},
		Load: &load.Reading{
			Time:   now,
			Window: time.Minute,
			Nodes:  map[string]load.Node{"a": {CPU: load.Utilization{Mean: 0.0375}, HasCPU: true}},
		},
	}
	first, err := New(t.Context(), Cluster{Nodes: []*v1.Node{node("a", "8")}, Running: []*v1.Pod{running}}, options)
	must.Succeed(t, err)
	learned := first.History()
	if len(learned) != 1 || learned[0].Name != "web" || learned[0].CPU.Mean != 300 {
		t.Fatalf("learned %+v, want 300m of web", learned)
	}
	options.Usage, options.History = nil, learned
	second, err := New(t.Context(), Cluster{Nodes: []*v1.Node{node("a", "8")}}, options)
	must.Succeed(t, err)
	scores, err := second.Score(t.Context(), pod("web-1", ""), "")
	must.Succeed(t, err)
	if got := scores.Expected["PredictedUtilization"]; !strings.Contains(got, "as 1 pod of StatefulSet web") || len(second.History()) != 1 {
		t.Errorf("expected %s, known %+v", got, second.History())
	}
}
