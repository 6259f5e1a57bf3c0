package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/plimsoll-k8s/plimsoll/internal/demo"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/compare"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/engine"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/record"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording/kinds"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/shadow"
	"github.com/plimsoll-k8s/plimsoll/load"
)

const (
	// Shadow is the name of the scenario of plimsoll shadow: it follows the demo's cluster, in which kube-scheduler's default profile
	// places pods, with a minute recorded as an hour, and ends with the verdict.
	Shadow = "shadow"
	// ShadowShows describes the scenario.
	ShadowShows = "what predicted would have avoided, while the default profile places pods; a minute counts as an hour"

	// shadowSpeed is the number of recorded seconds for each second, shadowWindow the recorded length of a window.
	shadowSpeed  = 60
	shadowWindow = 10 * time.Minute
	// maxWindows bounds the demo.
	maxWindows = 12
)

// busyPod and idlePod run from the start: one uses much and requests little, the other one the opposite.
var (
	busyPod = demo.Pod{Name: "busy-app", Node: "busy", Request: "50m"}
	idlePod = demo.Pod{Name: "idle-app", Node: "idle", Request: "1200m"}
)

// usageOf is what a pod uses, in millicores, by the start of its name.
func usageOf(name string) float64 {
	switch name {
	case busyPod.Name:
		return 1700
	case idlePod.Name:
		return 10
	}
	return 400
}

// meter measures the usage of the running pods.
type meter struct{ client kubernetes.Interface }

// String returns the name of the source.
func (meter) String() string { return "the demo" }

// ReadPods returns the usage of the running pods.
func (m meter) ReadPods(ctx context.Context) (load.PodReading, error) {
	r := load.PodReading{Time: time.Now()}
	pods, err := m.client.CoreV1().Pods(demo.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return r, err
	}
	for i := range pods.Items {
		if p := &pods.Items[i]; p.Status.Phase == v1.PodRunning {
			r.Pods = append(r.Pods, load.PodUsage{Namespace: p.Namespace, Name: p.Name, CPU: usageOf(p.Name), Memory: 64 << 20})
		}
	}
	return r, nil
}

// RunShadow runs the scenario, and returns its verdict as the result. run runs the replays in processes.
func RunShadow(ctx context.Context, env *demo.Environment, run compare.Run, progress func(string)) ([]demo.Result, error) {
	if err := env.Clear(ctx); err != nil {
		return nil, err
	}
	for _, name := range []string{"busy", "idle"} {
		if err := env.API.Create(ctx, demo.Node{Name: name, CPU: "2"}.Object()); err != nil {
			return nil, err
		}
	}
	for _, pod := range []demo.Pod{busyPod, idlePod} {
		if err := env.API.Create(ctx, pod.Object(demo.DefaultProfile)); err != nil {
			return nil, err
		}
	}
	folder, err := os.MkdirTemp("", "plimsoll-demo-shadow-*")
	if err != nil {
		return nil, err
	}
	var running sync.WaitGroup
	ctx, stop := context.WithCancel(ctx)
	defer func() {
		stop()
		running.Wait() // otherwise files would be written after the folder has been removed
		_ = os.RemoveAll(folder)
	}()
	files, ended := make(chan string, maxWindows), make(chan error, 2)
	running.Go(func() { ended <- createJobs(ctx, env) })
	running.Go(func() {
		ended <- record.Follow(ctx, record.FollowConfig{
			Folder: folder, Step: time.Minute, Rotate: shadowWindow, MaxBytes: 1 << 30, Client: env.Client, Usage: meter{env.Client},
			Speed: shadowSpeed, Epoch: time.Now().Add(-time.Minute), Log: func(string) {},
			Objects: func(ctx context.Context) (*record.Cluster, error) {
				return record.ReadCluster(ctx, env.Access, record.ReadOptions{Areas: []string{kinds.AreaCluster}})
			},
			Finished: func(name string) {
				select {
				case files <- name:
				default: // the demo has enough windows
				}
			},
		})
	})
	return shadowVerdict(ctx, files, ended, run, progress)
}

// createJobs creates a pod every two seconds, each of which runs for six seconds.
func createJobs(ctx context.Context, env *demo.Environment) error {
	ticker := time.NewTicker(2 * time.Second)
	defer ticker.Stop()
	for i := 0; ; i++ {
		if err := env.API.Create(ctx, demo.Pod{Name: fmt.Sprint("job-", i), Request: "100m"}.Object(demo.DefaultProfile)); err != nil {
			return err
		}
		if i >= 3 {
			if err := env.DeletePod(ctx, fmt.Sprint("job-", i-3)); err != nil {
				return err
			}
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// shadowVerdict replays windows until the answer is known.
func shadowVerdict(
	ctx context.Context, files <-chan string, ended <-chan error, run compare.Run, progress func(string),
) ([]demo.Result, error) {
	current, err := engine.ReadConfig("default")
	if err != nil {
		return nil, err
	}
	predicted, err := engine.ReadConfig("predicted")
	if err != nil {
		return nil, err
	}
	shown := demo.Result{Scenario: Shadow, Profile: demo.DefaultProfile, Want: string(result.Better)}
	var windows []*shadow.Window
	for len(windows) < maxWindows {
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case err := <-ended:
			return nil, errors.Join(errors.New("the shadow has ended"), err)
		case file := <-files:
			w, err := shadow.Replay(ctx, file, []engine.NamedConfig{current, predicted}, run)
			if err != nil {
				return nil, err
			}
			windows = append(windows, w)
			now := w.To
			if w.Error != "" {
				return nil, errors.New(w.Error)
			}
			r := shadow.NewReport(windows, now.AddDate(0, 0, -1), now)
			v := r.Verdicts[0]
			progress(v.Sentence)
			shown.Pod, shown.Node, shown.OK = strings.TrimSuffix(v.Sentence, "."), string(v.Answer), v.Answer == result.Better
			if shown.OK {
				return []demo.Result{shown}, nil
			}
		}
	}
	return []demo.Result{shown}, nil
}
