package slack

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/cli/base"
	"github.com/plimsoll-k8s/plimsoll/internal/format"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/slack"
)

const (
	// maxEvents is the number of events that are read, and maxBufferRows the number of rows of buffers in
	// the table.
	maxEvents, maxBufferRows = 500, 20
)

// bufferStatus is the status that an autoscaler reports for a buffer, in JSON and YAML.
type bufferStatus struct {
	Namespace    string `json:"namespace"`
	Name         string `json:"name"`
	Placeholders int64  `json:"placeholders"`
	// Replicas is the number of placeholders that the autoscaler takes into account, nil if it reports none.
	Replicas *int64 `json:"replicas,omitempty"`
	// Answer is Accepted, Limited, Refused or Missing, and Message the reason that the autoscaler reports.
	Answer  slack.AnswerState `json:"answer"`
	Message string            `json:"message,omitempty"`
	// Provisioned is the condition Provisioning, and ProvisioningMessage says why it is false.
	Provisioned         bool   `json:"provisioned"`
	ProvisioningMessage string `json:"provisioningMessage,omitempty"`
	// Events are the events NotTriggerScaleUp of the buffer, the latest first. If the buffer is accepted, events are outdated, and left
	// out, that are older than the time since which all placeholders of its policy fit the nodes.
	Events []bufferEvent `json:"events,omitempty"`
}

// bufferEvent is an event of an autoscaler.
type bufferEvent struct {
	Time    time.Time `json:"time"`
	Reason  string    `json:"reason"`
	Message string    `json:"message"`
}

// readBuffers returns the buffers of all policies by policy, none if the API server does not serve buffers.
func readBuffers(ctx context.Context, c client.Reader, policies []v1alpha1.ResourceSlack, warn func(string)) map[string][]bufferStatus {
	var list unstructured.UnstructuredList
	list.SetGroupVersionKind(slack.CapacityBufferVersion.WithKind(slack.CapacityBufferKind.Kind + "List"))
	if err := c.List(ctx, &list, client.HasLabels{slack.PlaceholderLabel}); err != nil {
		if !resources.IsNotServed(err) {
			warn("buffers are not shown: " + err.Error())
		}
		return nil
	}
	if len(list.Items) == 0 {
		return nil
	}
	events := readEvents(ctx, c, warn)
	buffers, fitSince := map[string][]bufferStatus{}, map[string]time.Time{}
	for _, p := range policies {
		if c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionProvisioned); c != nil && c.Status == metav1.ConditionTrue {
			fitSince[p.Name] = c.LastTransitionTime.Time
		}
	}
	for i := range list.Items {
		answer := slack.AnswerOf(&list.Items[i])
		status := newBufferStatus(answer)
		policy := list.Items[i].GetLabels()[slack.PlaceholderLabel]
		status.Events = slices.DeleteFunc(events[client.ObjectKeyFromObject(&list.Items[i])], func(e bufferEvent) bool {
			return answer.State == slack.AnswerAccepted && e.Time.Before(fitSince[policy])
		})
		buffers[policy] = append(buffers[policy], status)
	}
	for _, list := range buffers {
		slices.SortFunc(list, func(a, b bufferStatus) int {
			return cmp.Or(cmp.Compare(a.rank(), b.rank()), strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
		})
	}
	return buffers
}

func newBufferStatus(answer slack.Answer) bufferStatus {
	status := bufferStatus{
		Namespace: answer.Namespace, Name: answer.Name, Placeholders: answer.Requested, Answer: answer.State, Message: answer.Message,
		Provisioned: answer.Provisioned, ProvisioningMessage: answer.ProvisioningMessage,
	}
	if answer.Replicas >= 0 {
		status.Replicas = &answer.Replicas
	}
	return status
}

