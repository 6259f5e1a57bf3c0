// Package slack keeps spare capacity for the next pods in the form of placeholders, which an
// autoscaler treats like pending pods. It computes plans from the nodes, pods and policies of a
// cluster, and the placeholder pods or API objects of a plan.
//
// Autoscalers that are built from source use a Loop. Controllers use a Tracker, and the Backend of
// the policy.
package slack
