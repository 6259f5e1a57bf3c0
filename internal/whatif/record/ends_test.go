package record

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// finished returns a pod that failed without containers, as a pod that was evicted or refused by its kubelet.
func finished(pod *v1.Pod, version string) *v1.Pod {
	pod = pod.DeepCopy()
	pod.Status.Phase, pod.ResourceVersion = v1.PodFailed, version
	return pod
}

// TestEnds records one pod in steps of ten seconds, each with the time of its end. A watch removes a pod from its store before it
// reports the removal, so that a view can lack the pod before it has the removal.
func TestEnds(t *testing.T) {
	pod := newPod("p", "a", after(-5))
	removed := func(pod *v1.Pod, seconds int) []removal { return []removal{{pod, after(seconds)}} }
	existing, failed := []*v1.Pod{pod}, []*v1.Pod{finished(pod, "2")}
	for name, tc := range map[string]struct {
		views []view
		want  int64
	}{
		"removal in the view without the pod": {[]view{{pods: existing}, {removed: removed(pod, 7)}, {}}, 7},
		"removal one view later":              {[]view{{pods: existing}, {}, {removed: removed(pod, 7)}, {}}, 7},
		"no removal, seen last at 10 s":       {[]view{{pods: existing}, {pods: existing}, {}, {}}, 10},
		"failed at 10 s without containers":   {[]view{{pods: existing}, {pods: failed}, {pods: failed}}, 10},
		"failed and changed later":            {[]view{{pods: existing}, {pods: failed}, {pods: []*v1.Pod{finished(pod, "3")}}}, 10},
		"failed and removed one view later":   {[]view{{pods: existing}, {pods: failed}, {}, {removed: removed(failed[0], 17)}, {}}, 10},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "r.ndjson.gz")
			r := newRecorder(t, path, begin)
			for i, v := range tc.views {
				v.at = after(10 * i)
				must.Succeed(t, r.observe(v))
			}
			must.Succeed(t, errors.Join(r.commit(), r.file.Finish()))
			got, err := recording.Open(path)
			must.Succeed(t, err)
			if len(got.Pods) != 1 || got.Pods[0].Ended != tc.want {
				t.Errorf("%d pods, the first ended at %d, want 1 pod that ended at %d", len(got.Pods), got.Pods[0].Ended, tc.want)
			}
		})
	}
}

// TestRemovedWhileClockIsBack deletes a pod before a step that is skipped, because the clock was set back by a second.
func TestRemovedWhileClockIsBack(t *testing.T) {
	f := newFollowing(t.TempDir())
	f.at(t, 0)
	f.at(t, 10)
	f.deleted(newPod("short", "a", after(9)))
	f.at(t, 9)
	f.at(t, 11)
	must.Succeed(t, f.end())
	if pods := f.recorded(t)[0].Pods; len(pods) != 1 || pods[0].Ended != 10 {
		t.Errorf("pods %+v, want one that ended at 10 s", pods)
	}
}

// TestHole has usage before and after a hole of 11 days: no usage is kept in memory for the time between.
func TestHole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.ndjson.gz")
	r := newRecorder(t, path, begin)
	pods := []*v1.Pod{newPod("p", "a", after(0))}
	for _, seconds := range []int{0, 1_000_000} {
		must.Succeed(t, r.observe(view{at: after(seconds), pods: pods, usage: reading("p")}))
	}
	if u := r.usage["uid-p"]; u == nil || u.cpu.Len() != 1 || u.memory.Len() != 1 {
		t.Errorf("usage in memory: %+v, want one value", u)
	}
	must.Succeed(t, errors.Join(r.commit(), r.file.Finish()))
	got, err := recording.Open(path)
	must.Succeed(t, err)
	for step, want := range map[int]bool{0: true, 50_000: false, 100_000: true} {
		if _, ok := got.Pods[0].CPU.At(step); ok != want {
			t.Errorf("step %d: usage %v, want %v", step, ok, want)
		}
	}
}

// TestFollowForbidden expects an error in place of a watch that is repeated for ever.
func TestFollowForbidden(t *testing.T) {
	for _, kind := range []string{"pods", "nodes"} {
		client := fake.NewClientset()
		client.PrependReactor("list", kind, func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: kind}, "", errors.New("no rule allows it"))
		})
		err := Follow(t.Context(), FollowConfig{
			Folder: t.TempDir(), Step: time.Second, Rotate: time.Minute, MaxBytes: 1 << 20, Client: client, Log: func(string) {},
		})
		if err == nil || !strings.Contains(err.Error(), kind+" is forbidden: no rule allows it") {
			t.Errorf("%s: error %v", kind, err)
		}
	}
}

// TestRedactedErrors checks that a recording with pseudonyms has no text of the API server.
func TestRedactedErrors(t *testing.T) {
	for redact, want := range map[bool]string{
		false: "they could not be read: dial secret.example.com", true: "they could not be read: " + withoutText,
	} {
		f := newFollowing(t.TempDir())
		f.Redact = redact
		f.Objects = func(context.Context) (*Cluster, error) { return nil, errors.New("dial secret.example.com") }
		f.at(t, 0)
		must.Succeed(t, f.end())
		if missing := fmt.Sprint(f.recorded(t)[0].About.Missing); !strings.Contains(missing, want) {
			t.Errorf("redact %v: %s, want %s", redact, missing, want)
		}
	}
}
