package clusterscore

import "math"

// The names of the scores. In their formulas A is what the nodes of the cluster
// let pods have, F what requests leave free of it, L what limits promise.
const (
	// FreeCPU and FreeMemory are which part is free: 200 x (F/A - 0.5).
	FreeCPU    = "freeCPU"
	FreeMemory = "freeMemory"
	// FreeCores and FreeGiB are how much is free, ten points for each doubling:
	// 10 x log2(1 + F) - 100, F in cores and in GiB.
	FreeCores = "freeCores"
	FreeGiB   = "freeGiB"
	// LimitRoomCPU and LimitRoomMemory are what limits leave, below 0 where they
	// promise more than there is: 100 x (A - L) / max(A, L).
	LimitRoomCPU    = "limitRoomCPU"
	LimitRoomMemory = "limitRoomMemory"
	// LowLoadRisk is how unlikely pods are to use more than they request:
	// 200 x (0.5 - load risk). Absent without measured load.
	LowLoadRisk = "lowLoadRisk"
	// SlackCPU and SlackMemory are what is to spare against what is wanted, below 0
	// where it is less: 100 x (S - T) / max(S, T), and of several pools the mean by
	// what each wants. Absent where no slack is wanted.
	SlackCPU    = "slackCPU"
	SlackMemory = "slackMemory"
)

// Names are all scores, in the order in which they are reported.
var Names = []string{FreeCPU, FreeMemory, FreeCores, FreeGiB, LimitRoomCPU, LimitRoomMemory, LowLoadRisk, SlackCPU, SlackMemory}

// Score is one score of the cluster.
type Score struct {
	// Name is one of Names.
	Name string
	// Value in [-100, 100].
	Value int32
}

// Slack is what one pool of nodes has to spare, and what it is to have.
type Slack struct{ Available, Target Amounts }

// State is what a cluster is scored by.
type State struct {
	// Sums over its nodes.
	Sums [resources]Sums
	// LoadRisk in [0, 1], if LoadKnown.
	LoadRisk  float64
	LoadKnown bool
	// Slack of its pools.
	Slack []Slack
}

// cores and gib are how much of CPU and memory make a unit of the scores by
// amount.
const (
	cores = 1000
	gib   = 1 << 30
)

// Scores returns the scores of a cluster, in the order of Names; without those
// that there is nothing to make of.
func Scores(s State) []Score {
	cpu, memory := s.Sums[CPU], s.Sums[Memory]
	out := []Score{
		{FreeCPU, fraction(cpu.Free, cpu.Allocatable)},
		{FreeMemory, fraction(memory.Free, memory.Allocatable)},
		{FreeCores, doublings(cpu.Free / cores)},
		{FreeGiB, doublings(memory.Free / gib)},
		{LimitRoomCPU, limitRoom(cpu)},
		{LimitRoomMemory, limitRoom(memory)},
	}
	if s.LoadKnown {
		out = append(out, Score{LowLoadRisk, fraction(1-s.LoadRisk, 1)})
	}
	for r, name := range [resources]string{SlackCPU, SlackMemory} {
		if value, wanted := slack(s.Slack, Resource(r)); wanted {
			out = append(out, Score{name, value})
		}
	}
	return out
}

// fraction returns -100 for nothing of the whole and 100 for all of it; -100
// where the whole is nothing.
func fraction(part, whole float64) int32 {
	if !(whole > 0) {
		return -100
	}
	return truncate((200*part - 100*whole) / whole)
}

// doublings returns -100 for nothing, and ten more for each doubling of 1 plus
// the amount: 100 from a million on.
func doublings(amount float64) int32 {
	return truncate(10*math.Log2(1+max(amount, 0)) - 100)
}

// limitRoom returns the balance of what there is and what limits promise; -100
// where there is nothing.
func limitRoom(s Sums) int32 {
	if !(s.Allocatable > 0) {
		return -100
	}
	return truncate(balance(s.Allocatable, s.Limits))
}

// slack returns the mean of the pools' balances by what they want, and whether
// any wants something.
func slack(pools []Slack, r Resource) (value int32, wanted bool) {
	var sum, weights float64
	for _, pool := range pools {
		if target := float64(pool.Target[r]); target > 0 {
			sum += target * balance(float64(pool.Available[r]), target)
			weights += target
		}
	}
	if weights == 0 {
		return 0, false
	}
	return truncate(sum / weights), true
}

// balance compares what there is with what is claimed of it: 100 for no claims,
// 0 where they are equal, -50 where twice as much is claimed, and never less
// than -100. One of the two is more than 0. Each step rounds the same way for
// more and for less, which 100 x (have - claimed) / max does not.
func balance(have, claimed float64) float64 {
	if claimed <= have {
		return 100 - 100*claimed/have
	}
	return 100*have/claimed - 100
}

// truncate returns the score toward zero, within its bounds.
func truncate(score float64) int32 { return int32(min(max(score, -100), 100)) }
