package record

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/plimsoll-k8s/plimsoll/internal/format"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/snapshot"
	"github.com/plimsoll-k8s/plimsoll/load"
)

// FollowConfig configures the recording of a cluster.
type FollowConfig struct {
	// Folder is where recordings are written. Their names are the time of their start and .plrec.
	Folder string
	// Step is the time between two samples, in whole seconds.
	Step time.Duration
	// Rotate is the duration of a recording, after which another recording is started.
	Rotate time.Duration
	// MaxBytes is the largest size of all recordings in the folder: the oldest recordings are removed.
	MaxBytes int64
	// Redact replaces names by pseudonyms, which differ between recordings.
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
	// Finished, if set, is called after a recording is finished, or found unusable for continuation.
	Finished func(name string)
}

const (
	// suffix ends the names of recordings.
	suffix = ".plrec"
	// nameFormat is the format of the time in the names.
	nameFormat = "20060102T150405Z"
	// commitSteps is the number of steps after which a chunk is written.
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
		return fmt.Errorf("rotate: invalid value %s: must be at least ten steps, %s, and less than %d",
			c.Rotate, 10*c.Step, recording.MaxSteps)
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
	// uncommitted is the number of steps since the last commit.
	uncommitted int
	// reported is the failure that was reported last, empty if it has passed.
	reported string
	now      func() time.Time
}

// Follow records until the context ends, and then commits. While the volume is full, it removes the oldest recordings. An error is
// returned if the folder cannot be written for another reason.
func Follow(ctx context.Context, config FollowConfig) error {
	if err := config.Validate(); err != nil {
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
	defer factory.Shutdown()
	if !cache.WaitForCacheSync(ctx.Done(), f.pods.HasSynced, f.nodes.HasSynced) {
		return nil
	}
	return f.loop(ctx)
}

// packed is the annotation with the pod as JSON, in a pod that is kept in memory.
const packed = "plimsoll.dev/packed"

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
	full := &v1.Pod{TypeMeta: pod.TypeMeta, ObjectMeta: pod.ObjectMeta, Spec: pod.Spec}
	full.ManagedFields, full.Spec.EphemeralContainers = nil, nil
	full.Spec.Containers, full.Spec.InitContainers = withoutLargeFields(pod.Spec.Containers), withoutLargeFields(pod.Spec.InitContainers)
	raw, err := json.Marshal(full)
	if err != nil {
		return nil, err
	}
	light.Annotations = map[string]string{packed: string(raw)}
	return light, nil
}

