package chaos

import (
	"context"
	"crypto/tls"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-k8s/plimsoll/test/support/apiproxy"
	"github.com/plimsoll-k8s/plimsoll/test/support/eventually"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
	"github.com/plimsoll-k8s/plimsoll/test/support/plane"
	"github.com/plimsoll-k8s/plimsoll/test/support/program"
)

// soak is the duration of TestSoak.
var soak = flag.Duration("soak", 8*time.Second, "duration of TestSoak")

const (
	// churnInterval is the time between two changes.
	churnInterval = 250 * time.Millisecond
	// soakPool is the pool of the pods that the scheduler binds, soakPods their number.
	soakPool = "soak"
	soakPods = 40
	// memoryGrowth and memorySlack bound the memory: memoryGrowth times the peak of the first quarter of the
	// time, which is the warm-up, plus memorySlack.
	memoryGrowth, memorySlack = 1.5, 50 << 20
	// goroutineSlack is the number of goroutines that may be added: open connections have goroutines.
	goroutineSlack = 30
)

// soakConfig configures a scheduler with all plugins that read load from a file.
const soakConfig = `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
clientConnection: {kubeconfig: %q}
profiles:
- schedulerName: default-scheduler
  plugins:
    score: {enabled: [{name: LowRiskOverCommitment}, {name: NodeResourcesLimits}]}
  pluginConfig:
  - name: LowRiskOverCommitment
    args:
      pollInterval: 1s
      metricProvider: {type: File, address: %q}
`

// soaked is a program under test, behind its own proxy.
type soaked struct {
	*program.Process

	name, metrics string
	proxy         *apiproxy.Proxy
	first         program.Usage
	warm, peak    float64
}

// TestSoak checks that memory and goroutines of the controllers and of the scheduler do not grow while objects and
// load change and the API server fails in all ways, and that both do their work afterwards. It runs longer with
// -args -soak=30m.
func TestSoak(t *testing.T) {
	s := startWorld(t)
	for i := range 2 {
		must.Succeed(t, s.api.Create(t.Context(), node(nodeName(soakPool, i), soakPool)))
	}
	feed := filepath.Join(t.TempDir(), "load.json")
	writeLoad(t, feed, 0)
	programs := []*soaked{s.soakController(t), s.soakScheduler(t, feed)}
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // the certificate of the scheduler is its own
	}}
	s.awaitSettled(t)
	s.awaitBound(t, programs[1], "first")
	for _, p := range programs {
		eventually.True(t, p.name+" serves no metrics", p, func(ctx context.Context) (done bool, err error) {
			p.first, err = program.ReadUsage(ctx, client, p.metrics)
			return err == nil, nil
		})
	}
	s.churn(t, programs, feed, client)
	for _, p := range programs {
		p.proxy.Heal()
	}
	s.startHistory()
	s.recorder.startRound()
	took := s.awaitSettled(t)
	s.awaitBound(t, programs[1], "last")
	t.Logf("up to date %s after the last fault", took.Round(time.Millisecond))
	for _, p := range programs {
		p.check(t, client)
	}
}

// soakController starts the controllers.
func (s *suite) soakController(t *testing.T) *soaked {
	t.Helper()
	p := s.proxied(t, "plimsoll-controller", "system:masters")
	address := fmt.Sprintf("127.0.0.1:%d", program.FreePort(t))
	p.metrics = "http://" + address + "/metrics"
	p.Process = program.Start(t, program.Path(t, p.name), "--kubeconfig="+p.kubeconfig(t), "--leader-elect=false",
		"--placeholder-namespace="+podNamespace, "--adopt=all", "--metrics-bind-address="+address, "--health-probe-bind-address=0")
	return p
}

// soakScheduler starts a scheduler with the plugins, which reads load from a file.
func (s *suite) soakScheduler(t *testing.T, feed string) *soaked {
	t.Helper()
	p := s.proxied(t, "plimsoll-scheduler", "system:masters")
	config := filepath.Join(t.TempDir(), "config.yaml")
	must.Succeed(t, os.WriteFile(config, fmt.Appendf(nil, soakConfig, p.kubeconfig(t), feed), 0o600))
	port := program.FreePort(t)
	p.metrics = fmt.Sprintf("https://127.0.0.1:%d/metrics", port)
	p.Process = program.Start(t, program.Path(t, p.name), "--config="+config, "--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", port), "--authorization-always-allow-paths=/metrics")
	return p
}

// proxied returns a program that is not started yet, with its proxy.
func (s *suite) proxied(t *testing.T, name string, groups ...string) *soaked {
	t.Helper()
	config, err := s.plane.Config(name, groups...)
	must.Succeed(t, err)
	return &soaked{name: name, proxy: apiproxy.Start(t, config)}
}

// kubeconfig returns the path of a kubeconfig of the proxy.
func (p *soaked) kubeconfig(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	must.Succeed(t, p.proxy.WriteKubeconfig(path))
	return path
}

