//go:build foreign

package node

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/plimsoll-k8s/plimsoll/test/support/browser"
	"github.com/plimsoll-k8s/plimsoll/test/support/eventually"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// maxSize is the largest size of the page for the demo's cluster, in bytes.
const maxSize = 200_000

// serve serves a view at a free port and returns the address.
func serve(t *testing.T, ctx context.Context, view func(context.Context) (Live, error)) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must.Succeed(t, err)
	Serve(ctx, listener, view)
	return "http://" + listener.Addr().String()
}

// sample returns a page as after the scenarios of the demo: nodes with and without load, decisions, and a pod
// without a node.
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
	for i := range 4 {
		live.Decisions = append(live.Decisions, LiveDecision{
			Time: "11:59:59", Pod: fmt.Sprintf("pod-%d", i), Profile: "plimsoll-limits", Node: "node-1", Default: "node-2",
			Reason: "node-1 scores 400, node-2 scores 300: NodeResourcesLimits +100 (-12 against -75).",
			Scores: []LiveScore{{Node: "node-1", Total: 400, Chosen: true}, {Node: "node-2", Total: 300}}, Unfit: i,
		})
	}
	return live
}

func TestInBrowser(t *testing.T) {
	ctx, cancel := context.WithTimeout(browser.Start(t), browser.Timeout)
	defer cancel()
	t.Run("windows", func(t *testing.T) { checkWindows(t, ctx) })
	t.Run("patches", func(t *testing.T) { checkPatches(t, ctx) })
}

// checkWindows opens the page in windows of a desktop, a tablet and a phone, light and dark: nothing is
// wider than the window, and axe-core finds no violation.
func checkWindows(t *testing.T, ctx context.Context) {
	var page strings.Builder
	if err := writeLive(&page, sample()); err != nil || page.Len() > maxSize {
		t.Errorf("%d bytes, want at most %d (%v)", page.Len(), maxSize, err)
	}
	address := serve(t, t.Context(), func(context.Context) (Live, error) { return sample(), nil })
	browser.Windows[0].Open(t, ctx, address)
	browser.ExpectFirstPaint(t, ctx, fmt.Sprintf("live page of %d bytes", page.Len()))
	for _, w := range browser.Windows {
		w.Resize(t, ctx)
		browser.ExpectUsable(t, ctx, w, "live")
	}
}

// checkPatches checks that only changed elements are replaced, so that focus and selection stay, and that a banner
// is shown once the demo has ended.
func checkPatches(t *testing.T, ctx context.Context) {
	var requests atomic.Int64
	serving, end := context.WithCancel(t.Context())
	defer end()
	address := serve(t, serving, func(context.Context) (Live, error) {
		live := sample()
		live.Nodes[1].Bars[0].RequestFraction = 0.5 + 0.1*float64(requests.Add(1)%4)
		live.Running = fmt.Sprint("scenario ", requests.Load())
		return live, nil
	})
	browser.Windows[0].Open(t, ctx, address)
	// The first node does not change, the second does.
	browser.Evaluate[bool](t, ctx, `(() => {
		const nodes = document.querySelectorAll(".node");
		document.querySelector("button.copy").focus();
		window.first = nodes[0], window.second = nodes[1].querySelector(".numbers"), window.was = document.getElementById("running").textContent;
		return true;
	})()`)
	eventually.True(t, "the page is not updated", nil, func(context.Context) (bool, error) {
		return browser.Evaluate[bool](
			t, ctx, `document.getElementById("running").textContent !== window.was && !window.second.isConnected`,
		), nil
	})
	const kept = `window.first.isConnected + " " + document.activeElement.className`
	if got := browser.Evaluate[string](t, ctx, kept); got != "true copy" {
		t.Errorf("first node kept, and focus: %s", got)
	}
	// A quarter of the bar is half of the allocatable amount: style attributes and the style sheet apply.
	if got := browser.Evaluate[string](t, ctx, `(() => {
		const bar = window.first.querySelector(".bar").getBoundingClientRect(), request = window.first.querySelector(".request").getBoundingClientRect();
		return getComputedStyle(document.querySelector(".row")).display + " " + Math.round(100 * request.width / bar.width);
	})()`); got != "grid 25" {
		t.Errorf("layout %q, want %q", got, "grid 25")
	}
	if browser.Evaluate[bool](t, ctx, `!document.getElementById("ended").hidden`) {
		t.Error("the page says that the demo has ended")
	}
	end()
	eventually.True(t, "no banner after the end", nil, func(context.Context) (bool, error) {
		return browser.Evaluate[bool](
			t, ctx, `!document.getElementById("ended").hidden && document.querySelectorAll("#part-nodes .node").length === 8`,
		), nil
	})
}
