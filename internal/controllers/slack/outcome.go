package slack

import (
	"math"
	"slices"
	"strconv"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	capacityv1alpha1 "github.com/plimsoll-k8s/plimsoll/api/capacity/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/slack"
)

const (
	// atOnce is the longest wait of a pod whose node existed: times of the API are whole seconds, and kube-scheduler retries
	// a pod, for example after it has preempted placeholders, within 10 seconds. Machines take longer to boot.
	atOnce = 10 * time.Second
	// outcomeHours is the length of the period of an outcome, and outcomeInterval the shortest time between two changes of
	// status.outcome.
	outcomeHours    = 24
	outcomeInterval = 5 * time.Minute
)

// held adds up the placeholders that fit the nodes of a pool.
type held struct {
	// Hours have the sums of the current hour and of 24 hours before it.
	Hours []heldHour

	at time.Time
	// placeholders is the number since at, and price their price per hour, NaN if it is unknown.
	placeholders int64
	price        float64
}

// heldHour is the sums of the hour with a number since 1970.
type heldHour struct {
	Hour int64 `json:"hour"`
	// Placeholders is a number of placeholders multiplied by hours, Price the price of the part Priced of it.
	Placeholders float64 `json:"placeholders"`
	Priced       float64 `json:"priced"`
	Price        float64 `json:"price"`
}

// add adds a fraction of the sums of another hour.
func (h *heldHour) add(other heldHour, fraction float64) {
	h.Placeholders += fraction * other.Placeholders
	h.Priced += fraction * other.Priced
	h.Price += fraction * other.Price
}

// hold sets the number of placeholders and their price per hour from now on, and returns the sums since the last call.
func (h *held) hold(now time.Time, placeholders int64, price float64) (since heldHour) {
	if hours := now.Sub(h.at).Hours(); !h.at.IsZero() && hours > 0 {
		since = heldHour{Hour: h.at.Unix() / 3600, Placeholders: hours * float64(h.placeholders)}
		if !math.IsNaN(h.price) {
			since.Priced, since.Price = since.Placeholders, hours*h.price
		}
		if n := len(h.Hours); n == 0 || h.Hours[n-1].Hour != since.Hour {
			h.Hours = append(h.Hours, heldHour{Hour: since.Hour})
		}
		h.Hours[len(h.Hours)-1].add(since, 1)
		h.Hours = slices.DeleteFunc(h.Hours, func(hour heldHour) bool { return hour.Hour < since.Hour-outcomeHours })
	}
	h.at, h.placeholders, h.price = now, placeholders, price
	return since
}

// outcome returns the outcome of the last 24 hours, nil if there were neither new pods nor placeholders.
func (r *recorder) outcome(now time.Time) *v1alpha1.Outcome {
	to := secondsOf(now)
	r.trim(to)
	from := max(r.from, to-min(to, outcomeHours*3600))
	waits := slack.Waits{}
	for i := range r.records {
		if p := &r.records[i]; p.scheduled >= from {
			waits[p.wait()]++
		}
	}
	var sum heldHour
	for _, hour := range r.Hours { // the period begins within the first of 25 hours
		age := float64(now.Unix())/3600 - float64(hour.Hour)
		sum.add(hour, min(max(outcomeHours+1-age, 0), 1))
	}
	o := &v1alpha1.Outcome{
		From: metav1.Unix(int64(from), 0), To: metav1.Unix(int64(to), 0), Waited: waits.Longer(atOnce),
		P99WaitSeconds:     int64(waits.Percentile(99) / time.Second),
		LongestWaitSeconds: int64(waits.Percentile(100) / time.Second), PlaceholderHours: decimal(sum.Placeholders),
	}
	o.AtOnce = waits.Pods() - o.Waited
	if sum.Priced > 0 && sum.Priced > 0.999*sum.Placeholders {
		o.Price = decimal(sum.Price)
	}
	if waits.Pods() == 0 && o.PlaceholderHours == "0" {
		return nil
	}
	return o
}

// decimal formats a number with three significant digits, and at most two digits after the point.
func decimal(f float64) string {
	if f > 0 {
		scale := math.Pow(10, min(2, 2-math.Floor(math.Log10(f))))
		f = math.Round(f*scale) / scale
	}
	return strconv.FormatFloat(f, 'f', -1, 64)
}

// nextOutcome returns the outcome for a status that has the outcome before: the same one within outcomeInterval, or if only the
// period has changed.
func (r *recorder) nextOutcome(before *v1alpha1.Outcome, now time.Time) *v1alpha1.Outcome {
	if before != nil && now.Sub(before.To.Time).Abs() < outcomeInterval {
		return before
	}
	after := r.outcome(now)
	if before == nil || after == nil {
		return after
	}
	same := *after
	same.From, same.To = before.From, before.To
	if same == *before {
		return before
	}
	return after
}

// poolPrice is the prices of the nodes of a pool.
type poolPrice struct {
	// sum is the price of a number of nodes for an hour, and amounts their allocatable resources.
	sum     float64
	nodes   int64
	amounts resources.Amounts
}

// add adds a node if it has a price.
func (p *poolPrice) add(node *v1.Node) {
	price, err := strconv.ParseFloat(node.Annotations[capacityv1alpha1.AnnotationPrice], 64)
	if err == nil && price > 0 && !math.IsInf(price, 0) {
		p.sum, p.nodes, p.amounts = p.sum+price, p.nodes+1, p.amounts.Add(resources.CPUAndMemory(node.Status.Allocatable))
	}
}

// of returns the price for an hour of an amount of slack: its share of CPU or memory, whichever is higher. It is NaN if no node
// has a price.
func (p *poolPrice) of(amount v1.ResourceList) float64 {
	if p.nodes == 0 || p.amounts.IsZero() {
		return math.NaN()
	}
	return p.sum * resources.CPUAndMemory(amount).MaxFraction(p.amounts)
}

// hold adds the time since the last observation to the recorded placeholders.
func (c *Controller) hold(t *policyTracker, o *observation) {
	fit := 0.0
	for _, group := range o.plan.Groups {
		fit += float64(group.Count)
	}
	if fit > 0 {
		fit = float64(o.placeable) / fit
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	price := fit * o.price.of(o.plan.Total)
	since := t.recorder.hold(c.now(), o.placeable, price)
	t.recorder.changed = t.recorder.changed || since.Placeholders > 0
	c.metrics.recordHeld(t.Policy().Name, since, !math.IsNaN(price))
}
