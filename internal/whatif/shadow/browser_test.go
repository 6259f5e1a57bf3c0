//go:build foreign

package shadow

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
	"github.com/plimsoll-k8s/plimsoll/test/support/browser"
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
		w.Candidates = append(w.Candidates, Profiled{"low-risk", run(high, 0, math.Mod(float64(hour), 3))})
		for i := range 12 {
			w.Measured.Overloaded.Nodes = append(w.Measured.Overloaded.Nodes,
				result.OverloadTime{Name: fmt.Sprintf("ip-10-0-%d-17.eu-central-1.compute.internal", i), Minutes: high * float64(i)})
			w.Candidates[0].Run.Overloaded.Workloads = append(
				w.Candidates[0].Run.Overloaded.Workloads,
				result.OverloadTime{
					Name:    fmt.Sprintf("a-long-namespace-of-a-team/checkout-service-with-a-long-name-%d", i),
					Kind:    "StatefulSet",
					Minutes: 7,
				},
			)
		}
		w.MemoryKills = hour % 2
		w.Missing = []string{"usage of pods: could not be read at 1 of 60 steps (1.7 %): gaps"}
		w.Outcomes.Missing = []string{"throttling and pressure: they need --prometheus"}
		windows = append(windows, w)
	}
	return windows
}

// serve serves windows and returns the address.
func serve(t *testing.T, windows []*Window) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = Serve(t.Context(), listener, func() (*Report, []*Window) {
			return NewReport(windows, begin, begin.AddDate(0, 0, 7)), windows
		})
	}()
	return "http://" + listener.Addr().String()
}

// TestPage opens the page at the widths of a desktop, a tablet and a phone, light and dark, with results and without.
func TestPage(t *testing.T) {
	ctx := browser.Start(t)
	for name, windows := range map[string][]*Window{"shadow": sample(), "shadow-empty": nil} {
		address := serve(t, windows)
		for _, w := range browser.Windows {
			w.Open(t, ctx, address)
			browser.ExpectUsable(t, ctx, w, name)
			text, err := chromedp.Run(ctx, chromedp.Evaluate[string]("document.body.innerText"))
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range map[bool][]string{
				true: {"No window is complete"},
				false: {
					"predicted: better", "would have avoided", "Overloaded nodes", "checkout-service-with-a-long-name-3", "Containers killed",
					"they need --prometheus", "Error of the model",
				},
			}[windows == nil] {
				if !strings.Contains(text, want) {
					t.Errorf("%s %s has no %q:\n%s", name, w, want, text)
				}
			}
		}
	}
}

// TestHosts refuses requests that a page of another site makes by a name of its own, and escapes names.
func TestHosts(t *testing.T) {
	windows := []*Window{window(0, run(1), run(1), run())}
	windows[0].Measured.Overloaded.Nodes[0].Name = "<script>alert(1)</script>"
	address := serve(t, windows)
	for host, status := range map[string]int{
		"": http.StatusOK, "localhost:99": http.StatusOK, "[::1]": http.StatusOK, "evil.example": http.StatusMisdirectedRequest,
		"10.0.0.1:80": http.StatusMisdirectedRequest,
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address+"/", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Host = host
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil || response.StatusCode != status || bytes.Contains(body, []byte("<script>")) {
			t.Errorf("host %q: %s, %v", host, response.Status, err)
		}
	}
}
