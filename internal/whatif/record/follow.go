package record

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/plimsoll-k8s/plimsoll/internal/format"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording/kinds"
	"github.com/plimsoll-k8s/plimsoll/load"
)

// FollowConfig configures the recording of a cluster.
type FollowConfig struct {
	// Folder is where recordings are written. Their names are the time of their start and recording.Extension.
	Folder string
	// Lock is the lock of the folder: the recording ends if it is lost. It may be nil.
	Lock *Lock
	// Step is the time between two samples, in whole seconds.
	Step time.Duration
	// Rotate is the duration of a recording, after which another recording is started.
	Rotate time.Duration
	// MaxBytes is the largest size of all recordings in the folder: the oldest recordings are removed.
	MaxBytes int64
	// Redact replaces names by pseudonyms, whose key is a file in the folder.
	Redact bool
	// Client reads the cluster.
	Client kubernetes.Interface
	// Usage is the source of the usage of pods, nil for none.
	Usage load.PodSource
	// Objects reads the objects of the cluster, of which those other than nodes and pods are recorded. It is called at the start of
	// each recording.
	Objects func(ctx context.Context) (*Cluster, error)
	// Speed is the number of recorded seconds for each second that passes after Epoch, 1 if it is 0. Demos and tests record short times as
	// hours. Step and Rotate are recorded times.
	Speed int
	Epoch time.Time
	// Log is called with a line about each recording and each failure.
	Log func(string)
	// Started, if set, is called with the name of each recording before it is started. All others are finished.
	Started func(name string)
}

const (
	// suffix ends the names of recordings.
	suffix = recording.Extension
	// nameFormat is the format of the time in the names.
	nameFormat = "20060102T150405Z"
	// commitSteps is the number of steps after which a member is written, from the first step on.
	commitSteps = 10
	// maxRemoved bounds the deleted pods between two steps.
	maxRemoved = 100_000
)

// Validate returns an error that names the field that is invalid.
func (c *FollowConfig) Validate() error {
	switch {
	case c.Step < time.Second || c.Step%time.Second != 0 || c.Step > time.Hour:
		return fmt.Errorf("step: invalid value %s: must be whole seconds, from 1s to 1h", c.Step)
	case c.Rotate < 10*c.Step || c.Rotate/c.Step >= recording.MaxSteps:
		return fmt.Errorf("rotate: invalid value %s: must be at least %s, ten steps of %s, and less than %d steps",
			c.Rotate, 10*c.Step, c.Step, recording.MaxSteps)
	case c.MaxBytes < 1<<20:
		return fmt.Errorf("maxBytes: invalid value %d: must be at least 1 MiB", c.MaxBytes)
	}
	return nil
}

// clock returns the recorded time of a time.
func (c *FollowConfig) clock(at time.Time) time.Time {
	if c.Speed <= 1 {
		return at
	}
	return c.Epoch.Add(time.Duration(c.Speed) * at.Sub(c.Epoch))
}

// follower follows a cluster.
type follower struct {
	FollowConfig
	pods, nodes cache.SharedIndexInformer

	mu      sync.Mutex
	removed []removal

	// current is nil while nothing can be written.
	current *followRecorder
	// reported has the failure of each kind that was reported last, empty if it has passed.
	reported [failureKinds]string
	now      func() time.Time
}

// failureKind is what has failed.
type failureKind int

const (
	apiFailure failureKind = iota
	usageFailure
	volumeFailure
	failureKinds
)

// Follow records until the context ends. While the volume is full, it removes the oldest recordings. An error is
// returned if the folder cannot be written for another reason, or if the API server refuses to list pods or nodes.
func Follow(ctx context.Context, config FollowConfig) error {
	if err := config.Validate(); err != nil {
		return err
	}
	if err := config.checkAccess(ctx); err != nil {
		return err
	}
	f := &follower{FollowConfig: config}
	f.now = func() time.Time { return f.clock(time.Now()) }
	factory := informers.NewSharedInformerFactoryWithOptions(f.Client, 0, informers.WithTransform(strip))
	f.pods, f.nodes = factory.Core().V1().Pods().Informer(), factory.Core().V1().Nodes().Informer()
	if _, err := f.pods.AddEventHandler(cache.ResourceEventHandlerFuncs{DeleteFunc: f.deleted}); err != nil {
		return err
	}
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), f.pods.HasSynced, f.nodes.HasSynced) {
		return errors.New("interrupted: nothing was recorded: the API server did not respond")
	}
	return f.loop(ctx)
}

