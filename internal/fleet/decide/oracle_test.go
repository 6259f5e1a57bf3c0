package decide

import (
	"fmt"
	"math/big"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"pgregory.net/rapid"

	"github.com/plimsoll-k8s/plimsoll/api/placement/v1beta1"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// oracle is a second, simple implementation of Decide. It uses rational numbers of any size
// and full sorts, and recalculates all counts each time.
type oracle struct {
	r        *Request
	outcome  []ClusterOutcome
	detail   []int32
	avoided  []bool
	before   []bool
	score    [][]*big.Rat // by prioritizer and cluster; nil without data
	total    []*big.Rat
	changeAt *big.Int // nil for never
}

func newOracle(r *Request) *oracle {
	n := len(r.Fleet)
	o := &oracle{
		r: r, outcome: make([]ClusterOutcome, n), detail: make([]int32, n),
		avoided: make([]bool, n), before: make([]bool, n), total: make([]*big.Rat, n),
	}
	for i := range r.Fleet {
		o.before[i] = slices.Contains(r.Chosen, int32(i))
		o.total[i] = new(big.Rat)
		o.filter(i)
	}
	for p := range r.Prioritizers {
		column := make([]*big.Rat, n)
		for _, i := range o.feasible() {
			column[i] = o.scoreOf(&r.Prioritizers[p], i)
			weight, score := rat(int64(r.Prioritizers[p].Weight)), column[i]
			if score == nil {
				// -|weight x 100| for both signs
				o.total[i].Sub(o.total[i], new(big.Rat).Mul(rat(100), weight.Abs(weight)))
			} else {
				o.total[i].Add(o.total[i], new(big.Rat).Mul(score, weight))
			}
		}
		o.score = append(o.score, column)
	}
	o.choose()
	return o
}

func rat(n int64) *big.Rat { return new(big.Rat).SetInt64(n) }

// truncate rounds toward zero.
func truncate(x *big.Rat) *big.Rat {
	return new(big.Rat).SetInt(new(big.Int).Quo(x.Num(), x.Denom()))
}

func (o *oracle) feasible() (all []int) {
	for i, outcome := range o.outcome {
		if outcome.Feasible() {
			all = append(all, i)
		}
	}
	return all
}

func (o *oracle) filter(i int) {
	c := o.r.Fleet[i]
	if !slices.Contains(o.r.Members, int32(i)) {
		o.outcome[i] = NotMember
		return
	}
	if len(o.r.Predicates) > 0 && !slices.ContainsFunc(o.r.Predicates, func(p Predicate) bool {
		return p.Matches(c) && (!p.HasExpressions || o.r.Match(0, c))
	}) {
		o.outcome[i] = Unmatched
		return
	}
	var ends []*big.Int
	for k, taint := range c.Taints {
		if taint.Effect == clusterv1.TaintEffectNoSelectIfNew && o.before[i] {
			continue
		}
		tolerated, end := o.tolerated(taint)
		switch {
		case tolerated && end != nil:
			ends = append(ends, end)
		case tolerated:
		case taint.Effect == clusterv1.TaintEffectPreferNoSelect:
			o.avoided[i] = true
		default:
			o.outcome[i], o.detail[i], o.avoided[i] = Tainted, int32(k), false
			return
		}
	}
	o.outcome[i] = Outranked
	for _, end := range ends {
		o.changes(end)
	}
}

func (o *oracle) changes(at *big.Int) {
	// A time that does not fit int64 is never reached.
	if at.Cmp(big.NewInt(Forever)) < 0 && (o.changeAt == nil || at.Cmp(o.changeAt) < 0) {
		o.changeAt = at
	}
}

// tolerated reports whether a taint is tolerated, and until when; nil means without limit.
func (o *oracle) tolerated(taint clusterv1.Taint) (tolerated bool, until *big.Int) {
	for _, t := range o.r.Tolerations {
		if (t.Effect != "" && t.Effect != taint.Effect) || (t.Key != "" && t.Key != taint.Key) {
			continue
		}
		if t.Operator != clusterv1beta1.TolerationOpExists && (t.Key == "" || t.Value != taint.Value) {
			continue
		}
		if t.TolerationSeconds == nil || taint.Effect == clusterv1.TaintEffectNoSelectIfNew {
			return true, nil
		}
		end := new(big.Int).Add(big.NewInt(taint.TimeAdded.Unix()), big.NewInt(*t.TolerationSeconds))
		// The largest int64 is Forever.
		if big.NewInt(o.r.Now).Cmp(end) < 0 || end.Cmp(big.NewInt(Forever)) >= 0 {
			tolerated = true
			if until == nil || end.Cmp(until) > 0 {
				until = end
			}
		}
	}
	return tolerated, until
}

func (o *oracle) others(i int) int64 {
	if i >= len(o.r.Counts) {
		return 0
	}
	if o.before[i] {
		return max(0, int64(o.r.Counts[i])-1)
	}
	return max(0, int64(o.r.Counts[i]))
}

// indexOf returns the index of CPU or Memory.
func indexOf(resource string) resources.Index {
	if resource == "CPU" {
		return resources.CPU
	}
	return resources.Memory
}

var half = big.NewRat(1, 2)

// scoreOf returns the score of a feasible cluster, nil without data.
func (o *oracle) scoreOf(p *Prioritizer, i int) *big.Rat {
	c := o.r.Fleet[i]
	switch p.Kind {
	case v1beta1.Balance:
		var most int64
		for j := range o.r.Fleet {
			most = max(most, o.others(j))
		}
		if most == 0 {
			return rat(100)
		}
		x := new(big.Rat).Sub(half, big.NewRat(o.others(i), most))
		return new(big.Rat).Mul(rat(2), truncate(x.Mul(x, rat(100))))
	case v1beta1.Steady:
		if o.before[i] {
			return rat(100)
		}
		return rat(0)
	case v1beta1.ResourceRatioCPU, v1beta1.ResourceRatioMemory:
		resource := indexOf(strings.TrimPrefix(string(p.Kind), "ResourceRatio"))
		allocatable, capacity := c.Allocatable[resource], c.Capacity[resource]
		if allocatable < 0 || capacity <= 0 {
			return nil
		}
		x := new(big.Rat).Sub(big.NewRat(allocatable, capacity), half)
		if x.Mul(x, rat(200)); x.Cmp(rat(100)) > 0 {
			return rat(100)
		}
		return truncate(x)
	case v1beta1.ResourceAllocatableCPU, v1beta1.ResourceAllocatableMemory:
		resource := indexOf(strings.TrimPrefix(string(p.Kind), "ResourceAllocatable"))
		var amounts []int64
		for _, j := range o.feasible() {
			if amount := o.r.Fleet[j].Allocatable[resource]; amount >= 0 {
				amounts = append(amounts, amount)
			}
		}
		if c.Allocatable[resource] < 0 {
			return nil
		}
		least, most := slices.Min(amounts), slices.Max(amounts)
		if least == most {
			return rat(100)
		}
		x := new(big.Rat).Quo(rat(c.Allocatable[resource]-least), rat(most-least))
		return truncate(x.Mul(x.Sub(x, half), rat(200)))
	case KindAddOn:
		if s := c.Scores[p.Coordinate.ResourceName]; s != nil && o.r.Now <= s.Until {
			if value, known := s.Values[p.Coordinate.ScoreName]; known && value >= -100 && value <= 100 {
				if s.Until != Forever {
					o.changes(new(big.Int).Add(big.NewInt(s.Until), big.NewInt(1)))
				}
				return rat(int64(value))
			}
		}
		return nil
	default: // the fits are not drawn: TestRequireFit has them
	}
	panic("unknown prioritizer")
}

func (o *oracle) topology(k, i int) (string, bool) {
	set := o.r.Fleet[i].Labels
	if o.r.Spread[k].TopologyKeyType == clusterv1beta1.TopologyKeyTypeClaim {
		set = o.r.Fleet[i].Claims
	}
	value, found := set[o.r.Spread[k].TopologyKey]
	return value, found
}

// breaks reports whether choosing cluster i violates constraint k.
func (o *oracle) breaks(k, i int) bool {
	mine, found := o.topology(k, i)
	if !found {
		return true
	}
	counts := map[string]int{}
	for _, j := range o.feasible() {
		if value, found := o.topology(k, j); found && o.outcome[j] != NoTopology {
			if _, known := counts[value]; !known {
				counts[value] = 0
			}
			if o.outcome[j] == Chosen {
				counts[value]++
			}
		}
	}
	least := counts[mine]
	for _, n := range counts {
		least = min(least, n)
	}
	return counts[mine]+1-least > int(max(1, o.r.Spread[k].MaxSkew))
}

// order returns the sort keys of a cluster, most significant first; smaller ranks first.
func (o *oracle) order(i int) []*big.Rat {
	list := []*big.Rat{flag(o.avoided[i])}
	for k := range o.r.Spread {
		if o.r.Spread[k].WhenUnsatisfiable != clusterv1beta1.DoNotSchedule {
			list = append(list, flag(o.breaks(k, i)))
		}
	}
	return append(list, new(big.Rat).Neg(o.total[i]), flag(!o.before[i]), rat(int64(i)))
}

func flag(b bool) *big.Rat {
	if b {
		return rat(1)
	}
	return rat(0)
}

// forbidden returns the first DoNotSchedule constraint that choosing a cluster would
// violate, or -1.
func (o *oracle) forbidden(i int) int {
	for k := range o.r.Spread {
		if o.r.Spread[k].WhenUnsatisfiable == clusterv1beta1.DoNotSchedule && o.breaks(k, i) {
			return k
		}
	}
	return -1
}

func (o *oracle) choose() {
	for _, i := range o.feasible() {
		for k := range slices.Backward(o.r.Spread) {
			if _, found := o.topology(k, i); !found && o.r.Spread[k].WhenUnsatisfiable == clusterv1beta1.DoNotSchedule {
				o.outcome[i], o.detail[i] = NoTopology, int32(k)
			}
		}
	}
	for n := int64(0); n < o.r.Number; n++ {
		var candidates []int
		for _, i := range o.feasible() {
			if o.outcome[i] == Outranked && o.forbidden(i) < 0 {
				candidates = append(candidates, i)
			}
		}
		if len(candidates) == 0 {
			break
		}
		slices.SortFunc(candidates, func(a, b int) int {
			return slices.CompareFunc(o.order(a), o.order(b), (*big.Rat).Cmp)
		})
		o.outcome[candidates[0]] = Chosen
	}
	var skewed []int
	for _, i := range o.feasible() {
		if o.outcome[i] == Outranked && o.forbidden(i) >= 0 {
			skewed = append(skewed, i)
		}
	}
	for _, i := range skewed {
		o.detail[i] = int32(o.forbidden(i))
	}
	for _, i := range skewed {
		o.outcome[i] = Skewed
	}
}

// groups returns the groups as "name: clusters".
func (o *oracle) groups() (written []string) {
	var left []int
	for i, outcome := range o.outcome {
		if outcome == Chosen {
			left = append(left, i)
		}
	}
	if o.r.SortByScore {
		slices.SortStableFunc(left, func(a, b int) int { return o.total[b].Cmp(o.total[a]) })
	}
	size := int(o.r.GroupSize.IntVal)
	if text, percent := strings.CutSuffix(o.r.GroupSize.StrVal, "%"); percent {
		n, err := strconv.Atoi(text)
		if err != nil {
			panic(err)
		}
		for size = 0; size*100 < n*len(left); {
			size++
		}
	}
	if size == 0 {
		size = len(left)
	}
	add := func(name string, members []int) {
		for len(members) > 0 {
			n := min(size, len(members))
			written = append(written, fmt.Sprint(name, ": ", o.choices(members[:n])))
			members = members[n:]
		}
	}
	for _, g := range o.r.Groups {
		var in []int
		for _, i := range left {
			if g.Matches(o.r.Fleet[i]) {
				in = append(in, i)
			}
		}
		left = slices.DeleteFunc(left, func(i int) bool { return slices.Contains(in, i) })
		add(g.Name, in)
	}
	add("", left)
	if len(written) == 0 {
		written = []string{": []"}
	}
	return written
}

// choices returns clusters with their totals in the next decision, in which Steady scores all of them with 100.
func (o *oracle) choices(clusters []int) (out []clusterv1beta1.ClusterDecision) {
	for _, i := range clusters {
		total := new(big.Rat).Set(o.total[i])
		for p := range o.r.Prioritizers {
			if o.r.Prioritizers[p].Kind == v1beta1.Steady {
				gain := new(big.Rat).Sub(rat(100), o.score[p][i])
				total.Add(total, gain.Mul(gain, rat(int64(o.r.Prioritizers[p].Weight))))
			}
		}
		out = append(out, clusterv1beta1.ClusterDecision{ClusterName: o.r.Fleet[i].Name, Score: total.Num().Int64()})
	}
	return out
}

func writtenGroups(d *Decision) (written []string) {
	for _, g := range d.Groups {
		written = append(written, fmt.Sprint(g.Name, ": ", g.Clusters))
	}
	return written
}

func TestAgainstOracle(t *testing.T) {
	for range 20 { // 100 requests cover too few cases
		rapid.Check(t, agreesWithOracle(requests()))
	}
}

func TestSpreadAgainstOracle(t *testing.T) {
	for range 10 {
		rapid.Check(t, agreesWithOracle(spreadRequests()))
	}
}

// FuzzAgainstOracle compares Decide with the oracle on requests from the fuzzer.
func FuzzAgainstOracle(f *testing.F) { f.Fuzz(rapid.MakeFuzz(agreesWithOracle(requests()))) }

func agreesWithOracle(requests *rapid.Generator[*Request]) func(*rapid.T) {
	return func(t *rapid.T) {
		r := requests.Draw(t, "request")
		compareWithOracle(t, r)
		isConstantUntilChangesAt(t, r, Decide(r))
	}
}

func compareWithOracle(t *rapid.T, r *Request) {
	o, d := newOracle(r), Decide(r)
	var chosen []int32
	for i, result := range d.Clusters {
		want := ClusterResult{o.total[i].Num().Int64(), o.outcome[i], o.avoided[i], o.before[i], o.detail[i]}
		if result != want {
			t.Fatalf("cluster %d: %+v, want %+v", i, result, want)
		}
		if result.Outcome == Chosen {
			chosen = append(chosen, int32(i))
		}
		if !result.Outcome.Feasible() {
			continue
		}
		for p := range r.Prioritizers {
			score, hasData := d.Score(p, i)
			if want := o.score[p][i]; hasData != (want != nil) || hasData && want.Cmp(rat(score)) != 0 {
				t.Fatalf("%s scores cluster %d with %d (data: %v), want %v", r.Prioritizers[p].Name(), i, score, hasData, want)
			}
		}
	}
	if !slices.Equal(d.Chosen, chosen) {
		t.Fatalf("chosen %v, want %v", d.Chosen, chosen)
	}
	if got, want := writtenGroups(d), o.groups(); !slices.Equal(got, want) {
		t.Fatalf("groups\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if want := o.changeAt; want == nil && d.ChangesAt != Forever || want != nil && want.Cmp(big.NewInt(d.ChangesAt)) != 0 {
		t.Fatalf("changes at %d, want %v", d.ChangesAt, want)
	}
	if d.Feasible != len(o.feasible()) {
		t.Fatalf("%d feasible, want %d", d.Feasible, len(o.feasible()))
	}
}

// isConstantUntilChangesAt checks that the decision is the same at each time before
// ChangesAt, except for which of several taints excludes a cluster.
func isConstantUntilChangesAt(t *rapid.T, r *Request, d *Decision) {
	if r.Now == Forever {
		return // there is no later time
	}
	if d.ChangesAt <= r.Now {
		t.Fatalf("changes at %d, which has passed at %d", d.ChangesAt, r.Now)
	}
	later, d := *r, withoutTaints(d)
	for _, now := range []int64{d.ChangesAt - 1, rapid.Int64Range(r.Now, d.ChangesAt-1).Draw(t, "later")} {
		later.Now = now
		if got := withoutTaints(Decide(&later)); !reflect.DeepEqual(d, got) {
			t.Fatalf("at %d %+v, want %+v", now, got, d)
		}
	}
}

func withoutTaints(d *Decision) *Decision {
	for i := range d.Clusters {
		if d.Clusters[i].Outcome == Tainted {
			d.Clusters[i].Detail = 0
		}
	}
	return d
}
