package page

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/plimsoll-k8s/plimsoll/test/support/browser"
	"github.com/plimsoll-k8s/plimsoll/test/support/eventually"
)

// maxSize is the largest size of the page for the demo's cluster, in bytes.
const maxSize = 200_000

// serve serves a view at a free port and returns the address.
func serve(t *testing.T, ctx context.Context, view func(context.Context) (Live, error)) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	Serve(ctx, listener, view)
	return "http://" + listener.Addr().String()
}

// sample returns a page as after the scenarios of the demo: nodes with and without load, decisions of scenarios and on
// the user's pods, a timeline of slack and a fleet.
func sample() Live {
	live := Live{
		Time: "12:00:00", Pending: []LivePending{{"huge", "0/5 nodes are available: 5 Insufficient cpu."}},
		Commands: []LiveCommand{
			{"Use the demo's cluster in this terminal.", "export KUBECONFIG=/tmp/plimsoll-demo-1234567890/kubeconfig"},
			{
				"Create a pod.",
				`kubectl run try --image=registry.k8s.io/pause:3.10 --overrides='{"spec":{"schedulerName":"plimsoll-limits"}}'`,
			},
		},
		Profiles: []LiveProfile{{"default-scheduler", "default plugins"}, {"plimsoll-limits", "NodeResourcesLimits"}},
		Policies: &LivePolicies{Autoscaler: "stand-in", Policies: []LivePolicy{
			{
				Name:         "general",
				Rate:         "10%",
				Target:       "0.8 CPUs, 1639Mi",
				Available:    "1.2 CPUs, 2048Mi",
				Placeholders: 3,
				Ready:        true,
				Message:      "the slack is available",
			},
			{Name: "batch", Rate: "20%", Message: "placeholder does not fit any node in the pool"},
		}},
		Timeline: &LiveTimeline{
			Unit: "CPUs", Points: []TimelinePoint{{0, 1, 0, 2, 0}, {3, 2, 2, 3, 2}, {8, 2, 1, 4, 0}},
			Marks: []TimelineMark{{1, "the policy is created"}, {4, "a burst of 4 pods"}},
		},
	}
	for i := range 8 {
		node := LiveNode{Name: fmt.Sprintf("node-%d", i), Pods: []string{"web-1", "web-2", "shop/cart-6d4cf56db6-x2x4v"}}
		for _, r := range []string{"cpu", "memory"} {
			node.Bars = append(node.Bars, LiveBar{
				Resource: r, Allocatable: "16", Request: "8", RequestFraction: .5,
				Limit: fmt.Sprint(6 * i), LimitFraction: 6 * float64(i) / 16,
				HasLoad: i%2 == 0, LoadMean: .4, LoadStdDev: .1, UnboundedPods: 2,
			})
		}
		live.Nodes = append(live.Nodes, node)
	}
	for i := range 20 {
		d := LiveDecision{
			Time:    "11:59:59",
			Pod:     fmt.Sprintf("pod-%d", i),
			Profile: "plimsoll-limits",
			Node:    "node-1",
			Default: "node-2",
			Reason:  "node-1 scores 400, node-2 scores 300: NodeResourcesLimits +100 (-12 against -75).",
			Scores: []LiveScore{
				{Node: "node-1", Total: 400, Chosen: true},
				{Node: "node-2", Total: 300},
				{Node: "node-3", Detail: "does not fit"},
				{Node: "node-4", Detail: "does not fit"},
			},
		}
		if i > 1 {
			d.Scenario = "limits"
		}
		live.Decisions = append(live.Decisions, d)
		live.Results = append(live.Results,
			LiveResult{Scenario: "limits", Profile: "default-scheduler", Pod: d.Pod, Node: "node-2", Want: "node-2", OK: true},
			LiveResult{Scenario: "limits", Profile: d.Profile, Pod: d.Pod, Node: "node-1", Want: "node-1", OK: i != 3, Ours: true})
	}
	parts := []LivePart{{"ResourceAllocatableCPU", 1, 40, false}, {"Steady", 2, -30, false}, {"AddOn/plimsoll/free", 1, -100, true}}
	live.Fleet = &LiveFleet{Placements: []LivePlacement{{Name: "default/web", Message: "selected 1 cluster", Clusters: []LiveCluster{
		{
			Name:   "cluster1",
			Chosen: true,
			Total:  80,
			Parts:  parts[:1],
		},
		{Name: "cluster2", Total: -120, Parts: parts},
		{Name: "cluster3", Reason: "has a NoSelect taint"},
	}}}}
	return live
}