// rank orders buffers: buffers that need attention first.
func (b *bufferStatus) rank() int {
	rank := slices.Index([]slack.AnswerState{slack.AnswerRefused, slack.AnswerLimited, slack.AnswerMissing, slack.AnswerAccepted}, b.Answer)
	if b.Answer == slack.AnswerAccepted && b.Provisioned && len(b.Events) == 0 {
		rank++
	}
	return rank
}

// readEvents returns the events NotTriggerScaleUp of buffers, the latest first.
func readEvents(ctx context.Context, c client.Reader, warn func(string)) map[client.ObjectKey][]bufferEvent {
	var list v1.EventList
	err := c.List(ctx, &list, client.MatchingFields{"involvedObject.kind": slack.CapacityBufferKind.Kind, "reason": slack.NotTriggered},
		client.Limit(maxEvents))
	if err != nil {
		warn("events of buffers are not shown: " + err.Error())
		return nil
	}
	events := map[client.ObjectKey][]bufferEvent{}
	for i := range list.Items {
		e := &list.Items[i]
		refusal, ok := slack.RefusalOf(e, time.Now())
		if !ok {
			continue
		}
		key := client.ObjectKey{Namespace: e.InvolvedObject.Namespace, Name: e.InvolvedObject.Name}
		events[key] = append(events[key], bufferEvent{refusal.Time, e.Reason, refusal.Message})
	}
	for _, list := range events {
		slices.SortFunc(list, func(a, b bufferEvent) int { return b.Time.Compare(a.Time) })
	}
	return events
}

// printBuffers prints the status that the autoscaler reports for the buffers of the policies. Below the table are the
// messages that are not part of a condition of the policy.
func printBuffers(out io.Writer, o *base.Output, results []statusResult) {
	rows, hidden := 0, 0
	t := base.NewTable("buffer", "count", "autoscaler", "provisioned")
	t.Wide("policy", "message")
	var messages []string
	for _, r := range results {
		var conditions strings.Builder
		for _, condition := range r.Status.Conditions {
			conditions.WriteString(condition.Message + "\n")
		}
		for i := range r.Buffers {
			if rows++; rows > maxBufferRows {
				hidden++
				continue
			}
			b := &r.Buffers[i]
			name := b.Namespace + "/" + b.Name
			t.AddRow(name, b.Placeholders, b.answer(), yesOrNo(b.Provisioned), r.Policy, b.message(""))
			if message := b.message(conditions.String()); o.Format != base.FormatWide && message != "" {
				messages = append(messages, name+": "+message)
			}
		}
	}
	if rows == 0 {
		return
	}
	t.Print(out, o)
	for _, message := range messages {
		fmt.Fprintln(out, base.Wrap("", base.Escape(message), base.DefaultWidth))
	}
	if hidden > 0 {
		fmt.Fprintf(out, "%d more %s: plimsoll slack status -o json\n", hidden, format.Noun(hidden, "buffer"))
	}
}

// answer returns the answer of the autoscaler for the table.
func (b *bufferStatus) answer() string {
	switch {
	case b.Answer == slack.AnswerMissing:
		return "no answer"
	case b.Answer == slack.AnswerLimited && b.Replicas != nil:
		return fmt.Sprintf("limited to %d", *b.Replicas)
	}
	return strings.ToLower(string(b.Answer))
}

// message joins the messages of the autoscaler that are not part of a text. The message of the latest event, which is the
// most specific, is last.
func (b *bufferStatus) message(text string) string {
	var parts []string
	for _, part := range []string{b.Message, b.ProvisioningMessage} {
		if part != "" && !strings.Contains(text, part) {
			parts = append(parts, part)
		}
	}
	if len(b.Events) > 0 {
		e := b.Events[0]
		parts = append(parts, fmt.Sprintf("%s at %s: %s", e.Reason, e.Time.UTC().Format(time.RFC3339), e.Message))
	}
	return strings.Join(parts, "; ")
}

func yesOrNo(value bool) string {
	if value {
		return "yes"
	}
	return "no"
}
