package tune

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/plimsoll-k8s/plimsoll/internal/whatif/engine"
	"github.com/plimsoll-k8s/plimsoll/plugins/noderesourceslimits"
	"github.com/plimsoll-k8s/plimsoll/plugins/predictedutilization"
)

var update = flag.Bool("update", false, "update testdata")

// configurations in force of the tests: without anything, with weights under multiPoint, with all scores disabled, with values outside of the
// space, and with several profiles.
var configurations = map[string]string{
	"default": "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n",
	"multiPoint": `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: mine
  plugins:
    multiPoint:
      enabled: [{name: PredictedUtilization, weight: 5}, {name: NodeResourcesFit, weight: 2}]
      disabled: [{name: NodeResourcesFit}]
    score:
      disabled: [{name: NodeResourcesBalancedAllocation}]
  pluginConfig:
  - name: PredictedUtilization
    args: {deviations: 2, watcherAddress: "http://mine:2020"}
`,
	"all disabled": `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: true}
profiles:
- plugins:
    score:
      disabled: [{name: "*"}]
      enabled: [{name: LowRiskOverCommitment, weight: 1}]
  pluginConfig:
  - name: LowRiskOverCommitment
    args: {riskLimitWeight: 0.25, metricProvider: {type: KubernetesMetricsServer}}
`,
	"outside": `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    score:
      enabled: [{name: NodeResourcesLimits, weight: 4}, {name: NodeResourcesFit, weight: 7}]
  pluginConfig:
  - name: NodeResourcesFit
    args:
      scoringStrategy:
        type: RequestedToCapacityRatio
        resources: [{name: cpu, weight: 1}]
        requestedToCapacityRatio: {shape: [{utilization: 0, score: 0}, {utilization: 100, score: 10}]}
`,
	"two profiles": `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: other
- schedulerName: default-scheduler
  plugins:
    score:
      enabled: [{name: NodeResourcesAllocatable, weight: 1}]
  pluginConfig:
  - {name: NodeResourcesAllocatable, args: {mode: Most}}
`,
}

