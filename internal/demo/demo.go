// Package demo runs a real scheduler with Plimsoll's plugins on an embedded
// control plane, and small scenarios through it: each with the default profile
// and with one of ours. The integration tests run the same.
package demo

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"
	"k8s.io/kubernetes/pkg/scheduler"
	internalconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"

	"github.com/plimsoll-k8s/plimsoll/api/config"
	"github.com/plimsoll-k8s/plimsoll/internal/embedded/controlplane"
	"github.com/plimsoll-k8s/plimsoll/internal/embedded/karpenter"
	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/command"
	"github.com/plimsoll-k8s/plimsoll/internal/simulate/engine"
	"github.com/plimsoll-k8s/plimsoll/load"
)

//go:embed profiles.yaml
var profiles string

// Demo is a control plane with a scheduler and a load watcher.
type Demo struct {
	// plane is nil where the cluster is somebody else's.
	plane *controlplane.ControlPlane
	// access may do everything in the cluster.
	access    *rest.Config
	cluster   *cluster
	feed      LoadFeed
	config    *internalconfig.KubeSchedulerConfiguration
	decisions *decisions
	timeline  timeline
	// real is the autoscaler of the slack scenario, nil for the stand-in; log is
	// where it writes.
	real *realAutoscaler
	log  io.Writer
	told struct {
		sync.Mutex
		results []Result
	}
	// hub is the control plane as the fleet scenario uses it, nil before.
	hub   atomic.Pointer[hub]
	stop  context.CancelFunc
	ended chan error
}

// LoadFeed is where the scheduler reads load from.
type LoadFeed interface {
	// Say changes the load, nil for none, and returns when the scheduler has
	// surely taken it in.
	Say(ctx context.Context, load *Feed) error
	// Reading returns the load as the scheduler knows it, nothing if it knows none.
	Reading(ctx context.Context) load.Reading
}

// feed is a source of the demo's own.
type feed interface {
	LoadFeed
	// source returns the arguments of LowRiskOverCommitment that name it.
	source() string
}

// The sources of load that the demo can be run with.
const (
	// LoadService is a load-watcher service inside the demo.
	LoadService = "service"
	// LoadPrometheus is a real Prometheus server that scrapes simulated machines.
	LoadPrometheus = "prometheus"
)

// Options say how the demo is run.
type Options struct {
	// Load is LoadService or LoadPrometheus.
	Load string
	// Autoscaler of the slack scenario is AutoscalerStandIn or AutoscalerKarpenter.
	Autoscaler string
	// Log is where other programs write.
	Log io.Writer
	// Progress is told what the demo is about to do.
	Progress func(string)
}

// Result is what became of one pod of a scenario.
type Result struct {
	Scenario string `json:"scenario"`
	Profile  string `json:"profile"`
	Pod      string `json:"pod"`
	// Node that the pod was bound to, or Pending.
	Node string `json:"node"`
	// Want is the node expected, or Pending, or Any.
	Want string `json:"want"`
	OK   bool   `json:"ok"`
	// Seconds from the pod's creation until it had a node, where the scenario is
	// about that.
	Seconds float64 `json:"seconds,omitempty"`
	// Slack is what a step of the slack scenario has come to: this is the result
	// of that step, and not of a pod.
	Slack *SlackState `json:"slack,omitempty"`
	// Fleet is what a placement has come to in the fleet scenario: this is its
	// result, and not that of a pod. Profile is the form that it is written in, Want
	// are clusters.
	Fleet *FleetStep `json:"fleet,omitempty"`
}

