package slack

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/format"
	"github.com/plimsoll-k8s/plimsoll/slack"
)

const (
	// DefaultRecommendAfter is the default of Controller.RecommendAfter: schedules by the hour need each hour once.
	DefaultRecommendAfter = 24 * time.Hour
	// recommendInterval is the time between two searches for one policy with the same goal.
	recommendInterval = 6 * time.Hour
)

// search is the last search for a recommendation.
type search struct {
	goal *v1alpha1.Recommend
	at   time.Time
	// condition is the condition Recommended, and result the last recommendation, which may be of an earlier search.
	condition *metav1.Condition
	result    *v1alpha1.Recommendation
}

// recommend sets the recommendation of an observation, and starts a search in the background if the last one is too old and no
// other search runs.
func (c *Controller) recommend(ctx context.Context, policy *v1alpha1.ResourceSlack, t *policyTracker, o *observation) {
	goal := t.Policy().Spec.Recommend
	if goal == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	last, r := &t.search, policy.Status.Recommendation
	if last.goal == nil && r != nil { // of a previous process
		*last = search{&r.Goal, r.To.Time, meta.FindStatusCondition(policy.Status.Conditions, v1alpha1.ConditionRecommended), r}
	}
	isNew := last.condition == nil || !equality.Semantic.DeepEqual(last.goal, goal)
	if isNew || c.now().Sub(last.at) >= recommendInterval {
		if waiting := c.startSearch(ctx, t, goal, o.price); isNew || last.result == nil || waiting.Reason != v1alpha1.ReasonSearching {
			waiting.Type, last.condition = v1alpha1.ConditionRecommended, waiting
		}
	}
	o.recommendation, o.recommended = last.result, last.condition
}

// startSearch starts a search, unless another one runs or the records do not permit it yet. It returns the status, the reason and
// the message of the condition Recommended until there is a result. c.mu must be locked.
func (c *Controller) startSearch(ctx context.Context, t *policyTracker, goal *v1alpha1.Recommend, price poolPrice) *metav1.Condition {
	waiting := &metav1.Condition{Status: metav1.ConditionUnknown}
	now, begin := c.now(), time.Unix(int64(t.recorder.from), 0).UTC()
	if now.Sub(begin) < c.RecommendAfter && len(t.recorder.records) < maxRecords/2 {
		waiting.Reason = reasonShortHistory
		waiting.Message = fmt.Sprintf("the recorded pods begin at %s: a recommendation requires %s, until %s, or %d pods",
			begin.Format(time.RFC3339), c.RecommendAfter, begin.Add(c.RecommendAfter).Format(time.RFC3339), maxRecords/2)
		return waiting
	}
	node, ok := t.NodeType(int64(*goal.BootSeconds))
	if !ok {
		waiting.Reason, waiting.Message = reasonPoolEmpty, "a recommendation requires a usable node in the pool"
		return waiting
	}
	waiting.Reason, waiting.Message = v1alpha1.ReasonSearching, "a search for a recommendation runs, or waits for the search of another policy"
	if c.isSearching {
		return waiting
	}
	history := t.recorder.history(now)
	if n := len(history.Pods); n == 0 || history.Pods[n-1].Arrival < 0 {
		waiting.Reason, waiting.Message = reasonNoPods, "no pod got a node of the pool since "+begin.Format(time.RFC3339)
		return waiting
	}
	c.isSearching, t.search.goal, t.search.at = true, goal, now
	policy := t.Policy()
	go func() {
		condition, result := searchPolicy(ctx, policy, history, node, price)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.isSearching, t.search.condition = false, condition
		if result != nil {
			t.search.result = result
		}
	}()
	return waiting
}

// searchPolicy returns the condition Recommended and the recommendation for a policy, which it does not change.
func searchPolicy(
	ctx context.Context, policy *v1alpha1.ResourceSlack, history *slack.History, node slack.NodeType, price poolPrice,
) (*metav1.Condition, *v1alpha1.Recommendation) {
	condition := &metav1.Condition{Type: v1alpha1.ConditionRecommended, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonSearchFailed}
	goal := slack.Goal{Policy: policy, Parts: 1}
	goal.Percent, goal.Wait, _ = v1alpha1.ParseWait(policy.Spec.Recommend.Wait) // the policy is valid
	if len(policy.Spec.Schedules) > 0 {
		goal.Zone, _ = time.LoadLocation(policy.Spec.Schedules[0].TimeZone)
	}
	found, err := slack.Recommend(ctx, history, node, goal)
	if err != nil {
		condition.Message = err.Error()
		return condition, nil
	}
	condition.Reason, condition.Message = reasonNotReached, found.Summary(&goal)+"; costs are hours of nodes"
	best := found.Nearest
	if found.Best != nil {
		condition.Status, condition.Reason, best = metav1.ConditionTrue, reasonReached, found.Best
	}
	if n := found.None.TooLarge; n > 0 {
		condition.Message += "; " + format.Are(n, "pod") + " left out: larger than the most common node of the pool"
	}
	end := history.Start.Add(time.Duration(history.Seconds) * time.Second)
	result := &v1alpha1.Recommendation{
		Goal: *policy.Spec.Recommend, From: metav1.NewTime(history.Start), To: metav1.NewTime(end), Pods: best.Waits.Pods(),
		Reached: found.Best != nil, MinRate: "0%",
		WaitSeconds: int64(best.Waits.Percentile(goal.Percent) / time.Second), NodeHours: decimal(best.Cost),
	}
	if best.Policy != nil {
		result.MinRate, result.Minimum, result.Schedules = best.Policy.Spec.MinRate, best.Policy.Spec.Minimum, best.Policy.Spec.Schedules
	}
	if price.nodes > 0 {
		result.Price = decimal(best.Cost * price.sum / float64(price.nodes))
	}
	return condition, result
}
