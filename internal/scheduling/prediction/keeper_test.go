package prediction

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	"github.com/plimsoll-k8s/plimsoll/internal/kube"
	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/predict"
	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// learner records the calls of its methods.
type learner struct {
	mu        sync.Mutex
	workloads []predict.Past
	restored  time.Time
	replayed  []time.Time
}

func (l *learner) Replay(r *load.PodReading) { l.replayed = append(l.replayed, r.Time) }

func (l *learner) Workloads() []predict.Past {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.workloads
}

func (l *learner) Known() (workloads int, newest time.Time) {
	return len(l.Workloads()), l.restored
}

func (l *learner) Restore(workloads []predict.Past, saved, _ time.Time) (ignored int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.workloads, l.restored = append(l.workloads, workloads...), saved
	return 0
}

// past is a source that has readings from a time on.
type past struct {
	from time.Time
	err  error
}

func (p past) ReadPods(context.Context) (load.PodReading, error) { return load.PodReading{}, nil }
func (past) String() string                                      { return "a test" }
func (p past) ReadPodsAt(_ context.Context, at time.Time) (load.PodReading, error) {
	switch {
	case p.err != nil && !at.Before(p.from):
		return load.PodReading{}, p.err
	case p.err == nil && at.Before(p.from):
		return load.PodReading{}, &load.Error{Reason: load.Empty, Err: errors.New("no data")}
	}
	return load.PodReading{Time: at}, nil
}

// TestRebuild checks the times of the readings: 24 hours at steps of half an hour have 48, and times without data are left out.
func TestRebuild(t *testing.T) {
	for name, tc := range map[string]struct {
		source  past
		want    int
		wantErr string
	}{
		"a day of data":   {past{from: noon.Add(-48 * time.Hour)}, 48, ""},
		"since 10:15":     {past{from: noon.Add(-105 * time.Minute)}, 3, ""}, // 10:30, 11:00, 11:30
		"no data":         {past{from: noon}, 0, ""},
		"fails from 9:00": {past{noon.Add(-3 * time.Hour), errors.New("refused")}, 42, "reading past usage of pods from a test: refused"},
	} {
		l := &learner{}
		readings, err := rebuild(t.Context(), tc.source, noon, rebuildSpan, rebuildStep, l.Replay)
		if readings != tc.want || len(l.replayed) != tc.want || fmt.Sprint(err) != tc.wantErr && (err != nil || tc.wantErr != "") {
			t.Errorf("%s: %d readings, %v; want %d, %q", name, readings, err, tc.want, tc.wantErr)
		}
		for i := 1; i < len(l.replayed); i++ {
			if l.replayed[i].Sub(l.replayed[i-1]) != 30*time.Minute {
				t.Errorf("%s: readings at %s and %s", name, l.replayed[i-1], l.replayed[i])
			}
		}
	}
}

// keeperOf returns a keeper for a ConfigMap that exists with some data.
func keeperOf(
	t *testing.T,
	l *learner,
	now *time.Time,
	data map[string][]byte,
	annotations map[string]string,
) (*HistoryKeeper, *fake.Clientset) {
	t.Helper()
	client := fake.NewClientset(&v1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "history", Annotations: annotations}, BinaryData: data,
	})
	return NewHistoryKeeper(HistoryOptions{
		Learner: l, ConfigMaps: client.CoreV1().ConfigMaps("kube-system"), Name: "history", Now: func() time.Time { return *now },
	}), client
}