// Start starts everything. It ends with Stop, or with ctx. The caller's main
// must call controlplane.RunIfChild first.
func Start(ctx context.Context, options Options) (_ *Demo, err error) {
	ctx, stop := context.WithCancel(ctx)
	d := &Demo{decisions: &decisions{}, log: options.Log, stop: stop, ended: make(chan error, 1)}
	defer func() {
		if err != nil {
			d.Stop()
		}
	}()
	if options.Autoscaler == AutoscalerKarpenter {
		source, err := karpenter.Find(ctx, ".")
		if err != nil {
			return nil, fmt.Errorf("--autoscaler: %w", err)
		}
		d.real = &realAutoscaler{source: source}
	}
	source, err := startFeed(ctx, options)
	if err != nil {
		return nil, fmt.Errorf("starting the source of load: %w", err)
	}
	d.feed = source
	options.Progress("starting etcd and kube-apiserver")
	if d.plane, err = controlplane.Start(ctx, controlplane.Options{}); err != nil {
		return nil, err
	}
	if d.real != nil {
		options.Progress("building Karpenter (about 2 minutes the first time)")
		if err := d.real.build(ctx, d.plane.Dir); err != nil {
			return nil, err
		}
	}
	if d.access, err = d.plane.Config("plimsoll-demo", "system:masters"); err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(d.access)
	if err != nil {
		return nil, err
	}
	options.Progress("starting kube-scheduler with Plimsoll's plugins")
	sched, err := d.startScheduler(ctx, source.source())
	if err != nil {
		return nil, fmt.Errorf("starting the scheduler: %w", err)
	}
	d.cluster = &cluster{client: client, scheduler: sched}
	return d, nil
}

// startFeed starts the source of load that was asked for, until ctx ends.
func startFeed(ctx context.Context, options Options) (feed, error) {
	if options.Load == LoadPrometheus {
		options.Progress("starting Prometheus")
		return startPrometheus(ctx)
	}
	return startWatcher(ctx)
}

// Profiles returns the configuration of a scheduler that can play the scenarios:
// it has the profiles that they name. Load is read from a source, which is given
// as the arguments of LowRiskOverCommitment that name it, and counts up to an age.
func Profiles(source string, maxLoadAge time.Duration) string {
	return strings.NewReplacer("LOAD_SOURCE", source, "MAX_LOAD_AGE", maxLoadAge.String()).Replace(profiles)
}

// startScheduler writes the scheduler's configuration and starts it, as the
// user that a cluster's scheduler is.
func (d *Demo) startScheduler(ctx context.Context, source string) (*scheduler.Scheduler, error) {
	kubeconfig := filepath.Join(d.plane.Dir, "scheduler.kubeconfig")
	if err := d.plane.WriteKubeconfig(kubeconfig, "system:kube-scheduler"); err != nil {
		return nil, err
	}
	file := filepath.Join(d.plane.Dir, "scheduler.yaml")
	content := Profiles(source, maxLoadAge) +
		fmt.Sprintf("clientConnection: {kubeconfig: %q, qps: 1000, burst: 2000}\n", kubeconfig)
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		return nil, err
	}
	var err error
	if d.config, err = config.Load(file); err != nil {
		return nil, err
	}
	opts := options.NewOptions()
	opts.ConfigFile = file
	opts.SecureServing.BindPort = 0 // nobody asks for its metrics here
	started := make(chan *scheduler.Scheduler, 1)
	go func() {
		d.ended <- command.Run(ctx, opts, func(s *scheduler.Scheduler) { started <- s })
	}()
	select {
	case sched := <-started:
		return sched, nil
	case err := <-d.ended:
		return nil, err
	}
}

// Stop ends everything and removes its files.
func (d *Demo) Stop() {
	d.stop()
	if h := d.hub.Load(); h != nil {
		h.stop()
		<-h.ended
	}
	if d.plane != nil && d.cluster != nil {
		// Asked to end: why it did does not matter.
		<-d.ended //nolint:errcheck // a receive from a channel of errors, not a call
	}
	if d.plane != nil {
		d.plane.Stop()
	}
}

// Kubeconfig returns the file by which kubectl reaches the control plane that Start
// has started.
func (d *Demo) Kubeconfig() string { return d.plane.Kubeconfig }

// Ended is closed when the control plane that Start has started has ended, asked to
// or not.
func (d *Demo) Ended() <-chan struct{} { return d.plane.Exited() }

// Run runs a scenario with one profile, on nodes of its own.
func (d *Demo) Run(ctx context.Context, s Scenario, profile string) ([]Result, error) {
	results, err := d.run(ctx, s, profile)
	if err != nil {
		return results, fmt.Errorf("scenario %s with %s: %w", s.Name, profile, err)
	}
	return results, nil
}