func mustCurrent(t interface {
	Helper()
	Fatal(args ...any)
}, name, text string,
) *current {
	t.Helper()
	c, err := newCurrent(engine.NamedConfig{Name: name, Text: []byte(text)})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestPoints verifies the points of configurations, by the values of their dimensions.
func TestPoints(t *testing.T) {
	for name, want := range map[string]string{
		"default":      "fit 1 (LeastAllocated), balanced 1",
		"multiPoint":   "fit 2 (LeastAllocated), predicted 5 (deviations 2)",
		"all disabled": "low-risk 1 (limit weight 0.25)",
		// 4 is nearer to 5 than to 2, 7 is nearest to 2; the strategy is not in the space.
		"outside":      "fit 2 (LeastAllocated), balanced 1, limits 5",
		"two profiles": "fit 1 (LeastAllocated), balanced 1, allocatable 1 (Most)",
	} {
		if got := mustCurrent(t, name, configurations[name]).point.String(); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// TestStartPoints verifies that the search begins with the built-in profiles.
func TestStartPoints(t *testing.T) {
	points, err := startPoints()
	if err != nil {
		t.Fatal(err)
	}
	var settings []string
	for _, p := range points {
		settings = append(settings, p.String())
	}
	for _, want := range []string{
		"fit 1 (LeastAllocated), balanced 1",
		"fit 1 (MostAllocated)",
		"balanced 1, limits 1",
		"allocatable 1 (Least)",
		"fit 1 (LeastAllocated), balanced 1, low-risk 2 (limit weight 0.5)",
		"fit 1 (LeastAllocated), balanced 1, predicted 5 (deviations 1)",
	} {
		if !slices.Contains(settings, want) {
			t.Errorf("%q is not among %q", want, settings)
		}
	}
}

// TestTermsBecomeWeights checks that a profile with terms of requests gets plugins with weights when a setting changes.
func TestTermsBecomeWeights(t *testing.T) {
	read, err := engine.ReadConfig("predicted")
	if err != nil {
		t.Fatal(err)
	}
	c, err := newCurrent(read)
	if err != nil {
		t.Fatal(err)
	}
	p := c.point
	p[slices.IndexFunc(Space[:], func(d Dimension) bool { return d.Plugin == balancedPlugin })] = 0
	changed, err := c.at(p)
	if err != nil {
		t.Fatal(err)
	}
	again, err := newCurrent(changed)
	if err != nil {
		t.Fatal(err)
	}
	if again.point != p || again.hasTerms {
		t.Errorf("got %s, want %s\n%s", again.point, p, changed.Text)
	}
}

// points generates points of the space.
func points(t *rapid.T) Point {
	var p Point
	for d := range Space {
		p[d] = rapid.IntRange(0, len(Space[d].Values)-1).Draw(t, "value")
	}
	return p
}

// TestConfigurations verifies that the configuration of a point, decoded as the scheduler decodes it, has the settings of the point, and
// that the configuration of the point in force is the configuration in force.
func TestConfigurations(t *testing.T) {
	for name, text := range configurations {
		c := mustCurrent(t, name, text)
		rapid.Check(t, func(t *rapid.T) {
			p := points(t)
			changed, err := c.at(p)
			if err != nil {
				t.Fatal(err)
			}
			if got := mustCurrent(t, name, string(changed.Text)); got.point != p || got.index != c.index {
				t.Fatalf("%s: %s has the settings %s in\n%s", name, p, got.point, changed.Text)
			}
		})
	}
}

// TestUntouched verifies that other profiles, load sources and the leader election remain, and that added plugins read load from the
// same source as the other plugins.
func TestUntouched(t *testing.T) {
	settings := func(name string) *current { return mustCurrent(t, name, configurations[name]) }
	with := func(p Point, plugin string, index int) Point {
		for d := range Space {
			if Space[d].Plugin == plugin && Space[d].Argument == "" {
				p[d] = index
			}
		}
		return p
	}
	for _, tc := range []struct {
		name, plugin, file string
	}{
		{"default", predictedutilization.Name, "predicted.yaml"},
		{"all disabled", predictedutilization.Name, "source.yaml"},
		{"two profiles", noderesourceslimits.Name, "profiles.yaml"},
		{"multiPoint", fitPlugin, "weight.yaml"},
	} {
		c := settings(tc.name)
		changed, err := c.at(with(c.point, tc.plugin, 1))
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join("testdata", tc.file)
		if *update {
			if err := os.WriteFile(file, changed.Text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil || string(changed.Text) != string(want) {
			t.Errorf("%s (%v):\n%s\nwant\n%s", tc.file, err, changed.Text, want)
		}
	}
}

// TestNeighbors verifies that neighbors differ by one step in one dimension that has an effect, and that neighborhood is mutual between
// points with the same plugins.
func TestNeighbors(t *testing.T) {
	c := mustCurrent(t, "default", configurations["default"])
	rapid.Check(t, func(t *rapid.T) {
		r := newRegion(c.point, rapid.SliceOfDistinct(rapid.SampledFrom(Plugins()), func(s string) string { return s }).Draw(t, "excluded"))
		p, ok := r.normal(points(t))
		if !ok {
			t.Skip() // rapid draws another point; no test is skipped
		}
		for _, q := range r.neighbors(p) {
			if again, ok := r.normal(q); !ok || again != q {
				t.Fatalf("%v is not normal", q)
			}
			changed := 0
			for d := range Space {
				if p[d] != q[d] && p.matters(d) && q.matters(d) {
					changed++
					if step := p[d] - q[d]; step != 1 && step != -1 || !r.free[d] {
						t.Fatalf("dimension %d changes by %d from %v", d, step, p)
					}
				}
			}
			if changed != 1 {
				t.Fatalf("%d dimensions change from %v to %v", changed, p, q)
			}
		}
	})
}

// TestSize verifies the number of points by counting them, in regions of two plugins.
func TestSize(t *testing.T) {
	for name, text := range configurations {
		c := mustCurrent(t, name, text)
		for i, first := range Plugins() {
			for _, second := range Plugins()[:i] {
				excluded := slices.DeleteFunc(Plugins(), func(s string) bool { return s == first || s == second })
				r := newRegion(c.point, excluded)
				r.center, _ = r.normal(c.point)
				if got, want := r.size(), count(r); got != want {
					t.Errorf("%s with %s and %s: %d points, want %d", name, first, second, got, want)
				}
			}
		}
	}
}

// count returns the number of points of a region by visiting them.
func count(r region) int {
	seen := map[Point]bool{}
	var visit func(p Point, d int)
	visit = func(p Point, d int) {
		if d == len(p) {
			if p, ok := r.normal(p); ok {
				seen[p] = true
			}
			return
		}
		if !r.free[d] {
			visit(p, d+1)
			return
		}
		for i := range Space[d].Values {
			p[d] = i
			visit(p, d+1)
		}
	}
	visit(r.center, 0)
	return len(seen)
}
