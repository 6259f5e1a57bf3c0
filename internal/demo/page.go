package demo

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/plimsoll-k8s/plimsoll/internal/algo/risk"
	"github.com/plimsoll-k8s/plimsoll/internal/demo/page"
	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/noderes"
	"github.com/plimsoll-k8s/plimsoll/load"
)

// ServePage serves the live page until ctx ends.
func (d *Demo) ServePage(ctx context.Context, listener net.Listener) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		view, err := d.view(r.Context())
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		var body bytes.Buffer
		if err := page.WriteLive(&body, view); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = body.WriteTo(w)
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = server.Serve(listener) }()
	context.AfterFunc(ctx, func() { _ = server.Close() })
}

// view collects what the page shows.
func (d *Demo) view(ctx context.Context) (page.Live, error) {
	nodes, bound, err := d.cluster.state(ctx)
	if err != nil {
		return page.Live{}, err
	}
	pods, err := d.cluster.client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName="})
	if err != nil {
		return page.Live{}, err
	}
	view := page.Live{Kubeconfig: d.Kubeconfig(), Time: time.Now().Format(time.TimeOnly)}
	reading := d.feed.Reading(ctx)
	fresh := time.Since(reading.Time) <= maxLoadAge
	for _, node := range nodes {
		var on []*v1.Pod
		for _, pod := range bound {
			if pod.Spec.NodeName == node.Name {
				on = append(on, pod)
			}
		}
		var measured load.Node
		if fresh {
			measured = reading.Nodes[node.Name]
		}
		view.Nodes = append(view.Nodes, viewNode(node, on, measured))
	}
	for _, pod := range pods.Items {
		view.Pending = append(view.Pending, pod.Name)
	}
	for _, decision := range d.decisions.all() {
		view.Decisions = append(view.Decisions, viewDecision(decision))
	}
	for _, result := range d.results() {
		view.Results = append(view.Results, viewResult(result))
	}
	view.Timeline = d.viewTimeline()
	view.Fleet, err = d.viewFleet(ctx)
	return view, err
}

func viewResult(r Result) page.LiveResult {
	out := page.LiveResult{
		Scenario: r.Scenario, Profile: r.Profile, Pod: r.Pod, Node: r.Node, Want: r.Want,
		OK: r.OK, Ours: r.Profile != DefaultProfile && r.Profile != withoutSlack,
	}
	switch {
	case r.Fleet != nil:
		out.Pod, out.Node = r.Fleet.Story+", "+r.Fleet.Step, r.Summary()
	case r.Slack != nil:
		out.Pod, out.Node = r.Slack.Step, r.Summary()
	case r.Seconds > 0:
		out.Node = fmt.Sprintf("%s after %.2f s", r.Node, r.Seconds)
	}
	return out
}

// viewTimeline returns how the slack scenario goes, nil before it.
func (d *Demo) viewTimeline() *page.LiveTimeline {
	title, points, marks := d.timeline.all()
	if len(points) == 0 {
		return nil
	}
	out := &page.LiveTimeline{Title: "Autoscaler: " + title, Unit: "CPUs"}
	for _, p := range points {
		out.Points = append(out.Points, page.TimelinePoint{
			Seconds: p.after.Seconds(), Target: p.target, Available: p.available, Nodes: p.nodes, Waiting: p.waiting,
		})
	}
	for _, m := range marks {
		out.Marks = append(out.Marks, page.TimelineMark{Seconds: m.after.Seconds(), Text: m.text})
	}
	return out
}

// viewNode sums up a node as the plugins do.
func viewNode(node *v1.Node, pods []*v1.Pod, measured load.Node) page.LiveNode {
	info := framework.NewNodeInfo(pods...)
	info.SetNode(node)
	out := page.LiveNode{Name: node.Name}
	bar := func(r noderes.Resource, u load.Utilization, has bool) {
		var sum noderes.Sum
		for _, pod := range pods {
			amounts := noderes.NewPod(pod)
			sum.Add(amounts.Get(r))
		}
		allocatable := r.Allocatable(info)
		limit := sum.Limit + sum.PartialLimit
		fraction := func(amount int64) float64 { return float64(amount) / float64(max(allocatable, 1)) }
		relative := risk.Load(u).RelativeTo(float64(r.Capacity(info)), float64(allocatable))
		out.Bars = append(out.Bars, page.LiveBar{
			Resource: string(r.Name()), Allocatable: format(r, allocatable),
			Request: format(r, sum.Request), RequestFraction: fraction(sum.Request),
			Limit: format(r, limit), LimitFraction: fraction(limit), UnboundedPods: sum.Unbounded,
			HasLoad: has, LoadMean: relative.Mean, LoadStdDev: relative.StdDev,
		})
	}
	bar(noderes.CPU, measured.CPU, measured.HasCPU)
	bar(noderes.Memory, measured.Memory, measured.HasMemory)
	for _, pod := range pods {
		out.Pods = append(out.Pods, pod.Name)
	}
	slices.Sort(out.Pods)
	return out
}

// format writes an amount as a manifest would.
func format(r noderes.Resource, amount int64) string {
	if r == noderes.CPU {
		return resource.NewMilliQuantity(amount, resource.DecimalSI).String()
	}
	return resource.NewQuantity(amount, resource.BinarySI).String()
}

func viewDecision(d Decision) page.LiveDecision {
	out := page.LiveDecision{
		Time: d.Time.Format(time.TimeOnly), Scenario: d.Scenario, Profile: d.Profile,
		Pod: d.Scores.Name, Node: d.Node, Reason: d.Reason(),
	}
	for _, node := range d.Scores.Nodes {
		score := page.LiveScore{Node: node.Name, Total: node.Total, Chosen: node.Name == d.Node}
		if !node.Feasible {
			score.Detail = "does not fit"
		}
		out.Scores = append(out.Scores, score)
	}
	return out
}
