package slack

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/cli/base"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
	"github.com/plimsoll-k8s/plimsoll/slack"
)

// TestRecommendationFitsTerminal checks the table, the message without need and without a solution on terminals of 80 columns.
func TestRecommendationFitsTerminal(t *testing.T) {
	outcome := func(wait int64, cost float64) slack.Outcome {
		waits := slack.Waits{0: 10, wait: 1}
		return slack.Outcome{Waits: waits, Cost: cost, Parts: []slack.Part{{Waits: waits, Cost: cost}}}
	}
	none := slack.Candidate{Name: "none", Outcome: outcome(129, 1_000_000)}
	policy := &v1alpha1.ResourceSlack{Spec: v1alpha1.ResourceSlackSpec{MinRate: "12%"}}
	rate := slack.Candidate{Name: "rate 12%", Policy: policy, Outcome: outcome(0, 1_200_000)}
	best := slack.Candidate{
		Name: "10 schedules up to 1234.5 CPU 1234.5Gi", Policy: policy, Outcome: outcome(0, 1_100_000),
	}
	limited := none
	limited.AtMaximum = true
	goal := &slack.Goal{Percent: 99.9, Wait: 5 * time.Second, Parts: 1}
	for want, found := range map[string]*slack.Recommendation{
		"It costs 1,100,000, 100,000 more than no slack; placeholders occupy nodes for 0. The cheapest rate that reaches the wait, rate 12%, " +
			"costs 1,200,000: the recommended policy costs 0.92 as much (0.92 to 0.92 in parts), and adds 0.50 as much": {
			None: none, Best: &best, Nearest: &best, Rate: &rate, Frontier: []slack.Candidate{none, best},
		},
		"no slack is needed: without slack the wait p99.9 is 2m9s": {None: none, Best: &none, Nearest: &none, Frontier: []slack.Candidate{none}},
		"no policy reaches p99.9=5s: nearest is none with a wait p99.9 of 2m9s; 1 of 11 pods waits longer than 5s, because the " +
			"autoscaler adds no more nodes than its maximum": {
			None: none, Nearest: &limited, Frontier: []slack.Candidate{none},
		},
		"no policy reaches p99.9=5s: nearest is none with a wait p99.9 of 2m9s; 1 of 11 pods waits longer": {
			None: none, Nearest: &none, Frontier: []slack.Candidate{none},
		},
	} {
		var out strings.Builder
		o := recommendOptions{wait: "p99.9=5s", output: base.Output{Format: base.FormatTable}}
		if err := o.print(&out, func(string) {}, goal, found, &recommendResult{Source: "test"}); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(out.String()) {
			if columns := len([]rune(line)) - 1; columns > 80 {
				t.Errorf("a line of %d columns: %s", columns, line)
			}
		}
		if words := strings.Join(strings.Fields(out.String()), " "); !strings.Contains(words, want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
		var wide strings.Builder
		o.output.Format = base.FormatWide
		if err := o.print(&wide, func(string) {}, goal, found, &recommendResult{Source: "test"}); err != nil {
			t.Fatal(err)
		}
		hasPolicy := found.Best != nil && found.Best.Policy != nil
		for _, text := range []string{out.String(), wide.String()} {
			if strings.Contains(text, "minRate: 12%") != hasPolicy {
				t.Errorf("policy %t in\n%s", !hasPolicy, text)
			}
		}
	}
}

// TestExampleOfGenerate expects that the example in the help of --generate is valid.
func TestExampleOfGenerate(t *testing.T) {
	_, example, _ := strings.Cut(newRecommendCommand().Flags().Lookup("generate").Usage, "such as ")
	if _, err := (&recording.Source{Generate: example}).Input(1, recording.Limits{}); err != nil {
		t.Error(err)
	}
}

// frontierOf returns the page of a recommendation.
func frontierOf(t interface{ Fatal(...any) }, goal *slack.Goal, found *slack.Recommendation) string {
	folder, err := os.MkdirTemp("", "frontier")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(folder) }()
	o := recommendOptions{
		wait: "p99=5s", autoscaler: "shape=16x64", output: base.Output{Format: base.FormatJSON},
		report: base.NewFile{Flag: "--report", Path: filepath.Join(folder, "page.html"), Mode: 0o644},
	}
	err = o.print(&strings.Builder{}, func(string) {}, goal, found, &recommendResult{Source: "<script>"})
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(o.report.Path)
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}

