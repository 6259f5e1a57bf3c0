package replay

import (
	"strings"
	"testing"

	internalconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"

	"github.com/plimsoll-k8s/plimsoll/internal/manifest"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// TestIgnoredResources checks two pods of 3 CPU on a node of 4 CPU, with a resource that no node has and that kube-scheduler ignores: the
// second pod gets the node when the first one ends.
func TestIgnoredResources(t *testing.T) {
	const spec = `containers: [{name: main, image: db, resources: {requests: {cpu: "3", topolvm.io/capacity: "1"}, ` +
		`limits: {topolvm.io/capacity: "1"}}}]`
	fitArgsOf := func(c *internalconfig.KubeSchedulerConfiguration) *internalconfig.NodeResourcesFitArgs {
		for _, plugin := range c.Profiles[0].PluginConfig {
			if args, ok := plugin.Args.(*internalconfig.NodeResourcesFitArgs); ok {
				return args
			}
		}
		panic("no NodeResourcesFit")
	}
	for name, test := range map[string]struct {
		change    func(*internalconfig.KubeSchedulerConfiguration)
		scheduled int
	}{
		"not ignored": {func(*internalconfig.KubeSchedulerConfiguration) {}, 0},
		"extender": {func(c *internalconfig.KubeSchedulerConfiguration) {
			c.Extenders = []internalconfig.Extender{{ManagedResources: []internalconfig.ExtenderManagedResource{
				{Name: "other.io/x", IgnoredByScheduler: true}, {Name: "topolvm.io/capacity", IgnoredByScheduler: true},
			}}}
		}, 2},
		"extender that does not ignore": {func(c *internalconfig.KubeSchedulerConfiguration) {
			c.Extenders = []internalconfig.Extender{{ManagedResources: []internalconfig.ExtenderManagedResource{{Name: "topolvm.io/capacity"}}}}
		}, 0},
		"argument": {func(c *internalconfig.KubeSchedulerConfiguration) {
			fitArgsOf(c).IgnoredResources = []string{"topolvm.io/capacity"}
		}, 2},
		"group": {func(c *internalconfig.KubeSchedulerConfiguration) {
			fitArgsOf(c).IgnoredResourceGroups = []string{"topolvm.io"}
		}, 2},
	} {
		objects, err := manifest.Read([]string{"-"},
			strings.NewReader(poolNode("a")+podOn("db-0", "", "db", spec)+podOn("db-1", "", "db", spec)))
		must.Succeed(t, err)
		in := recording.Source{}.FromManifests(objects)
		in.Pods[0].Duration = 120
		o := options(t, "default", "constant:mean=1", 1)
		test.change(o.Config)
		run := outcomeOf(t, in, o)
		if run.Scheduled != test.scheduled || test.scheduled > 0 && run.PendingSeconds.Max != 120 {
			t.Errorf("%s: %d scheduled, pending %+v, %v", name, run.Scheduled, run.PendingSeconds, run.Reasons)
		}
	}
}
