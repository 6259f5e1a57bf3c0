package chaos

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	crlog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/embedded/controlplane"
	"github.com/plimsoll-k8s/plimsoll/internal/fleet"
	"github.com/plimsoll-k8s/plimsoll/internal/kube"
	"github.com/plimsoll-k8s/plimsoll/slack"
	"github.com/plimsoll-k8s/plimsoll/test/support/apiproxy"
	"github.com/plimsoll-k8s/plimsoll/test/support/eventually"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
	"github.com/plimsoll-k8s/plimsoll/test/support/plane"
	"github.com/plimsoll-k8s/plimsoll/test/support/testcluster"
)

var (
	seed         = flag.Uint64("seed", 5, "seed of the schedule, 0 for the time")
	rounds       = flag.Int("rounds", 3, "number of rounds")
	scheduleFile = flag.String("schedule", "", "file with a schedule, in place of a random one")
)

const (
	// settleLimit is the time after which the test stops to wait for the controllers.
	settleLimit = 5 * time.Minute
	// leaderLimit is the time in which a leader that was killed, stopped or cut off is replaced: its lease of 15 s
	// expires, and the other replica tries every 2 s and up to a fifth more to acquire it.
	leaderLimit = leaseDuration + 2400*time.Millisecond
	// workLimit is the time in which a new leader starts its caches and writes everything, or the present leader
	// acts on changes: less than 1.5 s on an idle machine of two CPUs, where the recovery from a killed leader
	// takes less than 20 s. The machine may be ten times slower.
	workLimit = 10 * 1500 * time.Millisecond
	// busyWrite is the duration of a write without a fault, 5 ms on an idle machine, from which the machine counts
	// as slower still: a leader that cannot renew its lease within 10 s is replaced once more.
	busyWrite = time.Second
)

// recoveryLimit returns the time in which the controllers must be up to date after the last fault of a round.
func recoveryLimit(round []step) time.Duration {
	limit := workLimit
	if slices.ContainsFunc(round, func(s step) bool { return slices.Contains([]string{"fault", "kill", "kill-later", "stop"}, s.verb) }) {
		limit += leaderLimit
	}
	return limit
}

func TestMain(m *testing.M) {
	crlog.SetLogger(klog.NewKlogr())
	os.Exit(plane.Main(m))
}

// suite is the world, the replicas of the controllers and the recorded changes of their objects.
type suite struct {
	*world
	// hub reads the objects of placements as the controllers do.
	hub      client.Client
	plane    *controlplane.ControlPlane
	replicas []*replica
	recorder *recorder
	// counts are the placeholders of each policy when the controllers were last observed.
	counts map[string]int64
}

// TestChaos runs a schedule of faults and changes against two replicas of the controllers, and checks
// after each round that they are up to date and that the log of their writes has no violation: no decision
// is lost or flaps, no placeholder is doubled, no room is promised twice and no promise lost, only the leader writes, and nothing is left
// behind.
func TestChaos(t *testing.T) {
	plan := readSchedule(t)
	s := start(t)
	slowest := s.awaitSettled(t)
	t.Logf("the first decisions and placeholders after %s", slowest.Round(time.Millisecond))
	for i, round := range plan {
		took, limit := s.runRound(t, round), recoveryLimit(round)
		slowest = max(slowest, took)
		t.Logf("round %d of %d: up to date %s after the last fault (limit %s); memory %s",
			i+1, len(plan), took.Round(time.Millisecond), limit, s.memory())
		if slowestWrite := s.slowestWrite(took); took > limit && slowestWrite < busyWrite {
			t.Errorf("up to date %s after the last fault, want at most %s", took, limit)
		} else if took > limit {
			t.Logf("the limit does not apply: the machine is too busy, a write has taken %s without a fault", slowestWrite)
		}
		if t.Failed() {
			t.Fatalf("round %d has failed", i+1)
		}
	}
	s.cleanUp(t)
	t.Logf("slowest recovery %s", slowest.Round(time.Millisecond))
}