// churn changes objects and load, injects faults, and records the usage of the programs.
func (s *suite) churn(t *testing.T, programs []*soaked, feed string, client *http.Client) {
	t.Helper()
	t.Logf("-seed=%d -soak=%s", *seed, *soak)
	g := generator{rand.New(rand.NewPCG(*seed, 1))}
	ctx, stop := context.WithTimeout(t.Context(), *soak)
	defer stop()
	var faults sync.WaitGroup
	defer faults.Wait()
	began, next := time.Now(), 1
	tick := time.NewTicker(churnInterval)
	defer tick.Stop()
	for n := 1; ctx.Err() == nil; n++ {
		s.startHistory() // the last one is not needed
		s.recorder.startRound()
		verb, args := g.change()
		if err := s.apply(t.Context(), step{verb, args}); err != nil {
			t.Fatalf("%s %s: %v", verb, strings.Join(args, " "), err)
		}
		s.churnPods(t, n)
		if n%4 == 0 {
			writeLoad(t, feed, n)
		}
		if g.random.IntN(12) == 0 {
			p := pick(g.random, programs...)
			after(ctx, &faults, g.seconds(1, 4), p.proxy.Inject(pick(g.random, apiproxy.Faults...)))
		}
		if g.random.IntN(200) == 0 {
			must.Succeed(t, plane.Compact(t.Context(), s.plane))
		}
		for ; next <= 20 && time.Since(began) >= time.Duration(next)*(*soak/20); next++ {
			for _, p := range programs {
				p.record(t, client, next)
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

// churnPods creates a pod that the scheduler binds, and deletes the oldest one.
func (s *suite) churnPods(t *testing.T, n int) {
	t.Helper()
	must.Succeed(t, s.api.Create(t.Context(), unbound(fmt.Sprint("soak-", n))))
	if n > soakPods {
		old := unbound(fmt.Sprint("soak-", n-soakPods))
		if err := s.api.Delete(t.Context(), old, client.GracePeriodSeconds(0)); client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
	}
}

// unbound returns a small pod for the nodes of the soak's pool.
func unbound(name string) *v1.Pod {
	p := pod(soakPool, 0)
	p.Name, p.Spec.NodeName, p.Spec.NodeSelector = name, "", map[string]string{"pool": soakPool}
	p.Spec.Containers[0].Resources.Requests = nil
	return p
}

// awaitBound waits until the scheduler has bound a new pod.
func (s *suite) awaitBound(t *testing.T, scheduler *soaked, name string) {
	t.Helper()
	p := unbound(name)
	must.Succeed(t, s.api.Create(t.Context(), p))
	eventually.TrueWithin(t, settleLimit, 200*time.Millisecond, "the pod is not bound", scheduler, func(ctx context.Context) (bool, error) {
		err := s.api.Get(ctx, client.ObjectKeyFromObject(p), p)
		return p.Spec.NodeName != "", err
	})
}

// writeLoad replaces the file of the load with a new reading.
func writeLoad(t *testing.T, path string, version int) {
	t.Helper()
	var nodes []string
	for i := range 2 {
		nodes = append(nodes, fmt.Sprintf(`%q:{"metrics":[{"type":"CPU","operator":"AVG","value":%d}]}`,
			nodeName(soakPool, i), (40*i+version)%100))
	}
	content := fmt.Sprintf(`{"timestamp":%d,"data":{"NodeMetricsMap":{%s}}}`, time.Now().Unix(), strings.Join(nodes, ","))
	must.Succeed(t, os.WriteFile(path+".new", []byte(content), 0o600))
	must.Succeed(t, os.Rename(path+".new", path))
}

// record records the usage after a number of twentieths of the time. The first quarter is the warm-up.
func (p *soaked) record(t *testing.T, client *http.Client, n int) {
	t.Helper()
	usage, err := program.ReadUsage(t.Context(), client, p.metrics)
	if err != nil {
		t.Errorf("%s: %v", p.name, err)
		return
	}
	t.Logf("%s: %s: %s", time.Duration(n)*(*soak/20), p.name, usage)
	if p.peak = max(p.peak, usage.Memory); n <= 5 {
		p.warm = p.peak
	}
}

// check checks that the program still runs, and its usage.
func (p *soaked) check(t *testing.T, client *http.Client) {
	t.Helper()
	select {
	case <-p.Exited():
		t.Errorf("%s has exited\n%s", p.name, p)
		return
	default:
	}
	if strings.Contains(p.String(), "panic") {
		t.Errorf("%s has panicked\n%s", p.name, p)
	}
	if p.peak > memoryGrowth*p.warm+memorySlack {
		t.Errorf("the memory of %s grew from %.0f MiB to %.0f MiB", p.name, p.warm/(1<<20), p.peak/(1<<20))
	}
	last := &program.Usage{}
	eventually.True(
		t,
		"goroutines of "+p.name+" are left behind: there were "+p.first.String(),
		last,
		func(ctx context.Context) (bool, error) {
			usage, err := program.ReadUsage(ctx, client, p.metrics)
			*last = usage
			return err == nil && usage.Goroutines <= p.first.Goroutines+goroutineSlack, nil
		},
	)
	t.Logf("%s: at first %s, in the end %s, at most %.0f MiB", p.name, p.first, *last, p.peak/(1<<20))
}