// withoutLargeFields returns containers without fields that are not recorded.
func withoutLargeFields(containers []v1.Container) []v1.Container {
	containers = slices.Clone(containers)
	for i := range containers {
		c := &containers[i]
		c.Env, c.EnvFrom, c.Args, c.Command, c.VolumeMounts, c.Lifecycle = nil, nil, nil, nil, nil, nil
		c.LivenessProbe, c.ReadinessProbe, c.StartupProbe, c.SecurityContext = nil, nil, nil, nil
	}
	return containers
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

// unpack returns a pod with all that strip kept.
func unpack(pod *v1.Pod) (*v1.Pod, error) {
	raw, ok := pod.Annotations[packed]
	if !ok {
		return pod, nil
	}
	full := &v1.Pod{}
	err := json.Unmarshal([]byte(raw), full)
	full.Status = pod.Status
	return full, err
}

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
	if err := f.removeTemporary(); err != nil {
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

// step records one step. It opens a recording if there is none, and another one when the current recording is complete.
func (f *follower) step(ctx context.Context) error {
	now := f.now()
	if f.current != nil && f.complete(now) {
		if err := f.finish(); err != nil {
			return err
		}
	}
	if f.current == nil {
		if err := f.open(ctx, now); err != nil {
			return err
		}
	}
	v := f.view(ctx)
	if v.at.Unix() < f.current.state.Last {
		return nil // the clock was set back a little: the next steps are later
	}
	if err := f.current.observe(v); err != nil {
		return err
	}
	f.uncommitted++
	if f.uncommitted < commitSteps && f.current.state.Steps > 1 {
		return nil
	}
	f.uncommitted = 0
	return f.current.commit()
}

// complete reports whether the current recording has its duration or is large, or the clock was set back: times in a recording do not
// decrease.
func (f *follower) complete(now time.Time) bool {
	last := time.Unix(f.current.state.Last, 0)
	return now.Sub(f.current.file.About().From) >= f.Rotate || f.current.file.Size() >= f.MaxBytes/2 || now.Before(last.Add(-2*f.Step))
}

// finish finishes the current recording.
func (f *follower) finish() error {
	if err := errors.Join(f.current.commit(), f.current.file.Finish()); err != nil {
		return err
	}
	f.finished(f.current.file.Path())
	f.current = nil
	return nil
}

// finished reports a recording that is not continued any more.
func (f *follower) finished(name string) {
	if f.Finished != nil {
		f.Finished(name)
	}
}

// end commits the current recording.
func (f *follower) end() error {
	if f.current == nil {
		return nil
	}
	f.summarize()
	return errors.Join(f.current.commit(), f.current.file.Pause())
}

// recover returns nil for a volume that is full: it removes the oldest recording, and the next step continues after the last commit.
func (f *follower) recover(err error) error {
	if !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, syscall.EDQUOT) {
		return err
	}
	if f.current != nil {
		_ = f.current.file.Abandon() // the volume is full
		f.current = nil
	}
	names, err := f.recordings()
	if err != nil {
		return err
	}
	for _, name := range names {
		if !recording.Unfinished(name) {
			f.Log("the volume is full: removed " + name)
			return recording.Discard(name)
		}
	}
	f.failed("the volume is full, and has no finished recording to remove: nothing is recorded until there is space")
	return nil
}

// removeTemporary removes files that a process left when it was killed.
func (f *follower) removeTemporary() error {
	names, err := filepath.Glob(filepath.Join(f.Folder, recording.TemporaryPattern))
	for _, name := range names {
		err = errors.Join(err, os.Remove(name))
	}
	return err
}

// summarize reports what the current recording has.
func (f *follower) summarize() {
	nodes, pods := f.current.file.Count()
	usage := "no usage"
	if s := f.current.state; s.Steps > s.Unread {
		usage = "usage at " + format.Part(s.Steps-s.Unread, s.Steps, "step")
	}
	seconds := f.current.state.Last - f.current.file.About().From.Unix()
	f.Log(fmt.Sprintf("recorded %d s, %s, %s, %s; continue with the same command",
		seconds, format.Of(nodes, "node"), format.Of(pods, "pod"), usage))
}

// view returns the current state of the cluster.
func (f *follower) view(ctx context.Context) view {
	v := view{at: f.now()}
	f.mu.Lock()
	v.removed, f.removed = f.removed, nil
	f.mu.Unlock()
	if err := f.ping(ctx); err != nil && ctx.Err() == nil {
		f.failed(fmt.Sprintf("the API server does not respond: %v", err))
		f.current.state.Notes.add(
			"changes of pods and nodes at "+v.at.UTC().Truncate(time.Hour).Format(time.RFC3339)+" or within an hour after",
			"the API server was not reachable for a time: what happened then is recorded when it was seen later",
		)
	}
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
	switch {
	case err != nil:
		f.failed(fmt.Sprintf("%s: %v", f.Usage, err))
	case v.at.Sub(f.clock(reading.Time)) > maxAge(f.Step):
		f.failed(fmt.Sprintf("%s: measured more than %s ago", f.Usage, maxAge(f.Step)))
	default:
		v.usage = &reading
		f.reported = ""
	}
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

// maxAge returns the largest age of a reading of usage.
func maxAge(step time.Duration) time.Duration { return max(2*step, 3*time.Minute) }

// failed reports a failure, unless it equals the last reported failure.
func (f *follower) failed(line string) {
	if line != f.reported {
		f.Log(line)
	}
	f.reported = line
}

// open continues the last recording. If it is finished, has another step or is too old, open starts a new recording.
func (f *follower) open(ctx context.Context, now time.Time) error {
	names, err := f.recordings()
	if err != nil {
		return err
	}
	for _, name := range slices.Backward(names) {
		if !recording.Unfinished(name) {
			continue
		}
		if continued, err := f.resume(name, now); err != nil || continued {
			return err
		}
	}
	if err := f.start(ctx, now); err != nil {
		return err
	}
	return f.prune()
}

// resume continues a recording. If it is too old or has other options, resume finishes it and returns false.
func (f *follower) resume(name string, now time.Time) (bool, error) {
	s := &state{}
	file, err := recording.Continue(name, s)
	if err != nil {
		if errors.Is(err, syscall.ENOSPC) {
			return false, err
		}
		f.Log(fmt.Sprintf("not continued: %v", err))
		f.finished(name)
		return false, os.Remove(name + recording.StateSuffix)
	}
	about := file.About()
	same := about.Step == int(f.Step.Seconds()) && about.Redacted == f.Redact && s.Pods != nil && s.Nodes != nil
	f.current = newFollowRecorder(file, s, f.clock)
	if !same || f.complete(now) {
		return false, f.finish()
	}
	f.uncommitted = 0
	f.Log("continuing " + name)
	return true, nil
}

// start starts a recording.
func (f *follower) start(ctx context.Context, now time.Time) error {
	now = now.UTC().Truncate(time.Second)
	s := &state{
		Key: newKey(f.Redact), Pods: map[string]followObject{}, Nodes: map[string]followObject{}, Last: now.Unix(),
	}
	about := recording.About{From: now, To: now, Step: int(f.Step.Seconds()), Redacted: f.Redact, Sources: []string{"the API server"}}
	if f.Usage != nil {
		about.Sources = append(about.Sources, f.source())
	}
	cluster, err := f.Objects(ctx)
	if err != nil {
		cluster = &Cluster{Snapshot: &snapshot.Snapshot{}}
		s.Notes.add("objects other than nodes and pods", "they could not be read: "+err.Error())
	}
	about.Kubernetes, s.Notes = cluster.About.Kubernetes, append(s.Notes, cluster.About.Missing...)
	if f.Usage == nil {
		s.Notes.add("usage of pods", "no source of usage is configured")
	}
	name := f.newName(now)
	file, err := recording.Create(name, about)
	if err != nil {
		return err
	}
	f.current = newFollowRecorder(file, s, f.clock)
	for _, list := range cluster.Lists {
		if err := f.current.objects(list); err != nil {
			return err
		}
	}
	f.Log("recording " + name)
	f.uncommitted = 0
	return f.current.commit()
}

// newName returns the name of a recording that starts at a time, or the next second without a recording if the clock was set back.
func (f *follower) newName(at time.Time) string {
	for ; ; at = at.Add(time.Second) {
		name := filepath.Join(f.Folder, at.Format(nameFormat)+suffix)
		if _, err := os.Stat(name); err != nil {
			return name
		}
	}
}

// source returns the name of the source of usage, without its address if names are replaced.
func (f *follower) source() string {
	if f.Redact {
		return "a source of the usage of pods"
	}
	return f.Usage.String()
}

// Recordings returns the names of the recordings that Follow wrote to a folder, in the order of time.
func Recordings(folder string) (names []string, err error) {
	entries, err := os.ReadDir(folder)
	for _, entry := range entries {
		stem, ok := strings.CutSuffix(entry.Name(), suffix)
		if _, err := time.Parse(nameFormat, stem); ok && err == nil {
			names = append(names, filepath.Join(folder, entry.Name()))
		}
	}
	return names, err
}

// StartOf returns the time at which a recording of Follow started, from its name.
func StartOf(name string) time.Time {
	at, _ := time.Parse(nameFormat, strings.TrimSuffix(filepath.Base(name), suffix))
	return at
}

// recordings returns the names of the recordings in the folder.
func (f *follower) recordings() ([]string, error) { return Recordings(f.Folder) }

// prune removes the oldest recordings until all together take at most half of MaxBytes: the current recording may take the other half.
func (f *follower) prune() error {
	names, err := f.recordings()
	if err != nil {
		return err
	}
	total := int64(0)
	for _, name := range slices.Backward(names) {
		info, err := os.Stat(name)
		if err != nil {
			return err
		}
		if total += info.Size(); total > f.MaxBytes/2 && name != f.current.file.Path() {
			if err := recording.Discard(name); err != nil {
				return err
			}
			f.Log("removed " + name)
		}
	}
	return nil
}