// TestSaveAndRestore saves a history and restores it in another process.
func TestSaveAndRestore(t *testing.T) {
	logger, ctx := ktesting.NewTestContext(t)
	now := noon
	first := &learner{workloads: []predict.Past{workload("a", 3), workload("b", 5)}}
	k, client := keeperOf(t, first, &now, map[string][]byte{"other": []byte("kept")}, nil)
	k.Start(ctx)
	must.Succeed(t, k.save(ctx, logger, saveInterval))
	if saved := k.State(); !saved.Saved.Equal(noon) || saved.SavedBytes == 0 || saved.Dropped != 0 {
		t.Errorf("%+v", saved)
	}
	object, err := client.CoreV1().ConfigMaps("kube-system").Get(ctx, "history", metav1.GetOptions{})
	if err != nil || string(object.BinaryData["other"]) != "kept" {
		t.Errorf("other data is lost: %v", err)
	}
	second := &learner{}
	now = noon.Add(time.Hour)
	NewHistoryKeeper(HistoryOptions{Learner: second, ConfigMaps: client.CoreV1().ConfigMaps("kube-system"), Name: "history"}).Start(ctx)
	if diff := cmp.Diff([]predict.Past{workload("b", 5), workload("a", 3)}, second.workloads, rounded); diff != "" ||
		!second.restored.Equal(noon) {
		t.Errorf("restored as of %s: %s", second.restored, diff)
	}
}

// rounded compares values with four digits.
var rounded = cmp.Comparer(func(a, b float64) bool { return a-b <= 1e-3*max(a, b) && b-a <= 1e-3*max(a, b) })

// TestSaveInterval checks that a replica does not save within five minutes of another one, unless it stops.
func TestSaveInterval(t *testing.T) {
	logger, ctx := ktesting.NewTestContext(t)
	saved := func(at time.Time) map[string]string {
		return map[string]string{kube.SavedAnnotation: at.Format(time.RFC3339)}
	}
	for name, tc := range map[string]struct {
		annotations map[string]string
		interval    time.Duration
		want        bool
	}{
		"first":             {nil, saveInterval - margin, true},
		"2 minutes before":  {saved(noon.Add(-2 * time.Minute)), saveInterval - margin, false},
		"5 minutes before":  {saved(noon.Add(-5 * time.Minute)), saveInterval - margin, true},
		"at the end":        {saved(noon.Add(-time.Second)), 0, true},
		"from the future":   {saved(noon.Add(time.Hour)), saveInterval - margin, true},
		"not a time at all": {map[string]string{kube.SavedAnnotation: "yesterday"}, saveInterval - margin, true},
	} {
		now := noon
		k, client := keeperOf(t, &learner{}, &now, nil, tc.annotations)
		must.Succeed(t, k.save(ctx, logger, tc.interval))
		updates := 0
		for _, action := range client.Actions() {
			if action.GetVerb() == "update" {
				updates++
			}
		}
		if (updates == 1) != tc.want {
			t.Errorf("%s: %d writes, want one: %t", name, updates, tc.want)
		}
	}
}

// TestSavedDoesNotWait checks that a scrape of the metrics does not wait for a save whose request takes long.
func TestSavedDoesNotWait(t *testing.T) {
	logger, ctx := ktesting.NewTestContext(t)
	now := noon
	k, client := keeperOf(t, &learner{}, &now, nil, nil)
	var during History
	client.PrependReactor("update", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
		during = k.State()
		return false, nil, nil
	})
	must.Succeed(t, k.save(ctx, logger, 0))
	if after := k.State(); !during.Saved.IsZero() || !after.Saved.Equal(noon) {
		t.Errorf("saved at %s during the first save, at %s after it", during.Saved, after.Saved)
	}
}

// TestInvalidContentIsIgnored checks that invalid content is logged, and replaced by the next save.
func TestInvalidContentIsIgnored(t *testing.T) {
	good, _, err := EncodeHistory([]predict.Past{workload("a", 3)}, kube.MaxSaved)
	must.Succeed(t, err)
	for name, tc := range map[string]struct {
		data        []byte
		annotations map[string]string
	}{
		"not a history": {[]byte("hello"), map[string]string{kube.SavedAnnotation: noon.Add(-time.Hour).Format(time.RFC3339)}},
		"no time":       {good, nil},
		"of the future": {good, map[string]string{kube.SavedAnnotation: noon.Add(time.Hour).Format(time.RFC3339)}},
	} {
		logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))
		ctx := klog.NewContext(t.Context(), logger)
		now, l := noon, &learner{}
		k, client := keeperOf(t, l, &now, map[string][]byte{HistoryKey: tc.data}, tc.annotations)
		k.Start(ctx)
		if l.workloads != nil {
			t.Errorf("%s: restored %+v", name, l.workloads)
		}
		if buffer, ok := logger.GetSink().(ktesting.Underlier); !ok || !strings.Contains(buffer.GetBuffer().String(), "is ignored") {
			t.Errorf("%s: not logged", name)
		}
		l.workloads = []predict.Past{workload("b", 1)}
		must.Succeed(t, k.save(ctx, logger, saveInterval))
		object, err := client.CoreV1().ConfigMaps("kube-system").Get(ctx, "history", metav1.GetOptions{})
		must.Succeed(t, err)
		if got, err := decodeHistory(object.BinaryData[HistoryKey]); err != nil || len(got) != 1 || got[0].Name != "b" {
			t.Errorf("%s: saved %+v, %v", name, got, err)
		}
	}
}