// checkAccess returns an error if the API server refuses to list pods or nodes: watches would be repeated for ever without an error.
func (c *FollowConfig) checkAccess(ctx context.Context) error {
	one := metav1.ListOptions{Limit: 1}
	_, podErr := c.Client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, one)
	_, nodeErr := c.Client.CoreV1().Nodes().List(ctx, one)
	for _, err := range []error{podErr, nodeErr} {
		switch {
		case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err), err != nil && isLasting(err):
			return err
		case err != nil && ctx.Err() == nil:
			c.Log(fmt.Sprintf("waiting for the API server: %v: trying again until interrupted; check the kubeconfig and the network", err))
			return nil
		}
	}
	return nil
}

// isLasting reports whether an error is one of the client: credentials that it cannot get, or a certificate that it does not trust.
func isLasting(err error) bool {
	_, untrusted := errors.AsType[*tls.CertificateVerificationError](err)
	return untrusted || strings.Contains(err.Error(), "getting credentials: ")
}

// packed is the annotation with the pod as JSON, in a pod that is kept in memory.
const packed = "plimsoll.dev/packed"

// deleted keeps a deleted pod for the next step.
func (f *follower) deleted(object any) {
	if unknown, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = unknown.Obj
	}
	pod, ok := object.(*v1.Pod)
	f.mu.Lock()
	defer f.mu.Unlock()
	if ok && len(f.removed) < maxRemoved {
		f.removed = append(f.removed, removal{pod, f.now()})
	}
}

// loop records at each step.
func (f *follower) loop(ctx context.Context) error {
	ticker := time.NewTicker(f.Step / time.Duration(max(f.Speed, 1)))
	defer ticker.Stop()
	if err := recording.RemoveTemporary(f.Folder); err != nil {
		return err
	}
	for {
		if err := f.recover(f.step(ctx)); err != nil {
			return err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return f.recover(f.end())
		}
	}
}

// step records one step. It starts a recording if there is none, and another one when the current recording is complete.
func (f *follower) step(ctx context.Context) error {
	if f.Lock != nil {
		if err := f.Lock.Check(); err != nil {
			return err
		}
	}
	now := f.now()
	if f.current != nil && f.complete(now) {
		if err := f.finish(); err != nil {
			return err
		}
	}
	if f.current == nil {
		if err := f.start(ctx, now); err != nil {
			return err
		}
	}
	at := f.now()
	if at.Unix() < f.current.last {
		return nil // the clock was set back a little: the next steps are later
	}
	if err := f.current.observe(f.view(ctx, at)); err != nil {
		return err
	}
	if f.current.steps%commitSteps != 1 {
		return nil
	}
	if err := f.current.commit(); err != nil {
		return err
	}
	f.report(volumeFailure, "")
	return nil
}

// complete reports whether the current recording has its duration or is large, or the clock was set back: times in a recording do not
// decrease.
func (f *follower) complete(now time.Time) bool {
	last := time.Unix(f.current.last, 0)
	return now.Sub(f.current.file.About().From) >= f.Rotate || f.current.file.Size() >= f.MaxBytes/2 || now.Before(last.Add(-2*f.Step))
}

// finish finishes the current recording.
func (f *follower) finish() error {
	if err := errors.Join(f.current.commit(), f.current.file.Finish()); err != nil {
		return err
	}
	f.current = nil
	return nil
}

// end finishes the current recording.
func (f *follower) end() error {
	if f.current == nil {
		return nil
	}
	f.summarize()
	return f.finish()
}

// isFull reports whether an error is that a volume or a quota is full.
func isFull(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }

// recover returns nil for a volume that is full: it abandons the current recording after its last commit, removes the oldest recording,
// but not the last one, and the next step starts another one.
func (f *follower) recover(err error) error {
	if !isFull(err) {
		return err
	}
	if f.current != nil {
		_ = f.current.file.Abandon() // the volume is full
		f.current = nil
	}
	names, err := Recordings(f.Folder)
	if err != nil {
		return err
	}
	if len(names) > 1 {
		f.Log("the volume is full: removed " + names[0])
		return os.Remove(names[0])
	}
	f.report(volumeFailure, "the volume is full, and has no earlier recording to remove: nothing is recorded until there is space")
	return nil
}

// summarize reports what the current recording has.
func (f *follower) summarize() {
	nodes, pods := f.current.file.Count()
	usage := "no usage"
	if r := f.current; r.steps > r.unread {
		usage = "usage at " + format.Part(r.steps-r.unread, r.steps, "step")
	}
	seconds := f.current.last - f.current.file.About().From.Unix()
	f.Log(fmt.Sprintf("recorded %d s, %s, %s, %s; continue with the same command",
		seconds, format.Of(nodes, "node"), format.Of(pods, "pod"), usage))
}