// TestFrontierPage checks the page of a frontier of no slack (cost 100, wait 120 s) and a minimum (cost 120, wait 0 s), beside a rate
// that costs 180 and is therefore not on the frontier.
//
//	cost  axis from 100 - 0.08 x 80 = 93.6 to 180 + 6.4 = 186.4, at y from 260 to 14: 100 is at 260 - 246 x 6.4 / 92.8 = 243.0,
//	      120 at 190.0, 180 at 31.0
//	wait  axis from 0 to 120 + 9.6 = 129.6, at x from 62 to 450: 0 is at 62, 120 at 62 + 388 x 120 / 129.6 = 421.3, the goal of
//	      5 s at 77.0
func TestFrontierPage(t *testing.T) {
	candidate := func(name string, wait int64, cost float64) slack.Candidate {
		waits := slack.Waits{wait: 10}
		c := slack.Candidate{Name: name, Outcome: slack.Outcome{Waits: waits, Cost: cost, Parts: []slack.Part{{Waits: waits, Cost: cost}}}}
		if name != "none" {
			c.Policy = &v1alpha1.ResourceSlack{Spec: v1alpha1.ResourceSlackSpec{MinRate: "7%"}}
		}
		return c
	}
	none, best, rate := candidate("none", 120, 100), candidate("minimum <b>", 0, 120), candidate("rate 9%", 0, 180)
	goal := &slack.Goal{Percent: 99, Wait: 5 * time.Second}
	found := &slack.Recommendation{
		None: none, Best: &best, Nearest: &best, Rate: &rate, Frontier: []slack.Candidate{none, best}, Simulated: 3,
	}
	page := frontierOf(t, goal, found)
	for _, want := range []string{
		`<path class="s2" d="M77 260V14"/>`, `<path class="s0" d="M421.3 243L62 190"/>`,
		`x="70" y="184">recommended</text>`, `x="70" y="25">cheapest rate</text>`,
		`style="fill:var(--card)" cx="421.3" cy="243"`, `style="fill:var(--ink)" cx="62" cy="190"`, `style="fill:var(--ink)" cx="62" cy="31"`,
		`<th scope="row">minimum &lt;b&gt;<br/><span class="v">recommended<`, `<th scope="row">rate 9%<br/><span class="v">cheapest rate<`,
		"&lt;script&gt;: 10 pods, 3 simulated policies, autoscaler shape=16x64.", "The goal is reached", "minRate: 7%", "wait p99, seconds",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Contains(page, "<script") || strings.Contains(page, "<b>") {
		t.Error("texts are not escaped")
	}
	page = frontierOf(t, goal, &slack.Recommendation{None: none, Nearest: &none, Frontier: []slack.Candidate{none}})
	if !strings.Contains(page, "The goal is not reached") || strings.Contains(page, ">recommended") || strings.Contains(page, "<pre>") {
		t.Error("the page without a solution has a recommendation")
	}
	// Coordinates are finite and labels within the chart for all costs and waits.
	label := regexp.MustCompile(`<text x="([-0-9.]+)" y="([-0-9.]+)">(recommended|cheapest)`)
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.Int64Range(0, 1_000_000)
		goal := &slack.Goal{Percent: 99, Wait: time.Duration(number.Draw(t, "goal")) * time.Second}
		cheap, dear := candidate("schedules", number.Draw(t, "wait"), float64(number.Draw(t, "cost"))), candidate("rate 9%", 0, 0)
		dear.Cost = cheap.Cost + float64(number.Draw(t, "more"))
		dear.Parts[0].Cost = dear.Cost
		page := frontierOf(t, goal, &slack.Recommendation{
			None: none, Best: &cheap, Nearest: &cheap, Rate: &dear, Frontier: []slack.Candidate{none, cheap},
		})
		labels := label.FindAllStringSubmatch(page, -1)
		if strings.Contains(page, "NaN") || strings.Contains(page, "Inf") || len(labels) != 2 {
			t.Fatal(page)
		}
		x, y := [2]float64{}, [2]float64{}
		for i, match := range labels {
			x[i], _ = strconv.ParseFloat(match[1], 64)
			y[i], _ = strconv.ParseFloat(match[2], 64)
		}
		if max(x[0], x[1]) > 430 || min(y[0], y[1]) < 8 || y[0]-y[1] < 12 {
			t.Fatalf("labels at %v, %v", x, y)
		}
	})
}

