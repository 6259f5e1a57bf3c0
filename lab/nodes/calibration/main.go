// Command calibration compares a what-if with what happened: it replays the recordings of an experiment on real nodes (experiment -record)
// and prints what was simulated beside what was measured.
//
//	calibration -project FOLDER RESULTS...
//	calibration publish RESULTS FOLDER
//
// The second form writes the redacted recording of each pair to a folder.
//
// Times are stretched by the compression of the experiment, so that a run of two minutes is a replay of half an hour.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"gonum.org/v1/gonum/stat"

	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/predict"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/engine"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/replay"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
)

// overhead is what a pod of the experiment uses beside its demand, in millicores.
const overhead = 4

// full is the share of throttled periods above which a node counts as saturated.
const full = 0.5

// levels are fractions of the CPU of a node above which the demand of its pods is counted.
var levels = []float64{0.8, result.DefaultSaturation, 0.9, 0.95, 1}

// measured is what this program reads of a result of the experiment.
type measured struct {
	Run      string    `json:"run"`
	Seed     int       `json:"seed"`
	Arm      string    `json:"arm"`
	Start    time.Time `json:"start"`
	Floor    float64   `json:"floor"`
	Settings struct {
		CPU         float64       `json:"cpu"`
		Compression float64       `json:"compression"`
		Measure     time.Duration `json:"measure"`
	} `json:"settings"`
	Nodes []struct {
		Node             string   `json:"node"`
		Pods             []string `json:"pods"`
		Demand           float64  `json:"demand"`
		Used             float64  `json:"used"`
		Peak             float64  `json:"peak"`
		Periods          float64  `json:"periods"`
		ThrottledPeriods float64  `json:"throttledPeriods"`
		Requests         float64  `json:"requests"`
		Late             float64  `json:"late"`
	} `json:"nodes"`
}

// late returns the share of late requests above the floor.
func (m *measured) late() float64 {
	requests, late := 0.0, 0.0
	for _, n := range m.Nodes {
		requests, late = requests+n.Requests, late+n.Late
	}
	return max(late/requests-m.Floor, 0)
}

// throttled returns the throttled node minutes, with stretched time.
func (m *measured) throttled() (minutes float64) {
	for _, n := range m.Nodes {
		minutes += n.ThrottledPeriods / n.Periods * m.Settings.Measure.Minutes() * m.Settings.Compression
	}
	return minutes
}

func main() {
	project := flag.String("project", ".", "folder of the project whose profiles are replayed")
	flag.Parse()
	var err error
	if flag.NArg() == 3 && flag.Arg(0) == "publish" {
		err = publishPairs(flag.Arg(1), flag.Arg(2))
	} else {
		err = run(context.Background(), *project, flag.Args())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, project string, dirs []string) error {
	c := calibration{profiles: map[string]engine.NamedConfig{}, saturated: map[float64][]float64{}}
	paths := map[string]string{"default": "default", "predicted": filepath.Join(project, "examples/profiles/predicted.yaml")}
	for name, path := range paths {
		profile, err := engine.ReadConfig(path)
		if err != nil {
			return err
		}
		c.profiles[name] = profile
	}
	for _, dir := range dirs {
		if err := c.addFolder(ctx, dir); err != nil {
			return fmt.Errorf("%s: %w", dir, err)
		}
	}
	c.print()
	return nil
}

// calibration has what was compared so far.
type calibration struct {
	profiles map[string]engine.NamedConfig
	runs     []replayed
	// errors of the mean demand of a node: estimated, and as used, on saturated nodes and on others.
	estimated, used, other []float64
	// throttled and late are the measured shares of throttled periods and of late requests of a node, saturated the simulated share of the
	// time in which its recorded pods demand more than a level of its CPU; highest are errors of the highest load.
	throttled, late, highest []float64
	saturated                map[float64][]float64
}

// replayed is a run with what replays of its recording with each profile give.
type replayed struct {
	*measured
	saturation, overload map[string]float64
}

// addFolder adds the runs of a folder of results, which has a folder recording.
func (c *calibration) addFolder(ctx context.Context, dir string) error {
	runs, r, err := read(dir)
	if err != nil {
		return err
	}
	if len(runs) > 0 {
		stretch(r, int64(runs[0].Settings.Compression))
	}
	for _, m := range runs {
		if err := c.add(ctx, r, m); err != nil {
			return fmt.Errorf("%s: %w", m.Run, err)
		}
	}
	return nil
}

// read returns the runs of a folder of results in the order of time, and its recording.
func read(dir string) (runs []*measured, r *recording.Recording, err error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, nil, err
	}
	r, err = recording.OpenFlag(filepath.Join(dir, "recording"))
	if err != nil {
		return nil, nil, err
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			return nil, nil, err
		}
		m := &measured{}
		if err := json.Unmarshal(raw, m); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", file, err)
		}
		runs = append(runs, m)
	}
	slices.SortFunc(runs, func(a, b *measured) int { return a.Start.Compare(b.Start) })
	return runs, r, nil
}