// TestPageInBrowser opens each tab of the page in windows of a desktop, a tablet and a phone, light and dark: nothing is
// wider than the window, and axe-core finds no violation.
func TestPageInBrowser(t *testing.T) {
	var page strings.Builder
	if err := WriteLive(&page, sample()); err != nil || page.Len() > maxSize {
		t.Errorf("%d bytes, want at most %d (%v)", page.Len(), maxSize, err)
	}
	address := serve(t, t.Context(), func(context.Context) (Live, error) { return sample(), nil })
	ctx := browser.Start(t)
	for _, w := range browser.Windows {
		t.Run(w.String(), func(t *testing.T) {
			tab, closeTab := chromedp.NewContext(ctx)
			defer closeTab()
			limited, cancel := context.WithTimeout(tab, browser.Timeout)
			defer cancel()
			w.Open(t, limited, address)
			browser.ExpectFirstPaint(t, limited, fmt.Sprintf("live page of %d bytes", page.Len()))
			for _, name := range []string{"nodes", "slack", "fleet", "decisions"} {
				browser.Evaluate[bool](t, limited, `document.getElementById("`+name+`").click(), true`)
				if got := browser.Evaluate[string](t, limited, visiblePanels); got != "panel-"+name {
					t.Errorf("tab %s shows %s", name, got)
				}
				browser.ExpectUsable(t, limited, w, "live-"+name)
			}
		})
	}
}

const visiblePanels = `[...document.querySelectorAll("[role=tabpanel]")].filter(p => p.getBoundingClientRect().height > 0).map(p => p.id).join()`

// TestPageOpensAtTop checks that the page begins with the user's pods when it is opened and when it is loaded again, and that the
// tab that the user selected remains.
func TestPageOpensAtTop(t *testing.T) {
	address := serve(t, t.Context(), func(context.Context) (Live, error) { return sample(), nil })
	ctx, cancel := context.WithTimeout(browser.Start(t), browser.Timeout)
	defer cancel()
	const state = `new Promise(resolve => requestAnimationFrame(() => requestAnimationFrame(() => resolve(scrollY + " " + ` + visiblePanels + `))))`
	browser.Windows[0].Open(t, ctx, address)
	if got := browser.Evaluate[string](t, ctx, state); got != "0 panel-nodes" {
		t.Errorf("scrolled to, and panel: %s", got)
	}
	selected := browser.Evaluate[string](t, ctx, `document.getElementById("slack").click(), location.href`)
	browser.Windows[0].Open(t, ctx, "about:blank")
	browser.Windows[0].Open(t, ctx, selected)
	if got := browser.Evaluate[string](t, ctx, state); got != "0 panel-slack" {
		t.Errorf("after loading %s again, scrolled to, and panel: %s", selected, got)
	}
}

// TestPageIsPatched checks that only what changes is replaced, so that focus, selection and tabs stay, and that a banner
// is shown once the demo has ended.
func TestPageIsPatched(t *testing.T) {
	var requests atomic.Int64
	serving, end := context.WithCancel(t.Context())
	defer end()
	address := serve(t, serving, func(context.Context) (Live, error) {
		live := sample()
		live.Nodes[1].Bars[0].RequestFraction = 0.5 + 0.1*float64(requests.Add(1)%4)
		live.Running = fmt.Sprint("scenario ", requests.Load())
		return live, nil
	})
	ctx, cancel := context.WithTimeout(browser.Start(t), browser.Timeout)
	defer cancel()
	browser.Windows[0].Open(t, ctx, address)
	// Arrow keys move between the tabs. The first node does not change, the second does.
	browser.Evaluate[bool](t, ctx, `(() => {
		document.getElementById("nodes").focus();
		document.activeElement.dispatchEvent(new KeyboardEvent("keydown", {key: "ArrowLeft", bubbles: true}));
		const nodes = document.querySelectorAll(".node");
		window.first = nodes[0], window.second = nodes[1].querySelector(".numbers"), window.was = document.getElementById("running").textContent;
		return true;
	})()`)
	eventually.True(t, "the page is not updated", nil, func(context.Context) (bool, error) {
		return browser.Evaluate[bool](
			t,
			ctx,
			`document.getElementById("running").textContent !== window.was && !window.second.isConnected`,
		), nil
	})
	const kept = `window.first.isConnected + " " + document.activeElement.id + " " + ` + visiblePanels
	if got := browser.Evaluate[string](t, ctx, kept); got != "true decisions panel-decisions" {
		t.Errorf("first node kept, focus and panel: %s", got)
	}
	// A quarter of the bar is half of what is allocatable: style attributes and the style sheet apply.
	if got := browser.Evaluate[string](t, ctx, `(document.getElementById("nodes").click(), (() => {
		const bar = window.first.querySelector(".bar").getBoundingClientRect(), request = window.first.querySelector(".request").getBoundingClientRect();
		return getComputedStyle(document.querySelector(".row")).display + " " + Math.round(100 * request.width / bar.width);
	})())`); got != "grid 25" {
		t.Errorf("layout %q, want %q", got, "grid 25")
	}
	if browser.Evaluate[bool](t, ctx, `!document.getElementById("ended").hidden`) {
		t.Error("the page says that the demo has ended")
	}
	end()
	eventually.True(t, "no banner after the end", nil, func(context.Context) (bool, error) {
		return browser.Evaluate[bool](
			t,
			ctx,
			`!document.getElementById("ended").hidden && document.querySelectorAll("#part-nodes .node").length === 8`,
		), nil
	})
}