// view returns the current state of the cluster, at a recorded time.
func (f *follower) view(ctx context.Context, at time.Time) view {
	v := view{at: at}
	f.mu.Lock()
	v.removed, f.removed = f.removed, nil
	f.mu.Unlock()
	failure := ""
	if err := f.ping(ctx); err != nil && ctx.Err() == nil {
		failure = fmt.Sprintf("the API server does not respond: %v", err)
		f.current.notes.add(
			"changes of pods and nodes at "+v.at.UTC().Truncate(time.Hour).Format(time.RFC3339)+" or within an hour after",
			"the API server was not reachable for a time: what happened then is recorded when it was seen later",
		)
	}
	f.report(apiFailure, failure)
	for _, object := range f.pods.GetStore().List() {
		v.pods = append(v.pods, object.(*v1.Pod))
	}
	for _, object := range f.nodes.GetStore().List() {
		v.nodes = append(v.nodes, object.(*v1.Node))
	}
	if f.Usage == nil {
		return v
	}
	ctx, cancel := context.WithTimeout(ctx, f.timeout())
	defer cancel()
	reading, err := f.Usage.ReadPods(ctx)
	maxAge := max(2*f.Step, 3*time.Minute)
	failure = ""
	switch {
	case err != nil:
		failure = fmt.Sprintf("%s: %v", f.Usage, err)
	case v.at.Sub(f.clock(reading.Time)) > maxAge:
		failure = fmt.Sprintf("%s: measured more than %s ago", f.Usage, maxAge)
	default:
		v.usage = &reading
	}
	f.report(usageFailure, failure)
	return v
}

// timeout returns the longest time of a request.
func (f *follower) timeout() time.Duration {
	return max(f.Step/2/time.Duration(max(f.Speed, 1)), time.Second)
}

// ping returns an error if the API server does not respond. Watches do not show this: they are repeated without an error.
func (f *follower) ping(ctx context.Context) error {
	api := f.Client.Discovery().RESTClient()
	if api == nil { // a fake
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, f.timeout())
	defer cancel()
	return api.Get().AbsPath("/version").Do(ctx).Error()
}

// report logs a failure of a kind, empty if there is none, unless it equals the last one of this kind.
func (f *follower) report(kind failureKind, line string) {
	if line != "" && line != f.reported[kind] {
		f.Log(line)
	}
	f.reported[kind] = line
}

// strip removes what is not recorded from a node, and packs a pod: as JSON it takes a third of the memory.
func strip(object any) (any, error) {
	if node, ok := object.(*v1.Node); ok {
		node.ManagedFields, node.Status.Images, node.Status.Conditions = nil, nil, nil
	}
	pod, ok := object.(*v1.Pod)
	if !ok || pod.Annotations[packed] != "" {
		return object, nil
	}
	light := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion,
			CreationTimestamp: pod.CreationTimestamp,
		},
		Spec:   v1.PodSpec{NodeName: pod.Spec.NodeName},
		Status: v1.PodStatus{Phase: pod.Status.Phase, StartTime: pod.Status.StartTime},
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == v1.PodScheduled {
			light.Status.Conditions = []v1.PodCondition{{Type: c.Type, Status: c.Status, LastTransitionTime: c.LastTransitionTime}}
		}
	}
	light.Status.InitContainerStatuses = terminated(pod.Status.InitContainerStatuses)
	light.Status.ContainerStatuses = terminated(pod.Status.ContainerStatuses)
	var raw json.RawMessage
	if err := kinds.NewRedactor(nil).Object("pods", &v1.Pod{ObjectMeta: pod.ObjectMeta, Spec: pod.Spec}, &raw); err != nil {
		return nil, err
	}
	light.Annotations = map[string]string{packed: string(raw)}
	return light, nil
}

// terminated returns the statuses of containers that have ended, now or before, without other fields.
func terminated(statuses []v1.ContainerStatus) (ended []v1.ContainerStatus) {
	for _, s := range statuses {
		if s.State.Terminated != nil || s.LastTerminationState.Terminated != nil {
			ended = append(ended, v1.ContainerStatus{
				State: v1.ContainerState{Terminated: s.State.Terminated}, LastTerminationState: s.LastTerminationState,
			})
		}
	}
	return ended
}

// unpack returns a pod as strip kept it, as JSON unless strip has not seen the pod.
func unpack(pod *v1.Pod) any {
	if raw, ok := pod.Annotations[packed]; ok {
		return json.RawMessage(raw)
	}
	return pod
}