func (d *Demo) run(ctx context.Context, s Scenario, profile string) ([]Result, error) {
	if err := d.cluster.clear(ctx); err != nil {
		return nil, err
	}
	for _, node := range s.Nodes {
		if err := d.cluster.createNode(ctx, node); err != nil {
			return nil, err
		}
	}
	for _, pod := range s.Running {
		if _, err := d.cluster.createPod(ctx, pod, profile); err != nil {
			return nil, err
		}
	}
	var results []Result
	for _, step := range s.Steps {
		if err := d.cluster.settle(ctx); err != nil {
			return results, err
		}
		switch {
		case step.Arrives != nil:
			result, err := d.arrive(ctx, s, profile, *step.Arrives)
			if err != nil {
				return results, err
			}
			results = append(results, result)
		case step.Ends != "":
			if err := d.cluster.deletePod(ctx, step.Ends); err != nil {
				return results, err
			}
		default: // Load, or none where LoadStops
			if profile == s.Profile {
				if err := d.feed.Say(ctx, step.Load); err != nil {
					return results, err
				}
			}
		}
	}
	return results, nil
}

// arrive lets a pod arrive and be scheduled. Beforehand it asks the what-if
// what will come of it.
func (d *Demo) arrive(ctx context.Context, s Scenario, profile string, a Arrival) (Result, error) {
	scores, err := d.foretell(ctx, a.object(profile))
	if err != nil {
		return Result{}, err
	}
	if _, err := d.cluster.createPod(ctx, a.Pod, profile); err != nil {
		return Result{}, err
	}
	node, err := d.cluster.outcome(ctx, a.Name)
	if err != nil {
		return Result{}, err
	}
	d.decisions.add(Decision{Time: time.Now(), Scenario: s.Name, Profile: profile, Node: node, Scores: scores})
	want := a.WantDefault
	if profile == s.Profile {
		want = a.Want
	}
	ok := node == want || want == Any && node != Pending
	return Result{Scenario: s.Name, Profile: profile, Pod: a.Name, Node: node, Want: want, OK: ok}, nil
}

// foretell scores a pod over the cluster as it is now.
func (d *Demo) foretell(ctx context.Context, pod *v1.Pod) (engine.PodScores, error) {
	nodes, pods, err := d.cluster.state(ctx)
	if err != nil {
		return engine.PodScores{}, err
	}
	pods = slices.DeleteFunc(pods, func(p *v1.Pod) bool { return p.Namespace == pod.Namespace && p.Name == pod.Name })
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var reading *load.Reading
	if last := d.feed.Reading(ctx); !last.Time.IsZero() {
		reading = &last
	}
	scheduler, err := engine.New(ctx, engine.Cluster{Nodes: nodes, Running: pods}, engine.Options{Config: d.config, Load: reading})
	if err != nil {
		return engine.PodScores{}, err
	}
	return scheduler.Score(ctx, pod, pod.Spec.SchedulerName)
}

// RunAll runs scenarios, each with the default profile and with its own, and
// tells each result as it comes.
func (d *Demo) RunAll(ctx context.Context, scenarios []Scenario, tell func(Scenario, []Result)) ([]Result, error) {
	var all []Result
	for _, s := range scenarios {
		for _, profile := range []string{DefaultProfile, s.Profile} {
			results, err := d.Run(ctx, s, profile)
			all = append(all, results...)
			d.keepResults(results)
			if err != nil {
				return all, err
			}
			tell(s, results)
		}
	}
	return all, nil
}

// results returns what the scenarios have come to so far.
func (d *Demo) results() []Result {
	d.told.Lock()
	defer d.told.Unlock()
	return d.told.results
}

// ErrUnexpected is that a pod or a placement did not go where it was expected to.
var ErrUnexpected = errors.New("not as expected")

// Check returns ErrUnexpected with the first result that is not as expected.
func Check(results []Result) error {
	for _, r := range results {
		switch {
		case r.OK:
		case r.Slack != nil:
			return fmt.Errorf("%w: step %q of scenario %s: %s, want %s", ErrUnexpected, r.Slack.Step, r.Scenario, r.Summary(), r.Want)
		case r.Fleet != nil:
			return fmt.Errorf("%w: %s as %s, %s: %s, want %s", ErrUnexpected, r.Fleet.Story, r.Profile, r.Fleet.Step, r.Summary(), r.Want)
		default:
			return fmt.Errorf("%w: %s of scenario %s with %s is %s, want %s", ErrUnexpected, r.Pod, r.Scenario, r.Profile, r.Node, r.Want)
		}
	}
	return nil
}