// TestHistoryIsNotOverwrittenUnread checks that a keeper that could not read the ConfigMap at start restores it before it
// saves.
func TestHistoryIsNotOverwrittenUnread(t *testing.T) {
	logger, ctx := ktesting.NewTestContext(t)
	data, _, err := EncodeHistory([]predict.Past{workload("a", 3)}, kube.MaxSaved)
	must.Succeed(t, err)
	now, l := noon, &learner{workloads: []predict.Past{workload("b", 1)}}
	k, client := keeperOf(
		t, l, &now, map[string][]byte{HistoryKey: data}, map[string]string{kube.SavedAnnotation: noon.Add(-time.Hour).Format(time.RFC3339)},
	)
	failing := true
	client.PrependReactor("get", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
		return failing, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "history", errors.New("no"))
	})
	k.Start(ctx)
	if err := k.save(ctx, logger, 0); err == nil || !strings.Contains(err.Error(), "RBAC must permit get and update of this ConfigMap") {
		t.Errorf("error %v", err)
	}
	failing = false
	must.Succeed(t, k.save(ctx, logger, 0))
	object, err := client.CoreV1().ConfigMaps("kube-system").Get(ctx, "history", metav1.GetOptions{})
	must.Succeed(t, err)
	if got, err := decodeHistory(object.BinaryData[HistoryKey]); err != nil || len(got) != 2 {
		t.Errorf("saved %+v, %v; want both workloads", got, err)
	}
}

// TestPastComesFirst checks that the ConfigMap is read only if the source has no past readings.
func TestPastComesFirst(t *testing.T) {
	_, ctx := ktesting.NewTestContext(t)
	data, _, err := EncodeHistory([]predict.Past{workload("a", 3)}, kube.MaxSaved)
	must.Succeed(t, err)
	for name, tc := range map[string]struct {
		source              past
		replayed, workloads int
	}{
		"a day":   {past{from: noon.Add(-24 * time.Hour)}, 48, 0},
		"nothing": {past{from: noon}, 0, 1},
		"failing": {past{noon.Add(-48 * time.Hour), errors.New("refused")}, 0, 1},
	} {
		now, l := noon, &learner{}
		k, _ := keeperOf(t, l, &now, map[string][]byte{HistoryKey: data},
			map[string]string{kube.SavedAnnotation: noon.Add(-time.Hour).Format(time.RFC3339)})
		k.options.Past = tc.source
		k.Start(ctx)
		if len(l.replayed) != tc.replayed || len(l.workloads) != tc.workloads {
			t.Errorf("%s: %d readings and %d workloads, want %d and %d", name, len(l.replayed), len(l.workloads), tc.replayed, tc.workloads)
		}
	}
}

func TestMissingConfigMap(t *testing.T) {
	logger, ctx := ktesting.NewTestContext(t)
	k := NewHistoryKeeper(
		HistoryOptions{Learner: &learner{}, ConfigMaps: fake.NewClientset().CoreV1().ConfigMaps("kube-system"), Name: "history"},
	)
	k.Start(ctx)
	if err := k.save(ctx, logger, 0); err == nil || !strings.Contains(err.Error(), "create an empty ConfigMap of this name") {
		t.Errorf("error %v", err)
	}
}
