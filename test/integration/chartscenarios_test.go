package integration

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/yaml"

	"github.com/plimsoll-k8s/plimsoll/api/config"
	scenarios "github.com/plimsoll-k8s/plimsoll/internal/demo"
	"github.com/plimsoll-k8s/plimsoll/internal/embedded/controlplane"
	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/load/wire"
	"github.com/plimsoll-k8s/plimsoll/test/support/eventually"
)

// scenarioLoadAge is how old load may be in the scenarios: it is dated in whole
// seconds and passes through a file and the load-watcher, which reads it every
// second.
const scenarioLoadAge = 10 * time.Second

// valuesOfScenarios give the scheduler the profiles that the scenarios name, and
// the load-watcher a file to read. The release's own pods want a node that there is
// none of: those of the scenarios are full to the last CPU.
func valuesOfScenarios(t *testing.T, loadFile string) string {
	t.Helper()
	elsewhere := map[string]any{"node-role.kubernetes.io/control-plane": ""}
	profiles := scenarios.Profiles("watcherAddress: http://plimsoll-load-watcher."+systemNamespace+":2020", scenarioLoadAge)
	values, err := yaml.Marshal(map[string]any{
		"crds":       map[string]any{"fleet": true},
		"scheduler":  map[string]any{"config": profiles, "nodeSelector": elsewhere},
		"controller": map[string]any{"adopt": "all", "nodeSelector": elsewhere},
		"loadWatcher": map[string]any{
			"pollInterval": "1s", "maxAge": scenarioLoadAge.String(), "nodeSelector": elsewhere,
			"extraArgs": []string{"--provider=File", "--address=" + loadFile},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(values)
}

// The chart, installed by Helm, with all components as processes under their
// service accounts and with their arguments and configuration: every scenario of
// the demo comes to what it comes to there.
func TestChartRunsTheScenarios(t *testing.T) {
	t.Parallel()
	cp, access, kube := startControlPlane(t, controlplane.Options{})
	installCRDs(t, access, buffersCRD(t))
	feed := &fileFeed{path: filepath.Join(t.TempDir(), "load.json")}
	r := newRelease(t, cp, access, kube, valuesOfScenarios(t, feed.path))
	r.helmed(t, "install", "plimsoll", r.helm.Chart, "--values="+r.values)

	feed.start(t)
	address, watcher := r.startWatcher(t)
	file, port, scheduler := r.startScheduler(t, address)
	controller := r.startController(t)
	feed.watcher, feed.pages = address, schedulerPages(t, access, port)
	for _, c := range []releaseComponent{scheduler, controller} {
		eventually.True(t, c.name+" is not the leader", c, func(ctx context.Context) (bool, error) {
			lease, err := kube.CoordinationV1().Leases(systemNamespace).Get(ctx, "plimsoll-"+c.name, metav1.GetOptions{})
			return err == nil && lease.Spec.HolderIdentity != nil && *lease.Spec.HolderIdentity != "", nil
		})
	}
	configuration, err := config.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	d, err := scenarios.Attach(scenarios.Installed{Access: access, Scheduler: configuration, Load: feed})
	if err != nil {
		t.Fatal(err)
	}

	check := func(t *testing.T, results []scenarios.Result, err error) {
		t.Helper()
		for _, result := range results {
			t.Log(result.Profile, result.Summary())
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := scenarios.Check(results); err != nil || len(results) == 0 {
			t.Errorf("%d results: %v", len(results), err)
		}
	}
	for _, s := range scenarios.Scenarios {
		for _, profile := range []string{scenarios.DefaultProfile, s.Profile} {
			t.Run(s.Name+"/"+profile, func(t *testing.T) {
				results, err := d.Run(t.Context(), s, profile)
				check(t, results, err)
			})
		}
	}
	t.Run(scenarios.SlackScenario, func(t *testing.T) {
		results, err := d.RunSlack(t.Context(), func(text string) { t.Log(text) })
		check(t, results, err)
	})
	t.Run(scenarios.FleetScenario, func(t *testing.T) {
		results, err := d.RunFleet(t.Context(), func(string) {})
		check(t, results, err)
	})
	if t.Failed() {
		t.Logf("scheduler log:\n%s\ncontroller log:\n%s", scheduler, controller)
	}
	for _, c := range []releaseComponent{controller, scheduler, watcher} {
		c.stop(t)
	}
}

// fileFeed is load in a file, which is written anew all the time, as a monitoring
// system would; the load-watcher reads it, and the scheduler reads that.
type fileFeed struct {
	path, watcher string
	// pages reads the scheduler's.
	pages func(ctx context.Context, path string) (string, error)

	mu   sync.Mutex
	feed *scenarios.Feed
}

// start writes the file until the test ends, at first with a node that nobody has.
func (f *fileFeed) start(t *testing.T) {
	t.Helper()
	f.feed = &scenarios.Feed{Nodes: map[string]load.Node{"none": {CPU: load.Utilization{Mean: 0.5}, HasCPU: true}}}
	if err := f.write(); err != nil {
		t.Fatal(err)
	}
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

// write replaces the file by what the load is now; none leaves it as it is.
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

// Say changes the load, and waits until the load-watcher serves it and the
// scheduler has read that; without load, until the scheduler counts on none.
func (f *fileFeed) Say(ctx context.Context, feed *scenarios.Feed) error {
	f.mu.Lock()
	f.feed = feed
	said := time.Now()
	f.mu.Unlock()
	if feed == nil {
		return f.await(ctx, "load to be too old", func(ctx context.Context) (bool, error) {
			degraded, err := f.metric(ctx, "plimsoll_load_degraded")
			return degraded == 1, err
		})
	}
	// What was written before is of the same second at most.
	err := f.await(ctx, "the load-watcher to serve the load", func(ctx context.Context) (bool, error) {
		return f.Reading(ctx).Time.Unix() > said.Unix(), nil
	})
	if err != nil {
		return err
	}
	const reads = "plimsoll_load_reads_total"
	before, err := f.metric(ctx, reads)
	if err != nil {
		return err
	}
	// One read may have been under way.
	return f.await(ctx, "the scheduler to read the load", func(ctx context.Context) (bool, error) {
		now, err := f.metric(ctx, reads)
		return now >= before+2, err
	})
}

// Reading returns what the load-watcher serves, nothing if that is nothing.
func (f *fileFeed) Reading(ctx context.Context) load.Reading {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, f.watcher+"/watcher", nil)
	if err != nil {
		return load.Reading{}
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return load.Reading{}
	}
	defer response.Body.Close()
	reading, err := wire.Decode(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		return load.Reading{}
	}
	return reading
}

// metric returns a metric of the scheduler's, which has one source of load.
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

func (f *fileFeed) await(ctx context.Context, what string, condition wait.ConditionWithContextFunc) error {
	if err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, condition); err != nil {
		return fmt.Errorf("waiting for %s: %w", what, err)
	}
	return nil
}
