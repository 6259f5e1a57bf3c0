//go:build foreign

package slack

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/spf13/cobra"

	"github.com/plimsoll-k8s/plimsoll/test/support/browser"
)

// TestFrontierPageIsUsable opens the page of the example in windows of a desktop, a tablet and a phone, light and dark.
func TestFrontierPageIsUsable(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.html")
	cmd := &cobra.Command{SilenceUsage: true}
	cmd.AddCommand(newRecommendCommand())
	cmd.SetOut(t.Output())
	cmd.SetArgs([]string{
		"recommend", "--recording", "../../../examples/recording/week.plrec", "--autoscaler", "shape=16x64,boot=120,cost=0.80",
		"--report", page,
	})
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	if content, err := os.ReadFile(page); err != nil || len(content) > 40_000 {
		t.Fatalf("%d bytes: %v", len(content), err)
	}
	ctx := browser.Start(t)
	browser.Windows[0].Open(t, ctx, "file://"+page)
	for _, w := range browser.Windows {
		w.Resize(t, ctx)
		browser.ExpectUsable(t, ctx, w, "frontier")
		if hidden := browser.Evaluate[int](t, ctx, `(t => t.scrollWidth - t.clientWidth)(document.querySelector(".wide"))`); hidden > 1 {
			t.Errorf("%s: %d pixels of the table are hidden", w, hidden)
		}
	}
}