// readSchedule returns the schedule of the flags and prints it if the test fails.
func readSchedule(t *testing.T) schedule {
	t.Helper()
	var plan schedule
	if *scheduleFile != "" {
		file, err := os.Open(*scheduleFile)
		must.Succeed(t, err)
		defer file.Close()
		if plan, err = parseSchedule(file); err != nil {
			t.Fatalf("%s: %v", *scheduleFile, err)
		}
	} else {
		if *seed == 0 {
			*seed = uint64(time.Now().UnixNano())
		}
		t.Logf("-seed=%d -rounds=%d", *seed, *rounds)
		plan = generate(*seed, *rounds)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the schedule, to run with -schedule=FILE:\n%s", plan)
		}
	})
	return plan
}

// start starts the control plane, the recorder and two replicas.
func start(t *testing.T) *suite {
	t.Helper()
	s := startWorld(t)
	for i := range 2 {
		s.replicas = append(s.replicas, startReplica(t, s.plane, fmt.Sprintf("replica-%d", i+1)))
	}
	t.Cleanup(func() {
		if t.Failed() {
			for _, r := range s.replicas {
				t.Log(r.tail())
			}
		}
	})
	return s
}

// startWorld starts the control plane and the recorder.
func startWorld(t *testing.T) *suite {
	t.Helper()
	cp, config := plane.Start(
		t,
		controlplane.Options{},
		append(append(testcluster.ProjectCRDs(t), testcluster.OCMCRDs(t)...), testcluster.BuffersCRD(t))...)
	api, err := client.New(config, client.Options{Scheme: kube.Scheme()})
	must.Succeed(t, err)
	// Decisions are checked over what the controllers read.
	hub, err := client.New(config, client.Options{Scheme: kube.SchemeWith(fleet.InstallHub)})
	must.Succeed(t, err)
	return &suite{world: newWorld(t, api), hub: hub, plane: cp, recorder: startRecorder(t, config), counts: map[string]int64{}}
}

// slowestWrite returns the longest time in which the API server has answered a write in the last period.
func (s *suite) slowestWrite(period time.Duration) (longest time.Duration) {
	since := time.Now().Add(-period)
	for _, r := range s.replicas {
		for _, w := range r.proxy.Writes() {
			if w.Received.After(since) {
				longest = max(longest, w.Answered.Sub(w.Received))
			}
		}
	}
	return longest
}

// runRound runs the steps of a round, waits until the controllers are up to date, and checks their writes.
// It returns the time from the end of the last fault.
func (s *suite) runRound(t *testing.T, round []step) time.Duration {
	t.Helper()
	s.startRound()
	s.recorder.startRound()
	s.before = maps.Clone(s.counts)
	began := time.Now()
	var faults sync.WaitGroup
	for _, step := range round {
		if err := s.run(t.Context(), step, &faults); err != nil {
			t.Fatalf("%s: %v", step, err)
		}
	}
	faults.Wait()
	if cpus := s.clusters[clusterNames[0]]; cpus > 0 {
		// A change after the faults: a replica that has been stopped must not act on it as a leader.
		late := step{"cluster", []string{clusterNames[0], fmt.Sprint(cpus%100 + 1)}}
		if err := s.apply(t.Context(), late); err != nil {
			t.Fatalf("%s: %v", late, err)
		}
	}
	took := s.awaitSettled(t)
	s.check(t, began)
	return took
}

// run runs a step. Faults end in the background.
func (s *suite) run(ctx context.Context, step step, faults *sync.WaitGroup) error {
	switch step.verb {
	case "fault":
		end := s.target(step.args[0]).proxy.Inject(apiproxy.Fault(step.args[1]))
		after(ctx, faults, step.args[2], end)
	case "kill":
		s.target(step.args[0]).signal(syscall.SIGKILL)
	case "kill-later":
		killed := s.target(step.args[0])
		after(ctx, faults, step.args[1], func() { killed.signal(syscall.SIGKILL) })
	case "stop":
		stopped := s.target(step.args[0])
		stopped.signal(syscall.SIGSTOP)
		after(ctx, faults, step.args[1], func() { stopped.signal(syscall.SIGCONT) })
	case "compact":
		return plane.Compact(ctx, s.plane)
	default:
		return s.apply(ctx, step)
	}
	return nil
}