// recordBursts writes a recording of six hours with a node of each of two pools: bursts of four pods of 12 CPUs of Deployment shop/web on
// node general-0 every half hour, beside 20 pods of 12 CPUs that leave 4 CPUs of their nodes free in the first 150 minutes, and two pods
// on node gpu-0. Only mirrors reach a wait of 5 s for all pods, as in slack.TestRecommendMirrors.
func recordBursts(t *testing.T) string {
	r := recording.Recording{About: recording.About{
		From: time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC), To: time.Date(2026, 1, 5, 6, 0, 0, 0, time.UTC), Step: 60,
	}}
	list := func(cpu, memory string) v1.ResourceList {
		return v1.ResourceList{v1.ResourceCPU: resource.MustParse(cpu), v1.ResourceMemory: resource.MustParse(memory)}
	}
	for _, pool := range []string{"general", "gpu"} {
		node := recording.NewNode(pool+"-0", recording.Amounts(list("16", "64Gi")))
		node.Object.Labels["pool"] = pool
		r.Nodes = append(r.Nodes, node)
	}
	add := func(n int, owner, node string, created, ended int64) {
		for range n {
			pod := &v1.Pod{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: "shop", Name: fmt.Sprint(owner, len(r.Pods)), Labels: map[string]string{"pod-template-hash": "5d4f"},
					OwnerReferences: []metav1.OwnerReference{{
						APIVersion: "apps/v1", Kind: "ReplicaSet", Name: owner + "-5d4f", UID: "1", Controller: new(true),
					}},
				},
				Spec: v1.PodSpec{
					Containers: []v1.Container{{Name: "main", Resources: v1.ResourceRequirements{Requests: list("12", "48Gi")}}},
				},
			}
			r.Pods = append(r.Pods, recording.Pod{
				Object: pod, Created: created, Scheduled: created, Started: created, Ended: ended, Node: node + "-0",
			})
		}
	}
	add(20, "base", "general", -60, 9000)
	add(2, "train", "gpu", -60, recording.Never)
	for at := int64(605); at < 21600; at += 1800 {
		add(4, "web", "general", at, at+300)
	}
	var file bytes.Buffer
	if err := r.Write(&file); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "bursts.plrec")
	if err := os.WriteFile(path, file.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestRecommendMirrors checks mirrors in the table, the YAML, the JSON and the page, and that only the pool of the policy counts.
func TestRecommendMirrors(t *testing.T) {
	folder, path := t.TempDir(), recordBursts(t)
	policy := func(pool string) string {
		path := filepath.Join(folder, pool+".yaml")
		text := "apiVersion: plimsoll.dev/v1alpha1\nkind: ResourceSlack\nmetadata: {name: own}\nspec:\n  minRate: 5%\n" +
			"  pool: {nodeSelector: {pool: " + pool + "}}\n  mirrors: {maxPerNamespace: 50, namespaceSelector: {}}\n"
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	run := func(args ...string) (stdout, stderr string, err error) {
		var out, errOut strings.Builder
		cmd := newRecommendCommand()
		cmd.SilenceUsage, cmd.SilenceErrors = true, true
		cmd.SetOut(&out)
		cmd.SetErr(&errOut)
		cmd.SetArgs(append([]string{
			"--recording", path, "--autoscaler", "shape=16x64,boot=120,cost=1", "--wait", "p100=5s", "--parts", "1",
		}, args...))
		err = cmd.ExecuteContext(t.Context())
		return out.String(), errOut.String(), err
	}
	const annotate = "kubectl annotate --overwrite deployment web -n shop plimsoll.dev/slack=4"
	page := filepath.Join(folder, "page.html")
	out, warnings, err := run("--policy", policy("general"), "--report", page)
	const want = `apiVersion: plimsoll.dev/v1alpha1
kind: ResourceSlack
metadata:
  name: own
spec:
  coverBiggestPod: false
  minRate: 0%
  mirrors:
    maxPerNamespace: 50
    maxPerWorkload: 100
    namespaceSelector:
      matchExpressions:
      - key: kubernetes.io/metadata.name
        operator: In
        values:
        - shop
  pool:
    nodeSelector:
      pool: general
# Request the placeholders of the mirrors:
#   ` + annotate + "\n"
	if err != nil || !strings.HasSuffix(out, "\n\n"+want) || !strings.Contains(out, "\n4 mirrors of 1 workload ") ||
		!strings.Contains(out, "over 48 pods. ") || !strings.Contains(out, "\nrecommended: 4 mirrors of 1 workload. ") ||
		!strings.Contains(warnings, "2 of 70 pods are left out: outside of the pool of the policy") {
		t.Errorf("error %v, warnings %s, output\n%s", err, warnings, out)
	}
	if text, err := os.ReadFile(page); err != nil || !strings.Contains(string(text), annotate) {
		t.Errorf("the page lacks the annotation: %v\n%s", err, text)
	}
	if out, _, err := run("--policy", policy("general"), "-o", "yaml"); err != nil || out != want {
		t.Errorf("error %v, policy\n%s", err, out)
	}
	out, _, err = run("--policy", policy("general"), "-o", "json")
	var result struct {
		AnnotateCommands []string
		PodsOutsidePool  int
	}
	if err != nil || json.Unmarshal([]byte(out), &result) != nil || fmt.Sprint(result) != "{["+annotate+"] 2}" {
		t.Errorf("error %v, %+v", err, result)
	}
	// Without a policy, all nodes count.
	if _, warnings, err := run(); err != nil || strings.Contains(warnings, "left out") {
		t.Errorf("error %v, warnings %s", err, warnings)
	}
	_, _, err = run("--policy", policy("typo"))
	if err == nil ||
		!strings.Contains(
			err.Error(),
			"found no pod in the pool of policy own (nodeSelector: pool=typo; tolerations: 0), 70 pods outside of it",
		) {
		t.Error(err)
	}
}
