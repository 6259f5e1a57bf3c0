//go:build foreign

package servers

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/yaml"

	"github.com/plimsoll-k8s/plimsoll/api/config"
	"github.com/plimsoll-k8s/plimsoll/internal/demo"
	"github.com/plimsoll-k8s/plimsoll/internal/demo/fleet"
	"github.com/plimsoll-k8s/plimsoll/internal/demo/node"
	slackdemo "github.com/plimsoll-k8s/plimsoll/internal/demo/slack"
	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/load/wire"
	"github.com/plimsoll-k8s/plimsoll/test/support/eventually"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
	"github.com/plimsoll-k8s/plimsoll/test/support/program"
	"github.com/plimsoll-k8s/plimsoll/test/support/testcluster"
)

// scenarioLoadAge is the maximum age of load in the scenarios: its timestamp is in whole seconds, and it
// passes through a file and the load-watcher, which reads it every second.
const scenarioLoadAge = 10 * time.Second

// valuesOfScenarios returns chart values with the scheduler profiles of the scenarios and a load-watcher
// that reads a file. The node selector of the pods of the release matches no node, because the scenarios
// require all CPU of their nodes.
func valuesOfScenarios(t *testing.T, loadFile string) string {
	t.Helper()
	noNode := map[string]any{"node-role.kubernetes.io/control-plane": ""}
	profiles := demo.Profiles("watcherAddress: http://plimsoll-load-watcher."+testcluster.SystemNamespace+":2020", scenarioLoadAge)
	values, err := yaml.Marshal(map[string]any{
		"crds":       map[string]any{"fleet": true},
		"scheduler":  map[string]any{"config": profiles, "nodeSelector": noNode},
		"controller": map[string]any{"controllers": []string{"slack", "placement"}, "adopt": "all", "nodeSelector": noNode},
		"loadWatcher": map[string]any{
			"enabled": true, "pollInterval": "1s", "maxAge": scenarioLoadAge.String(), "nodeSelector": noNode,
			"extraArgs": []string{"--provider=File", "--address=" + loadFile},
		},
	})
	must.Succeed(t, err)
	return string(values)
}

// TestChartRunsTheScenarios installs the chart with Helm and runs all components as processes with their
// service accounts, arguments and configuration. Each scenario of the demo has the same results as there.
func TestChartRunsTheScenarios(t *testing.T) {
	cp, access, kube := testcluster.StartControlPlane(t, testcluster.BuffersCRD(t))
	feed := &fileFeed{path: filepath.Join(t.TempDir(), "load.json")}
	r := newRelease(t, cp, access, kube, valuesOfScenarios(t, feed.path))
	r.helmed(t, "install", "plimsoll", r.helm.Chart, "--values="+r.values)

	feed.start(t)
	address, watcher := r.startWatcher(t)
	file, port, scheduler := r.startScheduler(t, address)
	controller := r.startController(t)
	feed.watcher, feed.pages = address, testcluster.SchedulerPages(t, access, port)
	for _, c := range []releaseComponent{scheduler, controller} {
		eventually.True(t, c.name+" is not the leader", c, func(ctx context.Context) (bool, error) {
			lease, err := kube.CoordinationV1().Leases(testcluster.SystemNamespace).Get(ctx, "plimsoll-"+c.name, metav1.GetOptions{})
			return err == nil && lease.Spec.HolderIdentity != nil && *lease.Spec.HolderIdentity != "", nil
		})
	}
	configuration, err := config.Load(file)
	must.Succeed(t, err)
	env, err := demo.Attach(t.Context(), access, configuration)
	must.Succeed(t, err)
	defer env.Stop()

	nodes := node.New(env, feed)
	for _, s := range node.Scenarios {
		for _, profile := range []string{demo.DefaultProfile, s.Profile} {
			t.Run(s.Name+"/"+profile, func(t *testing.T) {
				results, err := nodes.Run(t.Context(), s, profile)
				checkResults(t, results, err)
				checkPredictions(t, results, nodes.Decisions())
			})
		}
	}
	t.Run(slackdemo.Scenario, func(t *testing.T) {
		results, err := slackdemo.New(env).Run(t.Context(), func(text string) { t.Log(text) })
		checkResults(t, results, err)
		checkSlackSteps(t, results)
	})
	t.Run(fleet.Scenario, func(t *testing.T) {
		results, err := fleet.New(env).Run(t.Context(), func(string) {})
		checkResults(t, results, err)
		checkDecisionTimes(t, results)
	})
	if t.Failed() {
		t.Logf("scheduler log:\n%s\ncontroller log:\n%s", scheduler, controller)
	}
	for _, c := range []releaseComponent{controller, scheduler, watcher} {
		c.stop(t)
	}
}

// checkResults expects the results of a scenario.
func checkResults(t *testing.T, results []demo.Result, err error) {
	t.Helper()
	for _, result := range results {
		t.Log(result.Summary())
	}
	must.Succeed(t, err)
	if err := demo.Check(results); err != nil || len(results) == 0 {
		t.Errorf("%d results: %v", len(results), err)
	}
}

