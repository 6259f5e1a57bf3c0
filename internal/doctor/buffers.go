package doctor

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/plimsoll-k8s/plimsoll/internal/format"
	"github.com/plimsoll-k8s/plimsoll/slack"
)

// provisioningTimeout is the time after which an autoscaler must have provisioned a buffer that it accepts.
const provisioningTimeout = 2 * time.Minute

// checkBuffers checks the status that an autoscaler reports for all buffers, also for buffers that belong to no policy.
func (e *examination) checkBuffers(buffers []unstructured.Unstructured) {
	var unserved, refused, limited, unprovisioned []slack.Answer
	for i := range buffers {
		answer := slack.AnswerOf(&buffers[i])
		switch age := e.now.Sub(buffers[i].GetCreationTimestamp().Time); {
		case answer.State == slack.AnswerRefused:
			refused = append(refused, answer)
		case answer.State == slack.AnswerLimited:
			limited = append(limited, answer)
		case answer.State == slack.AnswerMissing && age > bufferStatusTimeout:
			unserved = append(unserved, answer)
		}
		if since := answer.UnprovisionedSince; !since.IsZero() && e.now.Sub(since) > provisioningTimeout {
			if answer.Message = answer.ProvisioningMessage; answer.Message == "" {
				answer.Message = "no reason"
			}
			unprovisioned = append(unprovisioned, answer)
		}
	}
	problem := func(found []slack.Answer, what, fix string) {
		if len(found) > 0 {
			subject := format.PartAre(len(found), len(buffers), "buffer")
			e.add(Problem, fmt.Sprintf("%s %s: %s", subject, what, abbreviate(describeAnswers(found))), fix)
		}
	}
	problem(unserved, "without conditions from an autoscaler, or with outdated ones", "enable buffers in your autoscaler: "+
		clusterAutoscalerFlags+" of Cluster Autoscaler, FEATURE_GATES=CapacityBuffer=true of Karpenter")
	problem(refused, "refused by the autoscaler", "resolve the cause in the message: \"forbidden\" means that the "+
		"autoscaler may not create pods, or that the admission of the namespace refuses the pods of the buffer "+
		"(docs/slack.md, Install); for others see kubectl describe capacitybuffer")
	problem(limited, "limited by the autoscaler", "raise the ResourceQuota in the message, or lower minRate or the annotation "+
		"plimsoll.dev/slack of the workload")
	problem(unprovisioned, fmt.Sprintf("ready, but not provisioned, for over %s", provisioningTimeout),
		"see the events in plimsoll slack status and the log of the autoscaler: its maximum number of nodes, the quota of the cloud, or "+
			"--capacity-buffer-pod-injection-enabled of Cluster Autoscaler")
	if len(unserved)+len(refused)+len(limited)+len(unprovisioned) == 0 {
		e.ok("%s, all new or accepted and provisioned by an autoscaler", format.Of(len(buffers), "buffer"))
	}
}

// describeAnswers returns the names of buffers, with the messages of the autoscaler.
func describeAnswers(answers []slack.Answer) (texts []string) {
	for _, answer := range answers {
		text := answer.Namespace + "/" + answer.Name
		if answer.Message != "" {
			text += " (" + answer.Message + ")"
		}
		texts = append(texts, text)
	}
	return texts
}
