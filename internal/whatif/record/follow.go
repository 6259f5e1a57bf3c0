package record

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
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
	// Log is called with a line about each recording and each failure.
	Log func(string)
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

// follower follows a cluster.
type follower struct {
	FollowConfig
	pods, nodes cache.SharedIndexInformer

	mu      sync.Mutex
	removed []removal

	current *followRecorder
	// reported is the failure that was reported last, empty if it has passed.
	reported string
}

// Follow records until the context ends, and then commits. An error is returned if the folder cannot be written.
func Follow(ctx context.Context, config FollowConfig) error {
	if err := config.Validate(); err != nil {
		return err
	}
	f := &follower{FollowConfig: config}
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

// strip removes large fields that are not recorded.
func strip(object any) (any, error) {
	if o, ok := object.(metav1.Object); ok {
		o.SetManagedFields(nil)
	}
	if pod, ok := object.(*v1.Pod); ok {
		for i := range pod.Spec.Containers {
			c := &pod.Spec.Containers[i]
			c.Env, c.Args, c.Command, c.LivenessProbe, c.ReadinessProbe, c.VolumeMounts = nil, nil, nil, nil, nil, nil
		}
	}
	return object, nil
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
		f.removed = append(f.removed, removal{pod, time.Now()})
	}
}

// loop records at each step.
func (f *follower) loop(ctx context.Context) error {
	ticker := time.NewTicker(f.Step)
	defer ticker.Stop()
	if err := f.open(ctx, time.Now()); err != nil {
		return err
	}
	for steps := 1; ; steps++ {
		if err := f.current.observe(f.view(ctx)); err != nil {
			return err
		}
		if steps%commitSteps == 1 {
			if err := f.current.commit(); err != nil {
				return err
			}
		}
		if err := f.rotate(ctx, time.Now()); err != nil {
			return err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			f.summarize()
			return errors.Join(f.current.commit(), f.current.file.Pause())
		}
	}
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
	v := view{at: time.Now()}
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
	case v.at.Sub(reading.Time) > maxAge(f.Step):
		f.failed(fmt.Sprintf("%s: measured more than %s ago", f.Usage, maxAge(f.Step)))
	default:
		v.usage = &reading
		f.reported = ""
	}
	return v
}

// timeout returns the longest time of a request.
func (f *follower) timeout() time.Duration { return max(f.Step/2, time.Second) }

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

// rotate finishes a recording after its duration or when it is large, and starts another recording.
func (f *follower) rotate(ctx context.Context, now time.Time) error {
	if now.Sub(f.current.file.About().From) < f.Rotate && f.current.file.Size() < f.MaxBytes/2 {
		return nil
	}
	if err := errors.Join(f.current.commit(), f.current.file.Finish()); err != nil {
		return err
	}
	return f.open(ctx, now)
}

// open continues the last recording. If it is finished, has another step or is too old, open starts a new recording.
func (f *follower) open(ctx context.Context, now time.Time) error {
	names, err := f.recordings()
	if err != nil {
		return err
	}
	for _, name := range slices.Backward(names) {
		if !recording.Unfinished(name) {
			break
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
		f.Log(fmt.Sprintf("not continued: %v", err))
		return false, nil
	}
	about := file.About()
	same := about.Step == int(f.Step.Seconds()) && about.Redacted == f.Redact && s.Pods != nil && s.Nodes != nil
	if !same || now.Sub(about.From) >= f.Rotate || now.Before(about.From) {
		return false, file.Finish()
	}
	f.current = newFollowRecorder(file, s)
	f.current.resumed(now)
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
	name := filepath.Join(f.Folder, now.Format(nameFormat)+suffix)
	file, err := recording.Create(name, about)
	if err != nil {
		return err
	}
	f.current = newFollowRecorder(file, s)
	for _, list := range cluster.Lists {
		if err := f.current.objects(list); err != nil {
			return err
		}
	}
	f.Log("recording " + name)
	return f.current.commit()
}

// source returns the name of the source of usage, without its address if names are replaced.
func (f *follower) source() string {
	if f.Redact {
		return "a source of the usage of pods"
	}
	return f.Usage.String()
}

// recordings returns the names of the recordings in the folder in the order of time.
func (f *follower) recordings() (names []string, err error) {
	entries, err := os.ReadDir(f.Folder)
	for _, entry := range entries {
		stem, ok := strings.CutSuffix(entry.Name(), suffix)
		if _, err := time.Parse(nameFormat, stem); ok && err == nil {
			names = append(names, filepath.Join(f.Folder, entry.Name()))
		}
	}
	return names, err
}

// prune removes the oldest recordings until all together take at most half of MaxBytes: the current recording may take the other half.
func (f *follower) prune() error {
	names, err := f.recordings()
	if err != nil {
		return err
	}
	total := int64(0)
	for i, name := range slices.Backward(names) {
		info, err := os.Stat(name)
		if err != nil {
			return err
		}
		if total += info.Size(); total > f.MaxBytes/2 && i < len(names)-1 {
			if err := recording.Discard(name); err != nil {
				return err
			}
			f.Log("removed " + name)
		}
	}
	return nil
}
