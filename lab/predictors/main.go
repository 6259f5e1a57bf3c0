// Command predictors compares published predictors of the peak of a node, and the model of this project, on the usage of real
// machines: how often the peak of the next 24 hours is above what was predicted, and by how much.
//
//	predictors [-part tuning|published] [-write PAGE] USAGE
//
// USAGE is the folder that usage.sh downloads. A node has 20 machines of a set, drawn so that no two nodes of a draw share a machine; a
// set is drawn until there are 30 nodes. Each hour with at least a day of history and a day that follows is predicted. -write
// replaces the tables of a page between <!-- predictors --> or, for the sets with a month of history, <!-- predictors: a month -->, and
// <!-- end of predictors -->.
package main

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"

	"github.com/plimsoll-k8s/plimsoll/lab/experiment/scenarios"
	"github.com/plimsoll-k8s/plimsoll/lab/experiment/usage"
)

func main() {
	part := flag.String("part", string(scenarios.Published), "half of the workloads, by the hash of their names: tuning or published")
	page := flag.String("write", "", "page whose tables are replaced")
	flag.Parse()
	if err := run(flag.Arg(0), *part, *page); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

const (
	nodesPerSet     = 30
	machinesPerNode = 20
)

func run(folder, part, page string) error {
	half := slices.Index([]string{string(scenarios.Tuning), string(scenarios.Published)}, part)
	if half < 0 {
		return fmt.Errorf("-part: invalid value %q: must be tuning or published", part)
	}
	if folder == "" {
		return fmt.Errorf("must have one argument: the folder of the usage, from %s", usage.Sources)
	}
	var outcomes []outcome
	for _, name := range usage.Sets {
		set, err := usage.Open(os.DirFS(folder), name, func(workload string) bool { return usage.Half(workload) == half })
		if err != nil {
			return err
		}
		pool := machinesOf(set)
		if len(pool) < machinesPerNode {
			return fmt.Errorf("%s: found %d machines with all days: must be at least %d", name, len(pool), machinesPerNode)
		}
		fmt.Fprintf(os.Stderr, "%s: %d machines, %d days\n", name, len(pool), len(pool[0].usage[0])/perDay)
		outcomes = append(outcomes, evaluate(name, pool, historyDays[name]*perDay)...)
	}
	if page == "" {
		fmt.Print(tableOf(outcomes))
		return nil
	}
	return write(page, outcomes)
}

// write replaces the tables of a page.
func write(page string, outcomes []outcome) error {
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	for marker, table := range map[string]func([]outcome) string{
		"<!-- predictors -->\n": tableOf, "<!-- predictors: a month -->\n": monthTable,
	} {
		if before, rest, begins := strings.Cut(string(text), marker); begins {
			_, after, ends := strings.Cut(rest, end)
			if !ends {
				return fmt.Errorf("%s: must have %q after %q", page, end, marker)
			}
			text = []byte(before + marker + table(outcomes) + end + after)
		}
	}
	return os.WriteFile(page, text, 0o644)
}

const end = "<!-- end of predictors -->\n"

// machine has the usage of a machine over all days of its set: CPU in millicores, memory in bytes; memory may be missing.
type machine struct {
	workload    string
	usage       [2][]float64
	provisioned [2]float64
}

// isPlausible reports whether it is known what the machine is provisioned with, and it uses at most a tenth more: a few files of Bitbrains
// have other values.
func (m *machine) isPlausible() bool {
	for r, provisioned := range m.provisioned {
		if provisioned <= 0 || slices.Max(m.usage[r]) > 1.1*provisioned {
			return false
		}
	}
	return true
}

// days is how many days of each set are used: the last ones of the machines that have as many. historyDays of them are not predicted.
// They follow each other here, also where days of PlanetLab and of Google's jobs have others between them.
var (
	days        = map[string]int{usage.Google: 7, usage.PlanetLab: 3, usage.Bitbrains: 59}
	historyDays = map[string]int{usage.Google: 1, usage.PlanetLab: 1, usage.Bitbrains: 29}
)

// machinesOf returns the machines that have all days of a set. In sets without an amount 100 % is a core or a GiB.
func machinesOf(set *usage.Set) (pool []machine) {
	for _, w := range set.Workloads {
		for i := range w.Machines {
			m := &w.Machines[i]
			series := slices.Concat(m.Before, m.Days)
			if len(series) < days[set.Name] {
				continue
			}
			one := machine{workload: w.Name}
			cpu, memory := 10.0, float64(1<<30)/100
			if m.Provisioned.Cores > 0 && m.Provisioned.CPU > 0 {
				cpu, memory = 1000*m.Provisioned.Cores/m.Provisioned.CPU, 1<<10
				one.provisioned = [2]float64{cpu * m.Provisioned.CPU, memory * m.Provisioned.Memory}
			}
			for _, d := range series[len(series)-days[set.Name]:] {
				for j := range d.CPU {
					one.usage[0] = append(one.usage[0], cpu*float64(d.CPU[j]))
				}
				for j := range d.Memory {
					one.usage[1] = append(one.usage[1], memory*float64(d.Memory[j]))
				}
			}
			if set.Name != usage.Bitbrains || one.isPlausible() {
				pool = append(pool, one)
			}
		}
	}
	return pool
}

// draws returns the machines of the nodes: each draw is a permutation of the pool.
func draws(pool []machine) [][]machine {
	random := rand.New(rand.NewPCG(1, 1))
	var all [][]machine
	for drawn := 0; drawn < nodesPerSet; {
		order := random.Perm(len(pool))
		order = order[:min(len(pool)/machinesPerNode, nodesPerSet-drawn)*machinesPerNode]
		machines := make([]machine, len(order))
		for i, j := range order {
			machines[i] = pool[j]
		}
		all, drawn = append(all, machines), drawn+len(order)/machinesPerNode
	}
	return all
}