// stretch multiplies all times of a recording.
func stretch(r *recording.Recording, by int64) {
	times := func(all ...*int64) {
		for _, at := range all {
			if *at != recording.Never {
				*at *= by
			}
		}
	}
	r.About.To = r.About.From.Add(time.Duration(by*r.About.Seconds()) * time.Second)
	r.About.Step *= int(by)
	for i := range r.Nodes {
		times(&r.Nodes[i].Appeared, &r.Nodes[i].Gone)
	}
	for i := range r.Pods {
		p := &r.Pods[i]
		times(&p.Created, &p.Scheduled, &p.Started, &p.Ended)
	}
}

// add replays a run.
func (c *calibration) add(ctx context.Context, r *recording.Recording, m *measured) error {
	compression := m.Settings.Compression
	from := int64(m.Start.Sub(r.About.From).Seconds() * compression)
	to := int64(recording.Never)
	for i := range r.Pods {
		if p := &r.Pods[i]; p.Object.Namespace == "experiment" && p.Created >= from && p.Created < from+int64(60*compression) {
			to = min(to, p.Ended)
		}
	}
	measure := int64(m.Settings.Measure.Seconds() * compression)
	if to == recording.Never || to-measure <= from {
		return fmt.Errorf("the recording has no pods of this run (from %d to %d)", from, to)
	}
	part, err := r.Part(from, to)
	if err != nil {
		return err
	}
	c.compareNodes(part, m, int64(r.About.Step), to-from-measure)
	out := replayed{m, map[string]float64{}, map[string]float64{}}
	for name, profile := range c.profiles {
		run, err := c.replay(ctx, r, part, profile, from, to-from-measure)
		if err != nil {
			return err
		}
		out.saturation[name], out.overload[name] = run.CPUSaturationMinutes, run.CPUOverloadMinutes
	}
	c.runs = append(c.runs, out)
	fmt.Printf("%-18s measured: late %5.2f %%, throttled %5.1f node minutes; simulated: saturated %v, overloaded %v\n",
		m.Run, 100*m.late(), m.throttled(), out.saturation, out.overload)
	return nil
}

// replay replays a part of a recording with a profile whose scheduler has learned from the time before.
func (c *calibration) replay(
	ctx context.Context, r *recording.Recording, part *recording.Part, profile engine.NamedConfig, from, settle int64,
) (result.Run, error) {
	config, err := profile.Config()
	if err != nil {
		return result.Run{}, err
	}
	// metrics-server reads every 10 s, and its usage is of the 10 s before.
	metrics := result.Metrics{IntervalSeconds: 180, DelaySeconds: 150, WindowSeconds: 900}
	var history []predict.Past
	if engine.Learns(config) {
		before, err := r.Part(0, from)
		if err != nil {
			return result.Run{}, err
		}
		run, err := replay.Run(
			ctx,
			before.Input(recording.Source{Measured: true}),
			replay.Options{Config: config, Metrics: metrics, Continued: true},
		)
		if err != nil {
			return result.Run{}, err
		}
		history = run.Recorded.Left.History
	}
	return replay.Run(ctx, part.Input(recording.Source{}), replay.Options{
		Config: config, Metrics: metrics, Settle: settle, History: history,
	})
}

