package bench

import (
	"context"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"runtime/pprof"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
	internalconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"

	"github.com/plimsoll-k8s/plimsoll/api/config"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/engine"
	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/plugins"
	"github.com/plimsoll-k8s/plimsoll/test/support/measure"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// Names of measured configurations in addition to profiles.Names.
const (
	// byDefault is the profile that all other configurations are compared with.
	byDefault = "default"
	// withAll is the default profile with all plugins of Plimsoll, withNothing with as many plugins
	// that do nothing, withOneNothing with one of them.
	withAll, withNothing, withOneNothing = "all", "nothing", "one-nothing"
)

// configurationNames returns the names of all configurations: the built-in profiles, the default
// profile with all plugins, with as many plugins that do nothing, and with one of them.
func configurationNames() []string {
	return append(slices.Clone(engine.BuiltInProfiles), withAll, withNothing, withOneNothing)
}

// selection restricts the configurations that are measured.
var selection = flag.String("configurations", strings.Join(configurationNames(), ","),
	"the configurations that BenchmarkScheduler compares: built-in profiles, all, nothing and one-nothing")

// rounds is the number of blocks of pods that each configuration schedules.
var rounds = flag.Int("rounds", 300, "the number of rounds of BenchmarkScheduler")

// selectedNames returns the names of the selected configurations, the default profile first.
func selectedNames() []string {
	names := []string{byDefault}
	for name := range strings.SplitSeq(*selection, ",") {
		if name != byDefault {
			names = append(names, name)
		}
	}
	return names
}

// configurationOf returns the scheduler configuration of a name.
func configurationOf(tb testing.TB, name string) *internalconfig.KubeSchedulerConfiguration {
	tb.Helper()
	var enabled []string
	switch name {
	case withAll:
		for _, plugin := range plugins.All {
			enabled = append(enabled, "{name: "+plugin.Name+"}")
		}
	case withNothing, withOneNothing:
		for i := range plugins.All {
			enabled = append(enabled, "{name: "+nothingName(i)+"}")
		}
		if name == withOneNothing {
			enabled = enabled[:1]
		}
	default:
		profile, err := engine.ReadConfig(name)
		must.Succeed(tb, err)
		cfg, err := profile.Config()
		must.Succeed(tb, err)
		return cfg
	}
	file := filepath.Join(tb.TempDir(), "scheduler.yaml")
	content := fmt.Sprintf("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"+
		"profiles: [{plugins: {multiPoint: {enabled: [%s]}}}]\n", strings.Join(enabled, ", "))
	must.Succeed(tb, os.WriteFile(file, []byte(content), 0o600))
	cfg, err := config.Load(file)
	must.Succeed(tb, err)
	return cfg
}

// nothing is a Score plugin without function, to measure the cost of a plugin in the framework itself.
type nothing struct{ name string }

func (n nothing) Name() string { return n.name }

func (n nothing) Score(context.Context, fwk.CycleState, *v1.Pod, fwk.NodeInfo) (int64, *fwk.Status) {
	return 0, nil
}

func (n nothing) ScoreExtensions() fwk.ScoreExtensions { return nil }

func (n nothing) SignPod(context.Context, *v1.Pod) ([]fwk.SignFragment, *fwk.Status) { return nil, nil }

func nothingName(i int) string { return fmt.Sprint("Nothing", i+1) }

// nothingRegistry returns the constructors of as many plugins without function as All has plugins.
func nothingRegistry() frameworkruntime.Registry {
	registry := frameworkruntime.Registry{}
	for i := range plugins.All {
		registry[nothingName(i)] = func(context.Context, apiruntime.Object, fwk.Handle) (fwk.Plugin, error) {
			return nothing{nothingName(i)}, nil
		}
	}
	return registry
}

// newCluster returns a cluster with load data for all nodes.
func newCluster(nodes, podsPerNode int) (engine.Cluster, *load.Reading) {
	cluster := engine.Cluster{}
	reading := &load.Reading{Time: time.Now(), Window: 15 * time.Minute, Nodes: map[string]load.Node{}}
	for i := range nodes {
		node := newNode(i)
		cluster.Nodes = append(cluster.Nodes, node)
		reading.Nodes[node.Name] = load.Node{
			CPU: load.Utilization{Mean: 0.2 + 0.1*float64(i%6), StdDev: 0.05}, HasCPU: true,
			Memory: load.Utilization{Mean: 0.3, StdDev: 0.02 + 0.01*float64(i%5)}, HasMemory: true,
		}
		for j := range podsPerNode {
			cluster.Running = append(cluster.Running, newPod(i*podsPerNode+j, node.Name))
		}
	}
	return cluster, reading
}

// comparison measures the throughput of several schedulers in turn, in one process, so that other
// work of the machine affects all of them alike.
type comparison struct {
	names   []string
	engines map[string]*engine.Engine
	reading *load.Reading
	// pods is the number of pods scheduled so far, equal how many in a row are equal.
	pods, equal int
	// samples are the durations of the blocks of each scheduler, one per round.
	samples map[string][]sample
}

// sample is the duration of one block of pods in seconds, and the memory that it allocated in bytes.
type sample struct{ cpu, wall, bytes float64 }

// newComparison returns a comparison of schedulers with the same nodes and pods. With more than one equal pod in a row,
// they are scheduled in batches where the profile allows it.
func newComparison(tb testing.TB, names []string, nodes, podsPerNode, equal int) *comparison {
	tb.Helper()
	cluster, reading := newCluster(nodes, podsPerNode)
	c := &comparison{names: names, reading: reading, equal: equal, engines: map[string]*engine.Engine{}, samples: map[string][]sample{}}
	for _, name := range names {
		e, err := engine.New(tb.Context(), cluster, engine.Options{
			Config: configurationOf(tb, name), Load: reading, Clock: func() time.Time { return reading.Time },
			ExtraPlugins: nothingRegistry(), Batches: equal > 1,
		})
		must.Succeed(tb, err)
		c.engines[name] = e
	}
	return c
}

// schedule schedules further pods with one of the schedulers, and returns how long it took.
func (c *comparison) schedule(tb testing.TB, name string, pods int) sample {
	tb.Helper()
	allocated := allocatedBytes()
	e, cpu, began := c.engines[name], measure.CPU().Seconds(), time.Now()
	for range pods {
		c.pods++
		pod := newPod(1_000_000+c.pods/c.equal, "")
		pod.Name = fmt.Sprint("pending-", c.pods)
		pod.UID = types.UID(pod.Name)
		if _, err := e.Schedule(tb.Context(), pod, ""); err != nil {
			tb.Fatal(err)
		}
	}
	return sample{measure.CPU().Seconds() - cpu, time.Since(began).Seconds(), allocatedBytes() - allocated}
}

// run measures rounds. In each round every scheduler schedules one block of pods, in random order.
// The garbage collector runs between the blocks only: its cost depends on the memory of all
// schedulers together. The first pods of a block, which fill the cache of the processor with the
// nodes of the scheduler, are not measured.
func (c *comparison) run(tb testing.TB, rounds, warmUp, pods int) {
	tb.Helper()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	order, random := slices.Clone(c.names), rand.New(rand.NewPCG(1, 2))
	for round := range rounds {
		random.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		for _, name := range order {
			c.schedule(tb, name, warmUp)
			// With -cpuprofile, go tool pprof -tagfocus configuration=NAME shows where the time goes.
			pprof.Do(tb.Context(), pprof.Labels("configuration", name), func(context.Context) {
				c.samples[name] = append(c.samples[name], c.schedule(tb, name, pods))
			})
		}
		if round%10 == 9 {
			runtime.GC()
			c.readLoad(tb)
		}
	}
}

// readLoad gives all schedulers a new reading of the same load.
func (c *comparison) readLoad(tb testing.TB) {
	tb.Helper()
	c.reading.Time = c.reading.Time.Add(30 * time.Second)
	for _, name := range c.names {
		must.Succeed(tb, c.engines[name].SetLoad(*c.reading))
	}
}

// ratio returns the throughput of a scheduler relative to another: the median over the rounds, and
// the interval that contains the true median with a probability of 95 %.
func (c *comparison) ratio(name, other string, of func(sample) float64) estimate {
	var ratios []float64
	for i := range c.samples[name] {
		ratios = append(ratios, of(c.samples[other][i])/of(c.samples[name][i]))
	}
	return newEstimate(ratios)
}

func byCPU(s sample) float64  { return s.cpu }
func byWall(s sample) float64 { return s.wall }

// allocatedBytes returns the bytes that the process has allocated.
func allocatedBytes() float64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return float64(s[0].Value.Uint64())
}

// bytesPerPod returns the median of the memory that a scheduler allocates for a pod, in KiB.
func (c *comparison) bytesPerPod(name string, pods int) float64 {
	var values []float64
	for _, s := range c.samples[name] {
		values = append(values, s.bytes/float64(pods)/1024)
	}
	return newEstimate(values).median
}

// estimate is a median with its 95 % confidence interval.
type estimate struct{ low, median, high float64 }

func (e estimate) String() string {
	return fmt.Sprintf("%.3f [%.3f, %.3f]", e.median, e.low, e.high)
}

// newEstimate returns the median of the values. The ends of the interval are two order statistics:
// the number of values below the true median has a binomial distribution.
func newEstimate(values []float64) estimate {
	slices.Sort(values)
	n := len(values)
	k := max(0, int(math.Floor(float64(n)/2-0.98*math.Sqrt(float64(n)))))
	return estimate{low: values[k], median: (values[(n-1)/2] + values[n/2]) / 2, high: values[n-1-k]}
}
