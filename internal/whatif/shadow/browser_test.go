//go:build foreign

package shadow

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
	"github.com/plimsoll-k8s/plimsoll/test/support/browser"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// sample returns a week of windows with two candidates, a hole of half a day, and long names.
func sample() []*Window {
	var windows []*Window
	for hour := range 7 * 24 {
		if hour > 60 && hour < 72 {
			continue
		}
		high := max(0, math.Round(4*math.Sin(float64(hour)*math.Pi/12)))
		w := window(hour, run(high, high), run(high, high, math.Mod(float64(hour), 2)/5), run(0, high/4, 0, high/8))
		w.Candidates = append(w.Candidates, Profiled{Profile: "low-risk", Run: run(high, 0, math.Mod(float64(hour), 3))})
		for i := range 12 {
			w.Measured.Overloaded.Nodes = append(w.Measured.Overloaded.Nodes,
				result.OverloadTime{Name: fmt.Sprintf("ip-10-0-%d-17.eu-central-1.compute.internal", i), Minutes: high * float64(i)})
			w.Candidates[0].Run.Overloaded.Workloads = append(w.Candidates[0].Run.Overloaded.Workloads, result.OverloadTime{
				Name:    fmt.Sprintf("a-long-namespace-of-a-team/checkout-service-with-a-long-name-%d", i),
				Kind:    "StatefulSet",
				Minutes: 7,
			})
		}
		w.MemoryKills = hour % 2
		w.Missing = []string{"usage of pods: could not be read at 1 of 60 steps (1.7 %): gaps"}
		windows = append(windows, w)
	}
	return windows
}

// TestPage opens the page at the widths of a desktop, a tablet and a phone, light and dark, with results and without.
func TestPage(t *testing.T) {
	ctx := browser.Start(t)
	for name, windows := range map[string][]*Window{"shadow": sample(), "shadow-empty": nil} {
		browser.Windows[0].Open(t, ctx, serve(t, windows))
		for _, w := range browser.Windows {
			w.Resize(t, ctx)
			browser.ExpectUsable(t, ctx, w, name)
			text, err := chromedp.Run(ctx, chromedp.Evaluate[string]("document.body.innerText"))
			must.Succeed(t, err)
			for _, want := range map[bool][]string{
				true: {"Cannot tell: no window is complete. The first result follows after one window, an hour unless --every is set."},
				false: {
					"Use predicted in place of default", "would have avoided", "Overloaded nodes", "checkout-service-with-a-long-name-3", "Containers killed",
					"Error of the model",
				},
			}[windows == nil] {
				if !strings.Contains(text, want) {
					t.Errorf("%s %s has no %q:\n%s", name, w, want, text)
				}
			}
		}
	}
}