// compareNodes compares the nodes of a run with what the recording says of them, in its measurement.
func (c *calibration) compareNodes(part *recording.Part, m *measured, step, settle int64) {
	in := part.Input(recording.Source{Measured: true})
	for _, n := range m.Nodes {
		var loads []float64
		for second := settle; second < part.Seconds(); second += step {
			sum := 0.0
			for i := range in.Pods {
				if p := &in.Pods[i]; p.Usage != nil && cmp.Or(p.Object.Spec.NodeName, p.Recorded.Node) == n.Node && p.Arrival <= second {
					cpu, _ := p.Usage.At(second-p.Arrival, second)
					sum += cpu
				}
			}
			loads = append(loads, sum)
		}
		demand := n.Demand + overhead*float64(len(n.Pods)+1)
		throttled := n.ThrottledPeriods / n.Periods
		saturated := map[float64]float64{}
		for _, level := range levels {
			for _, load := range loads {
				if load > level*m.Settings.CPU {
					saturated[level] += 1 / float64(len(loads))
				}
			}
			c.saturated[level] = append(c.saturated[level], saturated[level])
		}
		estimated := stat.Mean(loads, nil)
		if throttled > full {
			c.estimated = append(c.estimated, estimated/demand-1)
			c.used = append(c.used, n.Used/demand-1)
		} else {
			c.other = append(c.other, estimated/demand-1)
		}
		c.throttled, c.late = append(c.throttled, throttled), append(c.late, max(n.Late/n.Requests-m.Floor, 0))
		c.highest = append(c.highest, slices.Max(loads)/n.Peak-1)
		fmt.Printf(
			"  %s demand %3.0fm used %3.0fm estimated %3.0fm, peak %3.0fm estimated %3.0fm,"+
				" throttled %.2f late %.2f saturated %.2f overloaded %.2f\n",
			n.Node,
			demand,
			n.Used,
			estimated,
			n.Peak,
			slices.Max(loads),
			throttled,
			n.Late/n.Requests,
			saturated[result.DefaultSaturation],
			saturated[1],
		)
	}
}

func (c *calibration) print() {
	errorsOf := func(name string, all []float64) {
		abs := make([]float64, len(all))
		for i, e := range all {
			abs[i] = math.Abs(e)
		}
		slices.Sort(abs)
		if len(abs) > 0 {
			fmt.Printf(
				"%-58s %3d nodes: error %4.1f %% in the median, %4.1f %% in the mean, %4.1f %% in the 90th percentile\n",
				name,
				len(abs),
				100*stat.Quantile(0.5, stat.Empirical, abs, nil),
				100*stat.Mean(abs, nil),
				100*stat.Quantile(0.9, stat.Empirical, abs, nil),
			)
		}
	}
	errorsOf("demand of saturated nodes, estimated", c.estimated)
	errorsOf("demand of saturated nodes, by what they used", c.used)
	errorsOf("demand of other nodes", c.other)
	errorsOf("highest load", c.highest)
	for _, level := range levels {
		for name, values := range map[string][]float64{"throttled periods": c.throttled, "late requests": c.late} {
			alpha, beta := stat.LinearRegression(c.saturated[level], values, nil, false)
			r := stat.Correlation(c.saturated[level], values, nil)
			fmt.Printf("share of %s of a node against the share of time with a demand above %.0f %% of it: R2 %.2f, %.2f + %.2f x\n",
				name, 100*level, r*r, alpha, beta)
		}
	}
	c.printPairs()
}

// printPairs prints the measured difference of each pair beside the simulated one of each of its recordings.
func (c *calibration) printPairs() {
	bySeed := map[int]map[string]*replayed{}
	for i := range c.runs {
		run := &c.runs[i]
		if bySeed[run.Seed] == nil {
			bySeed[run.Seed] = map[string]*replayed{}
		}
		bySeed[run.Seed][run.Arm] = run
	}
	right, all := 0, 0
	for i := range c.runs {
		run := &c.runs[i]
		pair := bySeed[run.Seed]
		if len(pair) != 2 {
			continue
		}
		late := pair["predicted"].late() - pair["default"].late()
		minutes := run.overload["predicted"] - run.overload["default"]
		throttled := pair["predicted"].throttled() - pair["default"].throttled()
		fmt.Printf("seed %2d, recorded with %-9s: late requests %+6.2f points, throttled %+5.1f, simulated overloaded %+5.1f"+
			" saturated %+5.1f node minutes\n", run.Seed, run.Arm, 100*late, throttled, minutes,
			run.saturation["predicted"]-run.saturation["default"])
		if all++; late*minutes > 0 {
			right++
		}
	}
	fmt.Printf("%d of %d signs are right\n", right, all)
}
