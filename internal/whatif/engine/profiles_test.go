package engine

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/events"
	"k8s.io/kubernetes/pkg/scheduler"

	"github.com/plimsoll-k8s/plimsoll/plugins"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
	"github.com/plimsoll-k8s/plimsoll/test/support/schedtest"
)

// TestBuiltIn verifies that every built-in profile is listed and valid.
func TestBuiltIn(t *testing.T) {
	files, err := ready.ReadDir("ready")
	must.Succeed(t, err)
	if len(files) != len(BuiltInProfiles) {
		t.Errorf("%d files, %d names", len(files), len(BuiltInProfiles))
	}
	for _, name := range BuiltInProfiles {
		profile, err := ReadConfig(name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		config, err := profile.Config()
		if err != nil {
			t.Error(err)
			continue
		}
		if _, err := New(t.Context(), Cluster{}, Options{Config: config}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRead(t *testing.T) {
	file := filepath.Join(t.TempDir(), "scheduler.yaml")
	must.Succeed(t, os.WriteFile(file, []byte("apiVersion: kubescheduler.config.k8s.io/v1\nkind: Other\n"), 0o600))
	profile, err := ReadConfig(file)
	must.Succeed(t, err)
	if _, err := profile.Config(); err == nil || !strings.HasPrefix(err.Error(), file) {
		t.Errorf("%v, want the file name as the prefix", err)
	}
	if _, err := ReadConfig("limit"); err == nil || !strings.Contains(err.Error(), "or one of default, most-allocated, limits") {
		t.Errorf("%v, want the names of the profiles", err)
	}
}

// TestBatch verifies that kube-scheduler can batch equal pods with the profile batch: all its plugins sign them.
// With the default constraints of PodTopologySpread it cannot.
func TestBatch(t *testing.T) {
	for name, want := range map[string]bool{"batch": true, "limits": false, "default": false} {
		profile, err := ReadConfig(name)
		must.Succeed(t, err)
		config, err := profile.Config()
		must.Succeed(t, err)
		client := fake.NewClientset()
		sched, err := scheduler.New(t.Context(), client, informers.NewSharedInformerFactory(client, 0), nil,
			func(string) events.EventRecorderLogger { return events.NewFakeRecorder(0) },
			scheduler.WithProfiles(config.Profiles...), scheduler.WithFrameworkOutOfTreeRegistry(plugins.Registry()))
		must.Succeed(t, err)
		pod := schedtest.CPU("p", "", "1", "2")
		if got := sched.Profiles[v1.DefaultSchedulerName].SignPod(t.Context(), pod) != nil; got != want {
			t.Errorf("%s: signs pods: %t, want %t", name, got, want)
		}
	}
}