// after calls a function after a duration that parseSchedule has checked, or when ctx ends.
func after(ctx context.Context, running *sync.WaitGroup, duration string, f func()) {
	d, _ := time.ParseDuration(duration)
	running.Go(func() {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
		f()
	})
}

// target returns the replica that has written the lease last if the name is leader, otherwise the other replica.
func (s *suite) target(name string) *replica {
	first, second := s.replicas[0], s.replicas[1]
	if first.lastLease().After(second.lastLease()) == (name == leader) {
		return first
	}
	return second
}

// awaitSettled waits until the controllers are up to date and returns how long it took.
func (s *suite) awaitSettled(t *testing.T) time.Duration {
	t.Helper()
	began := time.Now()
	must.Succeed(t, s.publishAll(t.Context()))
	reason := &reason{}
	eventually.TrueWithin(t, settleLimit, 200*time.Millisecond, "the controllers are not up to date", reason,
		func(ctx context.Context) (bool, error) {
			text, err := s.unsettled(ctx)
			if err == nil {
				reason.text = text
			}
			if err := s.checkPromises(); err != nil { // at once: more promises hide it
				t.Fatal(err)
			}
			return err == nil && text == "", err
		})
	return time.Since(began)
}

// reason says why the controllers are not up to date.
type reason struct{ text string }

// String implements fmt.Stringer.
func (r *reason) String() string { return r.text }

// unsettled returns why the controllers are not up to date, empty if they are.
func (s *suite) unsettled(ctx context.Context) (string, error) {
	objects, err := fleet.Read(func(list fleet.ObjectList) error { return s.hub.List(ctx, list) })
	if err != nil {
		return "", err
	}
	if reason := s.unsettledPlacement(objects); reason != "" {
		return reason, nil
	}
	for _, policy := range policyNames {
		if reason, err := s.unsettledPolicy(ctx, policy); err != nil || reason != "" {
			return reason, err
		}
	}
	return s.unsettledFits(ctx)
}

// unsettledPlacement describes a placement whose decision does not match the present fleet, empty if there is none.
func (s *suite) unsettledPlacement(objects *fleet.Objects) string {
	now, selected := objects.State(), objects.Selected()
	for _, object := range objects.Placements {
		if !slices.Contains(placementNames, object.Name) {
			continue
		}
		if n := int(object.Status.NumberOfSelectedClusters); n != s.selected(object.Name) {
			return fmt.Sprintf("the status of placement %s has %d clusters, want %d", object.Name, n, s.selected(object.Name))
		}
	}
	for _, name := range placementNames {
		key := types.NamespacedName{Namespace: team, Name: name}
		var want []string
		if result, ok := now.Preview(key, time.Now()); ok {
			for _, group := range result.Groups {
				for _, choice := range group.Clusters {
					want = append(want, choice.ClusterName)
				}
			}
		}
		slices.Sort(want)
		if got := selected[key]; !slices.Equal(got, want) || len(got) != s.selected(name) {
			return fmt.Sprintf("placement %s has clusters %q, want %d: %q", name, got, s.selected(name), want)
		}
		if recorded, _ := s.recorder.present(name); !slices.Equal(recorded, want) {
			return fmt.Sprintf("the recorder has not observed the decision of placement %s: %q, want %q", name, recorded, want)
		}
	}
	return ""
}