// checkPredictions expects that the what-if engine has predicted the results, whose decisions are the newest.
func checkPredictions(t *testing.T, results []demo.Result, decisions []node.Decision) {
	t.Helper()
	for i, decision := range decisions[:len(results)] {
		r := results[len(results)-1-i]
		if predicted := cmp.Or(decision.Scores.Selected, demo.Pending); r.Want != demo.Any && predicted != r.Got {
			t.Errorf("%s: predicted %s, is on %s: %s", r.Object, predicted, r.Got, decision.Scores.Reason(decision.Node))
		}
	}
}

// checkSlackSteps expects the states of the cluster in the slack scenario: 8 pods fill two nodes of 4 CPUs. The recommended slack is as
// large as the burst, one more node, in five placeholders: its memory is rounded up to more than four pods request.
func checkSlackSteps(t *testing.T, results []demo.Result) {
	t.Helper()
	var steps []string
	for _, r := range results {
		if strings.HasPrefix(r.Got, "target ") {
			steps = append(steps, r.Got)
		}
	}
	want := []string{
		"target 0, available 0, 0 placeholders, 2 nodes", // the web service
		"target 0, available 0, 0 placeholders, 3 nodes", // the burst without slack
		"target 4, available 4, 4 placeholders, 3 nodes", // the policy
		"target 4, available 0, 4 placeholders, 3 nodes", // the burst with slack
		"target 4, available 4, 4 placeholders, 4 nodes", // the slack is refilled
	}
	if !slices.Equal(steps, want) {
		t.Errorf("steps %q, want %q", steps, want)
	}
}

// checkDecisionTimes expects that decisions follow changes of the fleet soon. It checks the median, because single decisions may be
// delayed by a short overload of the machine.
func checkDecisionTimes(t *testing.T, results []demo.Result) {
	t.Helper()
	var times []float64
	for _, r := range results {
		if r.Seconds > 0 {
			times = append(times, r.Seconds)
		}
	}
	slices.Sort(times)
	if len(times) == 0 || times[len(times)/2] > fleet.FollowsWithin.Seconds() {
		t.Errorf("decisions took %v s", times)
	}
}

// fileFeed is a load source: it writes a file repeatedly, as a monitoring system would. The
// load-watcher reads the file, and the scheduler reads the load-watcher.
type fileFeed struct {
	path, watcher string
	// pages reads a page of the scheduler.
	pages func(ctx context.Context, path string) (string, error)

	mu   sync.Mutex
	feed node.Measurements // nil for none
}

// start writes the file until the end of the test, at first with the load of an unknown node.
func (f *fileFeed) start(t *testing.T) {
	t.Helper()
	f.feed = node.Measurements{"none": {CPU: load.Utilization{Mean: 0.5}, HasCPU: true}}
	must.Succeed(t, f.write())
	ended := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer close(ended)
		ticker := time.NewTicker(200 * time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			if err := f.write(); err != nil {
				t.Error(err)
				return
			}
		}
	}()
	t.Cleanup(func() { cancel(); <-ended })
}

// write replaces the file with the current load. Without load it keeps the file.
func (f *fileFeed) write() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.feed == nil {
		return nil
	}
	message, err := f.feed.Encode(time.Now())
	if err != nil {
		return err
	}
	if err := os.WriteFile(f.path+".new", message, 0o600); err != nil {
		return err
	}
	return os.Rename(f.path+".new", f.path)
}

// Set implements node.LoadSource.
func (f *fileFeed) Set(ctx context.Context, feed node.Measurements) error {
	f.mu.Lock()
	f.feed = feed
	changed := time.Now()
	f.mu.Unlock()
	if feed == nil {
		return f.await(ctx, "load to be too old", func(ctx context.Context) (bool, error) {
			degraded, err := f.metric(ctx, "plimsoll_load_degraded")
			return degraded == 1, err
		})
	}
	// Earlier messages have a timestamp of the same second at most.
	err := f.await(ctx, "the load-watcher to serve the load", func(ctx context.Context) (bool, error) {
		return f.Reading(ctx).Time.Unix() > changed.Unix(), nil
	})
	if err != nil {
		return err
	}
	const reads = "plimsoll_load_reads_total"
	before, err := f.metric(ctx, reads)
	if err != nil {
		return err
	}
	// The first of two reads may have begun before the change.
	return f.await(ctx, "the scheduler to read the load", func(ctx context.Context) (bool, error) {
		now, err := f.metric(ctx, reads)
		return now >= before+2, err
	})
}

// Reading implements node.LoadSource.
func (f *fileFeed) Reading(ctx context.Context) load.Reading {
	message, err := program.Get(ctx, f.watcher+"/watcher")
	if err != nil {
		return load.Reading{}
	}
	reading, err := wire.Decode(strings.NewReader(message))
	if err != nil {
		return load.Reading{}
	}
	return reading
}

// metric returns the value of a load metric of the scheduler, which has one load source.
func (f *fileFeed) metric(ctx context.Context, name string) (float64, error) {
	page, err := f.pages(ctx, "/metrics")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, name+"{") {
			return strconv.ParseFloat(strings.TrimSpace(line[strings.LastIndex(line, " "):]), 64)
		}
	}
	return 0, fmt.Errorf("the scheduler has no metric %s", name)
}

// await polls a condition for up to eventually.Limit.
func (f *fileFeed) await(ctx context.Context, what string, condition wait.ConditionWithContextFunc) error {
	if err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, eventually.Limit, true, condition); err != nil {
		return fmt.Errorf("waiting for %s: %w", what, err)
	}
	return nil
}