// unsettledPolicy returns why a policy does not have its placeholders.
func (s *suite) unsettledPolicy(ctx context.Context, name string) (string, error) {
	objects, count, err := s.placeholderObjects(ctx, name)
	if err != nil {
		return "", err
	}
	s.counts[name] = count
	if _, recorded := s.recorder.present(name); recorded != count {
		return fmt.Sprintf("the recorder has not observed the placeholders of policy %s: %d, want %d", name, recorded, count), nil
	}
	rate, exists := s.rates[name]
	if !exists {
		if len(objects) > 0 {
			return fmt.Sprintf("left behind by policy %s: %q", name, objects), nil
		}
		return "", nil
	}
	policy := &v1alpha1.ResourceSlack{}
	if err := s.api.Get(ctx, client.ObjectKey{Name: name}, policy); err != nil {
		return "", err
	}
	status, target := policy.Status, int64(10*rate*s.requests(name))
	if got := status.Target.Cpu().MilliValue(); got != target || status.ObservedGeneration != policy.Generation {
		return fmt.Sprintf("policy %s has a target of %dm CPU of generation %d, want %dm of %d",
			name, got, status.ObservedGeneration, target, policy.Generation), nil
	}
	if need := s.placeholders(name); count < need || count != status.Placeholders {
		return fmt.Sprintf("policy %s has %d placeholders, want at least %d; its status has %d",
			name, count, need, status.Placeholders), nil
	}
	return "", nil
}

// placeholderObjects returns the objects that hold the placeholders of a policy, and the number of
// placeholders.
func (s *suite) placeholderObjects(ctx context.Context, policy string) (names []string, count int64, err error) {
	for _, kind := range placeholderKinds() {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		if err := s.api.List(ctx, list, client.MatchingLabels{slack.PlaceholderLabel: policy}); err != nil {
			return nil, 0, err
		}
		for _, object := range list.Items {
			names = append(names, object.GetKind()+" "+object.GetName())
			replicas, _, err := unstructured.NestedInt64(object.Object, "spec", "replicas")
			if err != nil {
				return nil, 0, err
			}
			count += replicas
		}
	}
	return names, count, nil
}

// check checks the writes of the controllers since a time, in this round.
func (s *suite) check(t *testing.T, since time.Time) {
	t.Helper()
	selections, counts := s.recorder.changes()
	for _, name := range placementNames {
		floor, maxChanges := s.selectionBounds(name)
		if err := checkSelections(name, selections[name], floor, maxChanges); err != nil {
			t.Error(err)
		}
	}
	for _, name := range policyNames {
		limit, maxChanges := s.countBounds(name)
		if err := checkCounts(name, counts[name], limit, maxChanges); err != nil {
			t.Error(err)
		}
	}
	var logs []replicaLog
	for _, r := range s.replicas {
		logs = append(logs, r.writes())
		if strings.Contains(r.log.String(), "panic") {
			t.Errorf("%s has panicked", r.name)
		}
	}
	if err := checkLeader(logs, since); err != nil {
		t.Error(err)
	}
}

// cleanUp deletes all policies and placements, and expects that nothing is left behind.
func (s *suite) cleanUp(t *testing.T) {
	t.Helper()
	s.startRound()
	for _, policy := range policyNames {
		must.Succeed(t, s.apply(t.Context(), step{"unrate", []string{policy}}))
	}
	for _, placement := range placementNames {
		must.Succeed(t, s.apply(t.Context(), step{"unplacement", []string{placement}}))
	}
	for _, name := range fitNames {
		must.Succeed(t, s.apply(t.Context(), step{"unfit", []string{name}}))
	}
	s.awaitSettled(t)
	var decisions clusterv1beta1.PlacementDecisionList
	eventually.True(t, "PlacementDecisions are left behind", nil, func(ctx context.Context) (bool, error) {
		err := s.api.List(ctx, &decisions)
		return len(decisions.Items) == 0, err
	})
}

// memory returns the resident memory of the replicas.
func (s *suite) memory() string {
	var out []string
	for _, r := range s.replicas {
		out = append(out, r.memory())
	}
	return strings.Join(out, ", ")
}
